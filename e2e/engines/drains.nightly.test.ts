/** Repeats the stops of `drains.e2e.test.ts` many times. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { drain, programs, situationNames, startDrainCluster } from "./drains.ts";
import type { KillCluster } from "../billing/kill-cluster.ts";

/** The bound that the promise names. */
const unreadyMsMax = 100;

let system: KillCluster;
beforeAll(async () => (system = await startDrainCluster()));
afterAll(() => system[Symbol.asyncDispose]());

const cases = programs.flatMap((program) => situationNames.map((situation) => [program, situation] as const));
/** All programs and situations together stop at least 200 times. */
const rounds = Math.ceil(200 / cases.length);

test.each(cases)(
  `on SIGTERM, ${rounds} times, the %s with %s is unready at once, refuses new requests, lets streams end, and exits with 0 [B6]`,
  async (program, situation) => {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const { unreadyMs, running, unreadyFirst, late, exit } = await drain(system, program, situation);
      expect({ running, unreadyFirst, exit }).toEqual({
        ...{ running: running.map(() => "whole"), unreadyFirst: true, exit: 0 },
      });
      expect(late).toMatch(/^(refused|broken)$/);
      times.push(unreadyMs);
    }
    // The median, because a single time may contain a pause of the machine.
    expect(times.toSorted((a, b) => a - b)[times.length >> 1]).toBeLessThanOrEqual(unreadyMsMax);
  },
  1_800_000,
);
