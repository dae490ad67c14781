/** Large bodies: read in a thread, kept as bytes while they wait, and limited in total. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { uuidv7 } from "@weiche/shared/ids.ts";
import { FrameConnection } from "@weiche/shared/frames/frame-connection.ts";
import { ends } from "@weiche/shared/frames/frame.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { SimStream } from "@weiche/shared/testing/sim-stream.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { model, recordOf, Rig, until } from "./ingress-rig.ts";
import { delta, done, usageEvent } from "./scripted-engine.ts";

const long = `${'Grüße, "Weiche"\n'.repeat(100_000)}`;
const whole = delta({ role: "assistant", content: "x" }) + delta({}, "stop") + usageEvent(3, 2) + done;

test.each(["vllm", "llama-server", "openai"] as const)(
  "an engine gets the same from a large body as from a small one (%s)",
  async (dialect) => {
    await using rig = await Rig.open(whole, { dialect });
    const ask = (content: string) =>
      rig.chat({ messages: [{ role: "user", content }], tools: [], stop: ["\n"], seed: 7, n: 2, unknown: { a: 1 } })
        .answer;
    await ask("short");
    await ask(long);
    const [small, large] = rig.engine.saw.map(({ body }) => body);
    const said = JSON.parse(JSON.stringify(small).replace('"short"', JSON.stringify(long))) as object;
    expect(large).toEqual(said);
  },
);

test("an answer to a large body is like any other answer", async () => {
  await using rig = await Rig.open(whole);
  const { status, text } = await rig.chat({ messages: [{ role: "user", content: long }], stream: true }).answer;
  expect([status, text.includes("[DONE]")]).toEqual([200, true]);
  expect(rig.outbox.records).toMatchObject([{ promptTokens: 3, completionTokens: 2, source: "engine" }]);
});

test.each([
  ["a wrong parameter", { temperature: 9 }, "temperature"],
  ["no messages", { messages: [] }, "messages"],
])("a large body with %s is refused like a small one, and does not reach an engine", async (_name, more, param) => {
  await using rig = await Rig.open(whole);
  const { status, text } = await rig.chat({ user: long, ...more }).answer;
  expect([status, (JSON.parse(text) as { error: { param: string } }).error.param]).toEqual([400, param]);
  expect([rig.engine.saw, rig.slot.requests]).toEqual([[], []]);
});

test("a client that leaves while its body arrives or is read leaves nothing behind", async () => {
  await using rig = await Rig.open(whole);
  for (const turns of [0, 1, 5, 50]) {
    const { stream } = rig.chat({ messages: [{ role: "user", content: long }] });
    await until(() => rig.ingress.running > 0, "the request to come");
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
    stream.cancel();
    await until(() => rig.ingress.running === 0, "the request to end", 30_000);
  }
  expect([rig.bugs, rig.slot.running]).toEqual([[], 0]);
});

test("an account gets half of the room for large bodies, others overtake it, and after 30 s of waiting it gets 503 with retry-after [D4 D10 S19.8]", async () => {
  const clock = new VirtualClock();
  await using rig = await Rig.open(whole, { clock });
  const body = { messages: [{ role: "user", content: long }] };
  const begun = Array.from({ length: 17 }, () => SimStream.open(rig.router, announcing(20_000_000)));
  await until(() => rig.ingress.running === 17, "them to begin");
  const refused = once(begun[7]!, "head") as Promise<[unknown[]]>;
  const refusal = begun[7]!.read();
  expect((await rig.chat().answer).status, "a small one needs no room").toBe(200);
  const others = Array.from({ length: 7 }, (_, n) => rig.chat(body, { account: `account-${n + 2}` }).answer);
  expect(new Set((await Promise.all(others)).map(({ status }) => status))).toEqual(new Set([200]));
  clock.advance(30_000);
  expect((await refused)[0].slice(0, 3)).toEqual([503, "json", 2]);
  expect(String(await refusal)).toContain('"overloaded"');
  expect(begun[7]!.ending, "its engine got no request").toBe(ends.nodeBusy);
  await until(() => rig.ingress.running === 7, "all but seven to be refused");
  begun[0]!.cancel();
  await until(() => rig.ingress.running === 6, "one to leave");
  expect((await rig.chat(body).answer).status).toBe(200);
  for (const stream of begun) stream.cancel();
  await rig.quiet();
});

function announcing(bodyBytes: number, account = "account-1") {
  return recordOf(nodePaths.chat, uuidv7(systemClock), { bodyBytes, account });
}

const atOnce = process.env["WEICHE_NIGHTLY"] === undefined ? 3 : 64;
test(`${atOnce} bodies of 20 MB at once: the event loop is never busy for more than 100 ms [D4 S19.8]`, async () => {
  const engine = createServer((request, response) => {
    request.resume().once("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(whole);
    });
  }).listen(0, "127.0.0.1");
  await once(engine, "listening");
  const origin = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
  const child = fork(join(import.meta.dirname, "ingress-process.ts"), [origin], { execArgv: [] });
  try {
    const [{ port }] = (await once(child, "message")) as [{ port: number }];
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    const router = new FrameConnection(socket, { clock: systemClock, closed() {} });
    // The slowest body to read has as many values as a body may have.
    const messages = Array.from({ length: 10_000 }, () => ({ role: "user", content: "hi ".repeat(640) }));
    const body = Buffer.from(JSON.stringify({ model, stream: true, messages }));
    const ask = async (n: number): Promise<unknown> => {
      const stream = SimStream.open(router, announcing(body.length, `account-${n % 8}`));
      const head = once(stream, "head") as Promise<[unknown[]]>;
      stream.frames.write(body);
      stream.frames.end(ends.complete);
      await stream.read();
      const [[status]] = await head;
      // On a slow machine a body may wait for room for more than 30 s, so its client retries.
      return status === 503 ? ask(n) : status;
    };
    const statuses = await Promise.all(Array.from({ length: atOnce }, (_, n) => ask(n)));
    expect(new Set(statuses)).toEqual(new Set([200]));
    child.send("measure");
    const [measured] = (await once(child, "message")) as [{ workMs: number; bugs: string[]; rssBytes: number }];
    expect(measured).toMatchObject({ bugs: [] });
    expect(measured.workMs).toBeLessThan(100);
    expect(measured.rssBytes).toBeLessThan(1.5e9);
    router.destroy();
  } finally {
    child.kill("SIGKILL");
    engine.close();
  }
}, 180_000);
