/** Kills every part at every named point of every kind of request. See `kill-points.e2e.test.ts`. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { allKillings, PointKiller } from "./kill-at-point.ts";

let killer: PointKiller;
beforeAll(async () => (killer = await PointKiller.start(2)));
afterAll(() => killer[Symbol.asyncDispose]());

test.each(allKillings().map((killing) => [killing.victim, killing.point, killing.kind, killing] as const))(
  "%s killed at the point '%s' of a request (%s): a whole answer is billed once, and nothing else [A1]",
  async (_victim, _point, _kind, killing) => {
    await killer.kill(killing);
    expect(await killer.system.ask({ kind: killing.kind })).toMatchObject({ ending: "whole" });
    await killer.system.settled();
  },
);
