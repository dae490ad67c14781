/** Tests the bench of several slots that share models, on short loads. */
import { expect, test } from "vitest";
import { fleetScenarios, measureFleet } from "./fleet-scenarios.ts";
import { fleetStrategies } from "./fleet-strategies.ts";

const scenario = fleetScenarios(undefined).find(({ name }) => name.startsWith("one busy model of 6"))!;
const load = scenario.load(1).filter(({ atMs }) => atMs < 600_000);
const measure = (rule: keyof typeof fleetStrategies) =>
  measureFleet(scenario, load, fleetStrategies[rule](), { seed: 1, newsMs: 50 });

test("requests that join other waiters for their model wait less than three quarters as long", () => {
  const now = measure("now");
  expect(now.neverServedPercent).toBe(0);
  expect(now.meanSeconds).toBeLessThan(0.75 * measure("before").meanSeconds);
});
