/** Waits until the service answers again. */
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../cluster/cluster.ts";
import { expect } from "../check.ts";
import type { Service } from "../service.ts";

/** The statuses while an engine starts or an agent links. 0 is a broken connection. */
const passing = [0, 500, 503];

/** Waits until a request is answered. */
export async function served(service: Service, boundMs = service.kind.startMs + 30_000): Promise<void> {
  await until(
    "an answer",
    async () => {
      const { status, ending, error } = await service.chat("Who are you?", { max_tokens: 5 });
      const isWhole = ending === "whole";
      expect(isWhole || passing.includes(status), "an answer, or an error that may be tried again", error);
      // An account may send 150 requests a minute.
      if (!isWhole) await sleep(1_000);
      return isWhole;
    },
    boundMs,
  );
}
