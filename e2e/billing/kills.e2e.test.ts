/**
 * Tests kills and half-open links under load of every kind. A checker compares the bills with what clients received and
 * engines generated. The nightly test repeats every fault with one, two and three nodes.
 */
import { expect, test } from "vitest";
import { runCampaign } from "./kill-campaign.ts";

const seed = Number(process.env["WEICHE_SEED"] ?? 20_261_122);

test("despite a killed agent, a killed router and half-open links, every whole or left answer is billed once, and nothing else [A1 S20.4]", async () => {
  const faults = ["agent killed", "node silent", "router killed"] as const;
  const received = await runCampaign({ nodes: 2, faults, rounds: 1, seed });
  const endings = Map.groupBy(received, ({ ending }) => ending);
  expect(endings.get("whole")!.length).toBeGreaterThan(50);
  expect(endings.get("left")!.length).toBeGreaterThan(10);
});
