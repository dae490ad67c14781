/** Runs the campaign of `endings.e2e.test.ts` with more requests and faults. */
import { expect, test } from "vitest";
import { runEndings } from "./endings-campaign.ts";

const seed = Number(process.env["WEICHE_SEED"] ?? 20_261_123);

test("after 100,000 requests with 37 endings, failing engines, garbage, kills and stops, nothing is left within 5 s [B3]", async () => {
  const { busy, after } = await runEndings({ requests: 100_000, accounts: 40, rounds: 25, attacked: true }, seed);
  expect(busy).toEqual([]);
  expect(after).toEqual(["whole", "whole", "whole"]);
}, 3_600_000);
