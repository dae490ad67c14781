/** Checks that the engine stops working for clients that leave. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, type Check } from "../check.ts";
import { windowTokens } from "../engine-kinds.ts";
import type { Service } from "../service.ts";
import { longAnswer } from "./long-answer.ts";

/** The longest time until the engine notices the end and finishes the begun batch of a prompt. */
const idleMsMax = 5_000;

/** Runs `leave` and checks that the engine is idle soon. Returns the generated tokens and a note. */
async function leavesIdle(service: Service, leave: () => Promise<unknown>): Promise<{ made: number; note: string }> {
  const before = await service.counters();
  await leave();
  const idleMs = await service.idle();
  expect(idleMs <= idleMsMax, `idle within ${idleMsMax} ms`, idleMs);
  const made = (await service.counters()).completion - before.completion;
  return { made, note: `idle after ${idleMs} ms; ${made} tokens made` };
}

export const leaving: readonly Check[] = [
  {
    name: "a client leaves while it is answered: the engine stops",
    async run(service) {
      const { begun, leave, answer } = longAnswer(service);
      const { made, note } = await leavesIdle(service, () => begun.then(leave));
      expect(made < windowTokens / 2, "an answer that was not finished for nobody", made);
      return `${note}, ${(await answer).pieces} pieces read`;
    },
  },
  {
    name: "a client leaves while it waits for one body: the engine stops",
    async run(service) {
      const { leave } = longAnswer(service, { stream: false, stream_options: undefined });
      return (await leavesIdle(service, () => sleep(300).then(leave))).note;
    },
  },
  {
    name: "a client leaves while its prompt is read: the engine stops",
    async run(service) {
      const prompt = Array.from({ length: 2_400 }, (_, at) => `${at} `).join("");
      const gone = new AbortController();
      const asked = service.stream(prompt, {}, { signal: gone.signal });
      const { made, note } = await leavesIdle(service, () => sleep(50).then(() => gone.abort()));
      const { pieces } = await asked;
      expect(pieces === 0 && made < 100, "nothing, or next to nothing, was made", { pieces, made });
      return note;
    },
  },
];
