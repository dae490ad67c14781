/** See `drains.e2e.test.ts`. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { drain, programs, situationNames, startDrainCluster } from "./drains.ts";
import type { KillCluster } from "../billing/kill-cluster.ts";

const drains = 200;
/** The bound of the promise. */
const unreadyMsMax = 100;

let system: KillCluster;
beforeAll(async () => (system = await startDrainCluster()));
afterAll(() => system[Symbol.asyncDispose]());

const cases = programs.flatMap((program) => situationNames.map((situation) => [program, situation] as const));

test.each(cases)(
  `SIGTERM of the %s with %s, ${drains / cases.length} times: it is unready at once, takes nothing new, lets streams end, and ends with 0`,
  async (program, situation) => {
    const times: number[] = [];
    for (let round = 0; round < drains / cases.length; round++) {
      const { unreadyMs, running, unreadyFirst, late, exit } = await drain(system, program, situation);
      expect({ running, unreadyFirst, exit }).toEqual({
        ...{ running: running.map(() => "whole"), unreadyFirst: true, exit: 0 },
      });
      expect(late).toMatch(/^(refused|broken)$/);
      times.push(unreadyMs);
    }
    // The median: a single one may meet a pause of the machine.
    expect(times.toSorted((a, b) => a - b)[times.length >> 1]).toBeLessThanOrEqual(unreadyMsMax);
  },
  1_800_000,
);
