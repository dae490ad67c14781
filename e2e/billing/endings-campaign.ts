/** Runs requests that end in every way while parts fail and stop, and checks that nothing of them is left. */
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../cluster/cluster.ts";
import { endMany, turningModels } from "./endings.ts";
import { KillCluster } from "./kill-cluster.ts";
import { garbageFromNode } from "../starvation/garbage-node.ts";

/** After this time nothing runs, waits or holds a place. */
const quietMsMax = 5_000;
const garbageMs = 5_000;
const failingMs = 5_000;

/** Runs the campaign. `attacked`: engines also fail every request, and a node sends garbage. */
export async function runEndings(
  { requests, accounts, rounds, attacked }: { requests: number; accounts: number; rounds: number; attacked: boolean },
  seed: number,
) {
  await using system = await KillCluster.start({
    ...{ nodes: 2, accounts, turns: turningModels },
    router: { requestSeconds: 4 },
  });
  const drainAgent = async () => {
    await system.cluster.agents.get("node-1")!.stop();
    await system.startAgent("node-1");
  };
  const drainRouter = async () => {
    await system.cluster.router.stop();
    await system.cluster.startRouter();
  };
  /** The agent may restart the engine meanwhile. */
  const failRequests = async () => {
    const engine = system.engine("node-2");
    await engine.setFaults("500:1").catch(() => {});
    await sleep(failingMs);
    await engine.setFaults().catch(() => {});
  };
  const round = [
    () => system.killEngine("node-1"),
    () => system.outage("agent stopped", drainAgent),
    () => system.killAgent("node-2"),
    () => system.outage("router killed", drainRouter),
    ...(attacked ? [failRequests, () => system.attack(garbageFromNode, garbageMs)] : []),
  ];
  const counts = await endMany(system, requests, seed, Array.from({ length: rounds }, () => round).flat());
  let busy: readonly string[] = [];
  await until("the cluster to be idle", async () => (busy = await system.busy()).length === 0, quietMsMax).catch(
    () => {},
  );
  const kinds = ["stream", "json", "embeddings"] as const;
  const after = await Promise.all(kinds.map((kind) => system.ask({ kind })));
  return { counts, busy, after: after.map(({ ending }) => ending) };
}
