/** Runs every fault many times in random order, with one, two and three nodes. See `kills.e2e.test.ts`. */
import { expect, test } from "vitest";
import { createRandom } from "@weiche/shared/random.ts";
import { faultNames, runCampaign } from "./kill-campaign.ts";

const seed = Number(process.env["WEICHE_SEED"] ?? 20_261_122);
const rounds = 4;

test.each([1, 2, 3])(
  "%i nodes: despite four times every fault, each answer that a client got whole or left is billed once, and nothing else [A1]",
  async (nodes) => {
    const random = createRandom(seed + nodes);
    const order = faultNames.map((name) => ({ name, at: random.next() })).toSorted((a, b) => a.at - b.at);
    const received = await runCampaign({ nodes, faults: order.map(({ name }) => name), rounds, seed: seed + nodes });
    expect(received.length).toBeGreaterThan(1_000);
  },
  rounds * faultNames.length * 60_000,
);
