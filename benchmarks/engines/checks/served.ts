/** A service that answers again. */
import { until } from "../../cluster/cluster.ts";
import { expect } from "../check.ts";
import type { Service } from "../service.ts";

/**
 * Waits until a request is answered: 503 and 500 are what an engine that starts and an agent that links give, and a client
 * gives up on its connection after five minutes.
 */
export async function served(service: Service, boundMs = service.kind.startMs + 30_000): Promise<void> {
  await until(
    "an answer",
    async () => {
      const { status, ending, error } = await service.chat("Who are you?", { max_tokens: 5 });
      expect(
        ending === "whole" || status === 503 || status === 500,
        "an answer, or an error that may be tried again",
        error,
      );
      return ending === "whole";
    },
    boundMs,
  );
}
