/** Checks that a cluster without load is at rest. Returns a sentence for each fault. */
import type { Cluster, RunningProgram } from "../cluster/cluster.ts";
import { readSamples } from "../cluster/metrics-text.ts";
import type { SimNodeEngine } from "../cluster/sim-node.ts";
import type { UsageDump } from "../cluster/usage-dump.ts";

/** Lists everything that still runs, waits or must be delivered in router, nodes and engines. */
export async function stillBusy(
  { router, agents }: Cluster,
  engineOf: (node: string) => SimNodeEngine,
): Promise<readonly string[]> {
  const gauges = ["weiche_agent_running_requests", "weiche_agent_waiting_requests", "weiche_agent_outbox_records"];
  const parts = await Promise.all([
    busySamples("the router", router, ["weiche_router_parallel_requests"]),
    ...[...agents].flatMap(([node, agent]) => [busyEngine(node, engineOf(node)), busySamples(node, agent, gauges)]),
  ]);
  return parts.flat();
}

async function busyEngine(node: string, engine: SimNodeEngine): Promise<string[]> {
  if (engine.pid === undefined) return []; // it was killed and has had no request since
  const { running, waiting } = await engine.state();
  return running + waiting > 0 ? [`the engine of ${node} works on ${running} + ${waiting}`] : [];
}

async function busySamples(where: string, program: RunningProgram, names: readonly string[]): Promise<string[]> {
  const samples = [...(await readSamples(program))];
  const busy = samples.filter(([series, value]) => value !== 0 && names.includes(nameOf(series)));
  return busy.map(([series, value]) => `${where}: ${series} is ${value}`);
}

function nameOf(series: string): string {
  return series.slice(0, series.indexOf("{"));
}

/** Compares the output of the operators' command with the totals. */
export async function commandFaults(
  cluster: Cluster,
  accounts: readonly { readonly accountId: string }[],
  totals: UsageDump["totals"],
): Promise<string[]> {
  const faults: string[] = [];
  for (const { accountId } of accounts) {
    const said = (await cluster.weiche("usage", "--account", accountId)) as { totals: Record<string, number> };
    const total = totals.find(({ of }) => of === `account ${accountId}`);
    for (const field of ["requests", "promptTokens", "completionTokens"] as const)
      if (Number(total?.[field] ?? 0) !== said.totals[field])
        faults.push(`the command shows ${said.totals[field]} ${field} of ${accountId}, the totals ${total?.[field]}`);
  }
  return faults;
}
