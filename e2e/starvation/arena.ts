/**
 * A router with its default limits, a node, eight streams that run all the time, and one or many attacks beside them.
 * Measurements during an attack are compared with the seconds before it.
 */
import { billingFaults } from "../cluster/billing-check.ts";
import { Cluster, until } from "../cluster/cluster.ts";
import { journalOf, readJournal } from "../cluster/engine-journal.ts";
import { inspected, keptBytes, residentBytes } from "../cluster/kept-memory.ts";
import { readSamples } from "../cluster/metrics-text.ts";
import { nodeCertificates, tlsOfNode } from "../cluster/node-certificates.ts";
import { catalogueOf, simEngine } from "../cluster/sim-node.ts";
import { dumpAllUsage } from "../cluster/usage-dump.ts";
import type { Attack, Tally, Target } from "./attack.ts";
import { attackFaults, ofAccounts } from "./attack-bills.ts";
import { startAttacker, targetOf, type Share } from "./attacker-process.ts";
import { failingNode } from "./failing-engine.ts";
import { garbageNode } from "./garbage-node.ts";
import { hastyNode } from "./hasty-node.ts";
import { PacedStreams, paceMs, type Gaps } from "./paced-streams.ts";

interface Outcome {
  readonly quiet: Gaps;
  readonly attacked: Gaps;
  /** How good streams ended that were cut or refused. */
  readonly cut: readonly string[];
  /** Number of requests, good or bad, that met a bug of the router. */
  readonly bugs: number;
  /** Resident memory of router and agent: before the attack, and the largest value during it. */
  readonly memoryMb: Readonly<Record<"router" | "agent", Memory>>;
  readonly tallies: Readonly<Record<string, Tally>>;
  readonly mistakes: readonly string[];
}

interface Memory {
  readonly before: number;
  readonly peak: number;
}

const node = "node-1";
const model = "sim";
/** Fewer than the concurrent requests of one account. */
const places = 64;
const longestMs = 60_000;

export class Arena implements AsyncDisposable {
  readonly #cluster: Cluster;
  readonly #accountId: string;
  readonly #streams: PacedStreams;

  private constructor(cluster: Cluster, accountId: string, streams: PacedStreams) {
    this.#cluster = cluster;
    this.#accountId = accountId;
    this.#streams = streams;
  }

  static async open(): Promise<Arena> {
    const cluster = await Cluster.start({
      catalogue: catalogueOf(model),
      router: { limits: {} },
      prepare: nodeCertificates([node, failingNode, garbageNode, hastyNode]),
      agents: {},
      environment: inspected,
    });
    const engine = {
      ...simEngine(model, { "itl-ms": paceMs, journal: journalOf(cluster, node) }),
      maxConcurrent: places,
    };
    await cluster.startAgent(node, { ...tlsOfNode(cluster, node), slots: [{ name: "a", engines: [engine] }] });
    await cluster.linked();
    const { apiKey, accountId } = await cluster.account("Streams");
    return new Arena(cluster, accountId, new PacedStreams({ baseUrl: cluster.baseUrl, apiKey, model }));
  }

  /**
   * Measures `quietMs` without attacks, then `attackMs` with all attacks at once. If the counts then lack something, the
   * attacks run again and longer, up to a minute.
   */
  async run(
    attacks: readonly Attack[],
    { quietMs, attackMs, share = "low" }: { quietMs: number; attackMs: number; share?: Share },
  ): Promise<Outcome> {
    const given = new Map<Attack, Target["given"]>();
    for (const attack of attacks) given.set(attack, (await attack.prepare?.(this.#cluster)) ?? {});
    const cutBefore = this.#streams.cut.length;
    const quiet = await this.#streams.measure(quietMs);
    let seen = await this.#attack(given, attackMs, share);
    for (
      let ms = attackMs * 4;
      seen.missing.length > 0 && seen.mistakes.length + seen.bugs === 0 && ms <= longestMs;
      ms *= 4
    )
      seen = await this.#attack(given, ms, share);
    const { missing, mistakes, ...rest } = seen;
    const cut = this.#streams.cut
      .slice(cutBefore)
      .map(({ ending, status, error }) => `${ending} ${status} ${error?.code}`);
    return { quiet, ...rest, cut, mistakes: [...mistakes, ...missing] };
  }

  async #attack(given: ReadonlyMap<Attack, Target["given"]>, attackMs: number, share: Share) {
    const cluster = this.#cluster;
    const attacks = [...given.keys()];
    const before = await readSamples(cluster.router);
    const memory = { router: watchMemory(cluster.router.pid), agent: watchMemory(cluster.agents.get(node)!.pid) };
    const start = (attack: Attack) => startAttacker(attack, targetOf(cluster, attack, given.get(attack)!), share);
    const attackers = await Promise.all(attacks.map(start));
    const attacked = await this.#streams.measure(attackMs);
    const memoryMb = { router: memory.router.stop(), agent: memory.agent.stop() };
    const tallies = await Promise.all(attackers.map((attacker) => attacker.stop()));
    const after = await readSamples(cluster.router);
    const grown = (series: string) => (after.get(series) ?? 0) - (before.get(series) ?? 0);
    const of = (judge: "missing" | "mistakes") =>
      attacks.flatMap((attack, at) =>
        (attack[judge]?.({ tally: tallies[at]!, grown }) ?? []).map((fault) => `${attack.name}: ${fault}`),
      );
    return {
      ...{ attacked, memoryMb, bugs: grown("weiche_router_failures_total{}") },
      tallies: Object.fromEntries(attacks.map(({ name }, at) => [name, tallies[at]!])),
      ...{ missing: of("missing"), mistakes: of("mistakes") },
    };
  }

  /** Returns the memory of router and agent after garbage collection, in MB. */
  async keptMb(): Promise<Readonly<Record<"router" | "agent", number>>> {
    const { router, agents } = this.#cluster;
    const [ofRouter, ofAgent] = await Promise.all([keptBytes(router), keptBytes(agents.get(node)!)]);
    return { router: ofRouter / 2 ** 20, agent: ofAgent / 2 ** 20 };
  }

  /** Ends the streams. Resolves once all bills are right, or after 60 s with the faults. */
  async billFaults(): Promise<readonly string[]> {
    await this.#streams.stop();
    let faults: readonly string[] = [];
    const isRight = async () => (faults = await this.#faults()).length === 0;
    await until("the bills to be right", isRight, 60_000).catch(() => {});
    return faults;
  }

  async #faults(): Promise<readonly string[]> {
    const usage = await dumpAllUsage(this.#cluster);
    // The agent's own requests have no request id.
    const made = [node, failingNode]
      .flatMap((name) => readJournal(journalOf(this.#cluster, name), name, paceMs))
      .filter(({ id }) => !id.startsWith("sim-"));
    const good = ofAccounts(usage, (id) => id === this.#accountId);
    const { received } = this.#streams;
    const attackers = ofAccounts(usage, (id) => id !== this.#accountId);
    return [
      ...billingFaults({ received, made: made.filter(({ mark }) => mark !== undefined), usage: good, outages: [] }),
      ...attackFaults(
        attackers,
        made.filter(({ mark }) => mark === undefined),
      ),
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#streams.stop();
    await this.#cluster[Symbol.asyncDispose]();
  }
}

function watchMemory(pid: number): { stop(): Memory } {
  const residentMb = () => residentBytes(pid) / 2 ** 20;
  const before = residentMb();
  let peak = before;
  const timer = setInterval(() => (peak = Math.max(peak, residentMb())), 50);
  return {
    stop() {
      clearInterval(timer);
      return { before, peak };
    },
  };
}
