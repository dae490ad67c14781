/** Tests that the simulation of a slot fails for each deliberate breakage. */
import { expect, test } from "vitest";
import { breakages } from "./breakages.ts";
import { simulate } from "./slot-simulation.ts";

/** The rarest breakage shows once in three hundred seeds. */
const seedsMax = 2_000;

test.each(Object.keys(breakages))("a slot that forgets %s turns the simulation red [B2 S17.6]", async (forgotten) => {
  let broken: string | undefined;
  for (let seed = 0; seed < seedsMax && broken === undefined; seed++)
    broken = (await simulate(seed, breakages[forgotten])).broken;
  expect(broken).toBeDefined();
});
