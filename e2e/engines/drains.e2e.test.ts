/** Tests SIGTERM under load. The nightly test repeats it 200 times. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { drain, startDrainCluster, type Program, type SituationName } from "./drains.ts";
import type { KillCluster } from "../billing/kill-cluster.ts";

let system: KillCluster;
beforeAll(async () => (system = await startDrainCluster()));
afterAll(() => system[Symbol.asyncDispose]());

const few: readonly (readonly [Program, SituationName])[] = [
  ["router", "idle open connections"],
  ["router", "a client that does not read"],
  ["agent", "an engine that hangs"],
  ["router", "a node that floods it with messages"],
  ["router", "a frozen database"],
];

test.each(few)(
  "on SIGTERM, the %s with %s is unready at once, refuses new requests, lets streams end, and exits with 0 [B6]",
  async (program, situation) => {
    expect(await drain(system, program, situation)).toEqual({
      unreadyMs: expect.any(Number) as unknown,
      running: ["whole", "whole", "whole", "whole", "whole"],
      unreadyFirst: true,
      late: expect.stringMatching(/^(refused|broken)$/) as unknown,
      exit: 0,
    });
  },
);
