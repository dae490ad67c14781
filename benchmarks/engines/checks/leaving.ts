/** Clients that leave: the engine stops working for them. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, type Check } from "../check.ts";
import { windowTokens } from "../engine-kinds.ts";
import { longAnswer } from "./long-answer.ts";

/** Until the engine is idle: what the engine needs to notice, and a batch of a prompt that it has begun. */
const idleMsMax = 5_000;

export const leaving: readonly Check[] = [
  {
    name: "a client leaves while it is answered: the engine stops",
    async run(service) {
      const before = await service.counters();
      const { begun, leave, answer } = longAnswer(service);
      await begun;
      leave();
      const idleMs = await service.idle();
      const { pieces } = await answer;
      const made = (await service.counters()).completion - before.completion;
      expect(idleMs <= idleMsMax, `idle within ${idleMsMax} ms`, idleMs);
      expect(made < windowTokens / 2, "an answer that was not finished for nobody", made);
      return `idle after ${idleMs} ms; ${pieces} pieces were read, ${made} tokens made`;
    },
  },
  {
    name: "a client leaves while it waits for one body: the engine stops",
    async run(service) {
      const before = await service.counters();
      const { begun, leave } = longAnswer(service, { stream: false, stream_options: undefined });
      begun.catch(() => {});
      await sleep(300);
      leave();
      const idleMs = await service.idle();
      const made = (await service.counters()).completion - before.completion;
      expect(idleMs <= idleMsMax, `idle within ${idleMsMax} ms`, idleMs);
      return `idle after ${idleMs} ms; ${made} tokens made`;
    },
  },
  {
    name: "a client leaves while its prompt is read: the engine stops",
    async run(service) {
      const prompt = Array.from({ length: 2_400 }, (_, at) => `${at} `).join("");
      const before = await service.counters();
      const gone = new AbortController();
      const asked = service.stream(prompt, {}, { signal: gone.signal });
      await sleep(50);
      gone.abort();
      const idleMs = await service.idle();
      const { pieces } = await asked;
      const made = (await service.counters()).completion - before.completion;
      expect(pieces === 0 && made < 100, "nothing, or next to nothing, was made", { pieces, made });
      expect(idleMs <= idleMsMax, `idle within ${idleMsMax} ms`, idleMs);
      return `idle after ${idleMs} ms; ${made} tokens made`;
    },
  },
];
