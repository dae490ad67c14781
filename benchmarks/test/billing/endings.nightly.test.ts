/** See `endings.test.ts`. */
import { expect, test } from "vitest";
import { runEndings } from "./endings-campaign.ts";

const seed = Number(process.env["WEICHE_SEED"] ?? 20_261_123);

test("after 100,000 requests that ended in 37 ways, with engines that fail, a node that sends garbage, agents and engines killed and both programs stopped meanwhile, no place, waiter or engine's work is left within 5 s", async () => {
  const { busy, after } = await runEndings({ requests: 100_000, accounts: 40, rounds: 25, attacked: true }, seed);
  expect(busy).toEqual([]);
  expect(after).toEqual(["whole", "whole", "whole"]);
}, 3_600_000);
