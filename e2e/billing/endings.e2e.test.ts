/**
 * Tests that nothing of a request is left, however it ends and whatever fails meanwhile. The nightly test sends 100,000
 * requests.
 */
import { expect, test } from "vitest";
import { runEndings } from "./endings-campaign.ts";

const seed = Number(process.env["WEICHE_SEED"] ?? 20_261_123);

test("after 500 requests with 37 endings, kills and stops, no place, waiter or engine's work is left within 5 s [B3]", async () => {
  const { counts, busy, after } = await runEndings({ requests: 500, accounts: 8, rounds: 1, attacked: false }, seed);
  expect([...counts].filter(([, count]) => count === 0)).toEqual([]);
  expect(busy).toEqual([]);
  expect(after).toEqual(["whole", "whole", "whole"]);
});
