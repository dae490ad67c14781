/** Waits for a service that answers again. */
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../cluster/cluster.ts";
import { expect } from "../check.ts";
import type { Service } from "../service.ts";

/** Statuses while an engine starts or an agent links; 0: the connection broke. */
const passing = [0, 500, 503];

/** Waits until a request is answered. */
export async function served(service: Service, boundMs = service.kind.startMs + 30_000): Promise<void> {
  await until(
    "an answer",
    async () => {
      const { status, ending, error } = await service.chat("Who are you?", { max_tokens: 5 });
      const isWhole = ending === "whole";
      expect(isWhole || passing.includes(status), "an answer, or an error that may be tried again", error);
      // An account may ask 150 times a minute.
      if (!isWhole) await sleep(1_000);
      return isWhole;
    },
    boundMs,
  );
}
