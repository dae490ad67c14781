/** Clients that read all the time, but slowly. */
import { once } from "node:events";
import type { ClientHttp2Stream } from "node:http2";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { expect, test } from "vitest";
import { event, respondEvents, Rig } from "./ingress-rig.ts";

/** Resolves when the client has taken so many more bytes, or has all. */
async function take(stream: ClientHttp2Stream, bytes: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let taken = 0;
  const onData = (chunk: Buffer) => void ((taken += chunk.length) >= bytes && resolve());
  stream.on("data", onData).once("close", resolve).resume();
  await promise;
  stream.off("data", onData).off("close", resolve).pause();
}

test.each([true, false])(
  "a client that takes 64 KiB every 20 s gets all of an answer in one long piece (streamed: %s)",
  async (isStreamed) => {
    const clock = new VirtualClock();
    const long = "€".repeat(350_000);
    const choice = { index: 0, delta: { content: long }, finish_reason: "stop" };
    const usage = { prompt_tokens: 7, completion_tokens: 1 };
    const events = event({ choices: [choice] }) + event({ choices: [], usage }) + event("[DONE]");
    await using rig = await Rig.open((socket) => respondEvents(socket, events), { clock });
    const { stream, answer } = rig.chat({ stream: isStreamed });
    await once(stream, "response");
    stream.pause();
    for (let taken = 0; !stream.closed && taken < long.length * 3; taken += 64 << 10) {
      await take(stream, 64 << 10);
      await rig.chat({}, { "x-weiche-model": "other" }).answer; // the agent has seen it
      clock.advance(20_000);
    }
    stream.resume();
    const { text, rstCode } = await answer;
    expect([text.includes(long), rstCode]).toEqual([true, 0]);
    expect(rig.outbox.records).toMatchObject([{ outcome: "finished" }]);
  },
);
