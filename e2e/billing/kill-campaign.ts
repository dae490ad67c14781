/** Loads a cluster in every way while its parts are killed, frozen and cut off in turn, in an order that a seed defines. */
import { setTimeout as sleep } from "node:timers/promises";
import { createRandom, type Random } from "@weiche/shared/random.ts";
import { enginePids, until } from "../cluster/cluster.ts";
import { join } from "node:path";
import { KillCluster, type Wish } from "./kill-cluster.ts";
import { garbageFromNode } from "../starvation/garbage-node.ts";
import { unsentBodies } from "../starvation/unsent-bodies.ts";
import type { Direction } from "../links/tcp-proxy.ts";

interface CampaignOptions {
  readonly nodes: number;
  /** The faults of each round in order. */
  readonly faults: readonly FaultName[];
  readonly rounds: number;
  readonly seed: number;
}

/** Longer than the 4 s after which a silent node counts as lost. */
const silentMs = 6_000;
/** One account per client, because a package allows 150 requests a minute. */
const accounts = 16;
/**
 * The pause after a refusal. Refused requests also count in the minute. Without the pause, the account would reach its
 * limit.
 */
const refusedWaitMs = 500;

type Failing = (system: KillCluster, node: string, random: Random) => Promise<void>;

const both: readonly Direction[] = ["up", "down"];
const asleep = () => sleep(silentMs);

const failing = {
  "agent killed": (system, node) => system.killAgent(node),
  "router killed": (system) => system.killRouter(),
  "engine killed": (system, node) => system.killEngine(node),
  "engine fails": (system, node) => system.failEngine(node),
  "node sends garbage": (system) => system.attack(garbageFromNode, silentMs),
  "bodies trickle": (system) => system.attack(unsentBodies, silentMs),
  "database killed": (system) => system.killDatabase(),
  "agent stopped": (system, node) => system.stopAgent(node, () => sleep(7_000)),
  "data silent": (system, node) => system.silence([node], "data", both, asleep),
  "link silent": (system, node) => system.silence([node], "link", both, asleep),
  "node silent": (system, node) => system.silence([node], "both", both, asleep),
  "node not heard": (system, node, random) => system.silence([node], random.pick(links), ["up"], asleep),
  "node does not hear": (system, node, random) => system.silence([node], random.pick(links), ["down"], asleep),
} satisfies Record<string, Failing>;
const links = ["link", "data", "both"] as const;

type FaultName = keyof typeof failing;
const restartsEngine: ReadonlySet<FaultName> = new Set(["engine killed", "engine fails"]);
export const faultNames = Object.keys(failing) as readonly FaultName[];

/** Runs the campaign. Resolves when all bills are right and nothing runs, rejects with the faults. */
export async function runCampaign({ nodes, faults, rounds, seed }: CampaignOptions): Promise<KillCluster["received"]> {
  const random = createRandom(seed);
  await using system = await KillCluster.start({ nodes, accounts });
  let isOver = false;
  const load = Array.from({ length: accounts }, async () => {
    while (!isOver) {
      const { ending } = await system.ask(wishBy(random));
      if (ending === "refused" || ending === "broken") await sleep(refusedWaitMs);
    }
  });
  for (let round = 0; round < rounds; round++) {
    for (const fault of faults) {
      const [node, pids] = [random.pick(system.nodes), pidsOf(system)];
      await sleep(300 + random.below(700));
      await failing[fault](system, node, random);
      if (!restartsEngine.has(fault) && pidsOf(system) !== pids) throw new Error(`${fault}: an engine was restarted`);
      await until(`whole answers after ${fault}`, wholeAnswers(system, accounts));
    }
  }
  isOver = true;
  await Promise.all(load);
  await system.settled();
  return system.received;
}

/** Returns whether `more` whole answers have arrived since the call. */
function wholeAnswers({ received }: KillCluster, more: number): () => boolean {
  const count = () => received.filter(({ ending }) => ending === "whole").length;
  const before = count();
  return () => count() > before + more;
}

function pidsOf({ cluster, nodes }: KillCluster): string {
  return nodes.map((node) => [...enginePids(join(cluster.directory, node))].join(" ")).join("; ");
}

function wishBy(random: Random): Wish {
  const kind = random.pick(["stream", "stream", "json", "json", "embeddings"] as const);
  const steering = kind === "embeddings" ? "" : `itl=${10 + random.below(30)},ttft=${random.below(400)}`;
  const slow = random.chance(0.2) ? { readEveryMs: 200 } : {};
  const leaves = random.chance(0.25) ? { leaves: leavingBy(random, kind) } : {};
  return { kind, steering, ...slow, ...leaves };
}

function leavingBy(random: Random, kind: Wish["kind"]): NonNullable<Wish["leaves"]> {
  return kind === "stream" && random.chance(0.7)
    ? { afterPieces: 1 + random.below(30) }
    : { afterMs: random.below(1_500) };
}
