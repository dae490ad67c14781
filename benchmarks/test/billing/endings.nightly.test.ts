/** See `endings.test.ts`. */
import { expect, test } from "vitest";
import { runEndings } from "./endings-campaign.ts";

const seed = Number(process.env["WEICHE_SEED"] ?? 20_261_123);

test("after 100,000 requests that ended in 32 ways, with agents and engines killed and both programs stopped meanwhile, no place, waiter or engine's work is left within 5 s", async () => {
  const { busy, after } = await runEndings(100_000, 40, 25, seed);
  expect(busy).toEqual([]);
  expect(after).toEqual(["whole", "whole", "whole"]);
}, 3_600_000);
