/** However requests end, and whatever fails meanwhile, nothing of them is left. By night 100,000 of them. */
import { expect, test } from "vitest";
import { runEndings } from "./endings-campaign.ts";

const seed = Number(process.env["WEICHE_SEED"] ?? 20_261_123);

test("after 500 requests that ended in 37 ways, with an agent and an engine killed and both programs stopped meanwhile, no place, waiter or engine's work is left within 5 s", async () => {
  const { counts, busy, after } = await runEndings({ requests: 500, accounts: 8, rounds: 1, attacked: false }, seed);
  expect([...counts].filter(([, count]) => count === 0)).toEqual([]);
  expect(busy).toEqual([]);
  expect(after).toEqual(["whole", "whole", "whole"]);
});
