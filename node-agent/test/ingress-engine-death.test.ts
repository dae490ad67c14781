/** An engine that dies while requests run: each router hears of it, so that it can count whose bodies were there. */
import { once } from "node:events";
import type { ClientHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { engineDeathHeader } from "@weiche/shared/node-protocol.ts";
import { beginEvents, event, Rig, until, writeChunk, type Sent } from "./ingress-rig.ts";

const word = event({ choices: [{ index: 0, delta: { content: "word " }, finish_reason: null }] });

/** An engine that says one word and no more, or nothing at all. */
async function openStalled(says: string) {
  const sockets: Socket[] = [];
  const rig = await Rig.open((socket) => {
    sockets.push(socket);
    if (says === "") return;
    beginEvents(socket);
    writeChunk(socket, says);
  });
  return { rig, sockets };
}

/** The death that the head or the trailer of the answer tells. */
async function deathOf({ stream, answer }: Sent): Promise<unknown> {
  let death: unknown;
  for (const part of ["response", "trailers"] as const)
    (stream as ClientHttp2Stream).on(part, (headers) => (death ??= headers[engineDeathHeader]));
  await answer;
  return death;
}

test.each([
  ["alone", 1],
  ["shared", 3],
])("before the first byte it is a 500 engine_died, and the death is %s with %s running", async (death, requests) => {
  const { rig, sockets } = await openStalled("");
  await using _ = rig;
  const sent = Array.from({ length: requests }, () => rig.chat({ stream: true }));
  const deaths = sent.map(deathOf);
  await until(() => sockets.length === requests, "the engine to have all of them");
  rig.slot.loseEngine();
  for (const { answer } of sent) {
    const { status, text } = await answer;
    expect([status, JSON.parse(text).error.code]).toEqual([500, "engine_died"]);
  }
  expect(await Promise.all(deaths)).toEqual(sent.map(() => death));
  expect(rig.outbox.records).toEqual([]);
});

test("after it the error event says engine_died, and the trailer the death", async () => {
  const { rig } = await openStalled(word);
  await using _ = rig;
  const sent = rig.chat({ stream: true });
  const death = deathOf(sent);
  await once(sent.stream, "data");
  rig.slot.loseEngine();
  const { text, trailer } = await sent.answer;
  expect([trailer, await death]).toEqual(["error", "alone"]);
  expect(text).toContain('"code":"engine_died"');
});

test.each([
  ["whose exit is known a moment later has died", true, "engine_died"],
  ["that lives on has not", false, "500"],
])("an engine that loses its connection and %s", async (_name, dies, code) => {
  const { rig, sockets } = await openStalled(word);
  await using _ = rig;
  const { stream, answer } = rig.chat({ stream: true });
  await once(stream, "data");
  sockets[0]!.resetAndDestroy();
  if (dies) setTimeout(() => rig.slot.loseEngine(), 20);
  const { text, trailer } = await answer;
  expect(trailer).toBe("error");
  expect(text).toContain(`"code":"${code}"`);
});

test("a client that leaves while the news are waited for pays nothing for what the engine broke", async () => {
  const { rig, sockets } = await openStalled(word);
  await using _ = rig;
  const { stream } = rig.chat({ stream: true });
  await once(stream, "data");
  sockets[0]!.resetAndDestroy();
  setTimeout(() => stream.close(8), 20);
  await rig.quiet();
  expect(rig.outbox.records).toMatchObject([{ outcome: "broken", completionTokens: 0 }]);
});
