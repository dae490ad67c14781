/**
 * Kills and half-open links in the middle of load of every kind. A checker that knows only what the clients received and
 * what the engines made looks at what was billed. By night every fault, many times, with one, two and three nodes.
 */
import { expect, test } from "vitest";
import { runCampaign } from "./kill-campaign.ts";

const seed = Number(process.env["WEICHE_SEED"] ?? 20_261_122);

test("two nodes, an agent and the router killed, a node's links half-open: every answer that a client got whole or ended itself is billed once, and nothing else", async () => {
  const faults = ["agent killed", "node silent", "router killed"] as const;
  const received = await runCampaign({ nodes: 2, faults, rounds: 1, seed });
  const endings = Map.groupBy(received, ({ ending }) => ending);
  expect(endings.get("whole")!.length).toBeGreaterThan(50);
  expect(endings.get("left")!.length).toBeGreaterThan(10);
});
