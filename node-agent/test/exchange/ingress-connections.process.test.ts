/** Connections to engines: kept if the engine allows it, otherwise new, and tried once more if lost too early. */
import type { Socket } from "node:net";
import { join } from "node:path";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { Rig, until } from "./ingress-rig.ts";
import { delta, done, httpHead, respond, respondEvents } from "./scripted-engine.ts";

const good = delta({ content: "Hello" }, "stop") + done;
const answer = (socket: Socket) => respondEvents(socket, good);

test("a kept connection serves request after request", async () => {
  for (const dialect of ["openai", "vllm"] as const) {
    await using rig = await Rig.open(good, { dialect });
    for (let n = 0; n < 20; n++) expect((await rig.chat().answer).status).toBe(200);
    expect(rig.engine.connections).toBe(1);
  }
});

test("a connection is kept for four seconds after its last request", async () => {
  const clock = new VirtualClock();
  await using rig = await Rig.open(good, { clock });
  const ask = async () => expect((await rig.chat().answer).status).toBe(200);
  await ask();
  clock.advance(3_000);
  await ask();
  clock.advance(3_999);
  await ask();
  expect(rig.engine.connections).toBe(1);
  clock.advance(3_000);
  await ask();
  clock.advance(1_000);
  clock.advance(3_000);
  await until(() => rig.engine.sockets.size === 0, "the connection to be closed");
  await ask();
  expect(rig.engine.connections).toBe(2);
});

test("concurrent requests have one connection each", async () => {
  await using rig = await Rig.open((socket) => void setTimeout(() => answer(socket), 20));
  const answers = await Promise.all(Array.from({ length: 8 }, () => rig.chat().answer));
  expect(answers.every(({ status }) => status === 200)).toBe(true);
  expect(rig.engine.connections).toBe(8);
});

test("llama-server gets a new connection for each request, and a header announces its end", async () => {
  await using rig = await Rig.open(good, { dialect: "llama-server" });
  for (let n = 0; n < 3; n++) expect((await rig.chat().answer).status).toBe(200);
  expect(rig.engine.connections).toBe(3);
  expect(rig.engine.saw[0]!.headers).toMatch(/connection: close/i);
  await until(() => rig.engine.sockets.size === 0, "all connections to be closed");
});

test("a kept connection that was closed meanwhile is replaced", async () => {
  await using rig = await Rig.open(good);
  await rig.chat().answer;
  for (const socket of rig.engine.sockets) socket.resetAndDestroy();
  expect((await rig.chat().answer).status).toBe(200);
  await rig.quiet();
  expect(rig.faults).toEqual([]);
});

test("a connection that is lost before the first byte is tried once more, and only once", async () => {
  let losses = 1;
  await using rig = await Rig.open((socket) => {
    if (losses-- > 0) socket.resetAndDestroy();
    else answer(socket);
  });
  expect((await rig.chat().answer).status).toBe(200);
  expect(rig.engine.saw).toHaveLength(2);
  losses = 2;
  expect((await rig.chat().answer).status).toBe(500);
  expect(rig.engine.saw).toHaveLength(4);
});

test("a request whose answer has begun is never sent again", async () => {
  await using rig = await Rig.open((socket) => {
    socket.write(httpHead(200, { "content-type": "text/event-stream" }));
    setImmediate(() => socket.resetAndDestroy());
  });
  expect((await rig.chat().answer).status).toBe(500);
  expect(rig.engine.saw).toHaveLength(1);
});

test("the connection of a refused request is not used again", async () => {
  await using rig = await Rig.open((socket) => respond(socket, 400, "{}"));
  expect((await rig.chat().answer).status).toBe(400);
  await until(() => rig.engine.sockets.size === 0, "the connection to be closed");
});

test("an engine on a Unix socket is reached in the same way", async () => {
  await using rig = await Rig.open(good, { socketPath: join(temporaryDirectory(), "engine.sock") });
  for (let n = 0; n < 3; n++) expect((await rig.chat().answer).status).toBe(200);
  expect(rig.engine.connections).toBe(1);
});

test("the engine gets our request id and none of the router's headers", async () => {
  await using rig = await Rig.open(good);
  const { requestId, answer: got } = rig.chat();
  await got;
  const names = rig.engine.saw[0]!.headers.split("\r\n")
    .slice(1)
    .map((line) => line.split(":")[0]!.toLowerCase());
  expect(names.toSorted((a, b) => a.localeCompare(b))).toEqual([
    ...["connection", "content-length", "content-type", "host", "x-request-id"],
  ]);
  expect(rig.engine.saw[0]!.headers).toContain(requestId);
});
