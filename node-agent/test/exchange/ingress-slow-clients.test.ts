/** Clients that read all the time, but slowly. */
import { once } from "node:events";
import type { SimStream } from "@weiche/shared/testing/sim-stream.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { expect, test } from "vitest";
import { event, respondEvents, Rig } from "./ingress-rig.ts";

/** Resolves when the client has taken so many more bytes, or has all. */
async function take(stream: SimStream, bytes: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let taken = 0;
  const onData = (chunk: Buffer) => void ((taken += chunk.length) >= bytes && resolve());
  stream.on("data", onData).once("over", resolve);
  stream.frames.resume();
  await promise;
  stream.off("data", onData).off("over", resolve);
  stream.frames.pause();
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
    await once(stream, "head");
    stream.frames.pause();
    for (let taken = 0; !stream.isOver && taken < long.length * 3; taken += 64 << 10) {
      await take(stream, 64 << 10);
      await rig.chat({}, { model: "other" }).answer; // the agent has seen it
      clock.advance(20_000);
    }
    stream.frames.resume();
    const { text, ending } = await answer;
    expect([text.includes(long), ending]).toEqual([true, "complete"]);
    expect(rig.outbox.records).toMatchObject([{ outcome: "finished" }]);
  },
);
