/** Kills parts at named points of a request and checks the bills. The nightly test covers all points and victims. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { PointKiller, type Killing } from "./kill-at-point.ts";

let killer: PointKiller;
beforeAll(async () => (killer = await PointKiller.start(2)));
afterAll(() => killer[Symbol.asyncDispose]());

const few: readonly Killing[] = [
  { point: "sent", victim: "agent", kind: "json" },
  { point: "mid-stream", victim: "router", kind: "stream" },
  { point: "last token before usage", victim: "engine", kind: "stream" },
  { point: "record synced", victim: "router", kind: "json" },
  { point: "committed, unacknowledged", victim: "router", kind: "embeddings" },
];

test.each(few)(
  "$victim killed at the point `$point` of a request ($kind): the next request is answered",
  async (killing) => {
    await killer.kill(killing);
    expect(await killer.system.ask({ kind: killing.kind })).toMatchObject({ ending: "whole" });
  },
);

test("after all these kills every whole answer is billed once, and nothing else is billed [A1]", async () => {
  await expect(killer.system.settled()).resolves.toBeUndefined();
});
