/**
 * Runs a cluster whose parts a test can kill. Each node reaches the router through its own proxies, so that each link can fall
 * silent separately. The length of an answer identifies the node.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { billingFaults, type Outage, type Received } from "../cluster/billing-check.ts";
import { ask, type Reading } from "../cluster/api-client.ts";
import { Cluster, isAlive, killed, until, type RunningProgram } from "../cluster/cluster.ts";
import { journalOf, readJournal } from "../cluster/engine-journal.ts";
import { catalogueOf, SimNodeEngine, simEngine } from "../cluster/sim-node.ts";
import { dumpAllUsage, postmasterOf } from "../cluster/usage-dump.ts";
import type { Attack } from "../starvation/attack.ts";
import { ofAccounts } from "../starvation/attack-bills.ts";
import { startAttacker, targetOf } from "../starvation/attacker-process.ts";
import type { Direction } from "../links/tcp-proxy.ts";
import { openProxies, type NodeProxies } from "./node-proxies.ts";
import { commandFaults, stillBusy } from "./settled-checks.ts";

/** The length of the first node's answers. Answers of each further node are a token longer. */
const shortestAnswer = 40;
/** How long an engine fails all requests if its agent does not restart it. */
const failingMs = 10_000;
export const chatModel = "sim";
export const embeddingModel = "sim-embed";

interface KillClusterOptions {
  readonly nodes: number;
  /** Packages allow 150 requests a minute. */
  readonly accounts?: number;
  /** Further variables of all programs, including engines. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly itlMs?: number;
  /** Models that take turns in a second slot of each node. */
  readonly turns?: readonly string[];
  /** Further keys of `router.yaml` and `agent.yaml`. */
  readonly router?: object;
  readonly agent?: object;
}

export interface Wish extends Omit<Reading, "signal"> {
  /** Defaults to a stream. */
  readonly kind?: Received["kind"];
  /** Further words for the simulated engine, such as `itl=5`. */
  readonly steering?: string;
  /** The client leaves after this number of pieces or this time. */
  readonly leaves?: { readonly afterPieces: number } | { readonly afterMs: number };
}

export class KillCluster implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly nodes: readonly string[];
  readonly received: Received[] = [];
  readonly outages: Outage[] = [];
  readonly accounts: { readonly accountId: string; readonly apiKey: string }[] = [];
  readonly #proxies: ReadonlyMap<string, NodeProxies>;
  readonly #options: Required<KillClusterOptions>;
  readonly #opened: AsyncDisposableStack;
  readonly #given = new Map<Attack, Readonly<Record<string, string>>>();
  /** Agents that have restarted an engine that failed all requests. */
  readonly #restarted = new WeakSet<RunningProgram>();
  #marks = 0;

  private constructor(
    cluster: Cluster,
    proxies: ReadonlyMap<string, NodeProxies>,
    options: Required<KillClusterOptions>,
    opened: AsyncDisposableStack,
  ) {
    this.cluster = cluster;
    this.#proxies = proxies;
    this.nodes = [...proxies.keys()];
    this.#options = options;
    this.#opened = opened;
  }

  static async start(given: KillClusterOptions): Promise<KillCluster> {
    const options = { accounts: 1, environment: {}, itlMs: 10, turns: [], router: {}, agent: {}, ...given };
    const { nodes, accounts, environment, turns, router } = options;
    const opened = new AsyncDisposableStack();
    try {
      const proxies = await openProxies(nodes, opened);
      const { port } = proxies.get("node-1")!.data;
      const cluster = await Cluster.start({
        catalogue: [...catalogueOf(chatModel, ...turns), embeddingEntry],
        agents: {},
        // An agent replaces this address by the address at which it has just reached the router, which is its own
        // proxy.
        router: { ...router, nodes: { dataAdvertise: `0.0.0.0:${port}` } },
        environment,
      });
      opened.use(cluster);
      const it = new KillCluster(cluster, proxies, options, opened);
      it.#forward();
      for (const node of it.nodes) await it.startAgent(node);
      await cluster.linked();
      for (let number = 0; number < accounts; number++) it.accounts.push(await cluster.account(`Customer-${number}`));
      for (const node of it.nodes) await it.warm(node);
      return it;
    } catch (error) {
      await opened.disposeAsync();
      throw error;
    }
  }

  /** Sends a request and keeps its client's view. */
  async ask({ kind = "stream", steering, leaves, ...reading }: Wish = {}): Promise<Received> {
    const mark = ++this.#marks;
    const { apiKey } = this.accounts[mark % this.accounts.length]!;
    const leaving = new AbortController();
    const timer = leaves && "afterMs" in leaves ? setTimeout(() => leaving.abort(), leaves.afterMs) : undefined;
    const onPiece = (pieces: number) => {
      reading.onPiece?.(pieces);
      if (leaves && "afterPieces" in leaves && pieces >= leaves.afterPieces) leaving.abort();
    };
    const words = [`mark=${mark}`, steering].filter(Boolean).join(",");
    const [path, body] = bodyOf(kind, `sim:${words} go on`);
    const client = { baseUrl: this.cluster.baseUrl, apiKey };
    const answer = await ask(client, path, body, { ...reading, onPiece, signal: leaving.signal });
    clearTimeout(timer);
    const one = { ...answer, mark, kind };
    this.received.push(one);
    return one;
  }

  startAgent(node: string): Promise<void> {
    const { host, link } = this.#proxies.get(node)!;
    const { agent } = this.#options;
    return this.cluster.startAgent(node, { ...agent, slots: this.#slotsOf(node), routers: [`${host}:${link.port}`] });
  }

  async killAgent(node: string): Promise<void> {
    await this.outage("agent killed", async () => {
      const agent = this.cluster.agents.get(node)!;
      agent.kill("SIGKILL");
      await agent.exited();
      await this.startAgent(node);
    });
  }

  async killRouter(): Promise<void> {
    await this.outage("router killed", async () => {
      this.cluster.router.kill("SIGKILL");
      await this.cluster.router.exited();
      await this.cluster.startRouter();
    });
  }

  async killEngine(node: string): Promise<void> {
    await this.outage("engine killed", async () => {
      const { pid } = this.engine(node);
      if (pid !== undefined && isAlive(pid)) process.kill(pid, "SIGKILL");
      await until("the engine to be gone", () => this.engine(node).pid !== pid);
    });
  }

  /**
   * Makes all requests fail at this engine until its agent restarts it or it recovers by itself. The agent of an only node
   * must restart it, but only once in five minutes. With several nodes too few requests may fail, because routers avoid it.
   */
  async failEngine(node: string): Promise<void> {
    await this.outage("engine killed", async () => {
      const agent = this.cluster.agents.get(node)!;
      const { pid } = this.engine(node);
      if (pid !== undefined) await this.engine(node).setFaults("500:1");
      const isRestarted = () => this.engine(node).pid !== pid;
      const mustRestart = this.nodes.length === 1 && !this.#restarted.has(agent);
      const restarted = until("the agent to restart the engine", isRestarted, mustRestart ? 60_000 : failingMs);
      await (mustRestart ? restarted : restarted.catch(() => {}));
      if (isRestarted()) this.#restarted.add(agent);
      else await this.engine(node).setFaults();
    });
  }

  /** Runs an attack beside the load from separate accounts. Rejects if the guard against it does not hold. */
  async attack(attack: Attack, ms: number): Promise<void> {
    const given = this.#given.get(attack) ?? (await attack.prepare?.(this.cluster)) ?? {};
    this.#given.set(attack, given);
    await until(`${attack.name} to reach its target`, async () => {
      const attacker = await startAttacker(attack, targetOf(this.cluster, attack, given));
      await sleep(ms);
      const seen = { tally: await attacker.stop(), grown: () => 0 };
      const mistakes = attack.mistakes?.(seen) ?? [];
      if (mistakes.length > 0) throw new Error(`${attack.name}: ${mistakes.join("; ")}`);
      return attack.missing(seen).length === 0;
    });
  }

  async killDatabase(): Promise<void> {
    await this.outage("database killed", async () => {
      const { pid } = postmasterOf(this.cluster);
      await killed(pid);
      await this.databaseBack();
    });
  }

  async databaseBack(): Promise<void> {
    await until("a database server", () => {
      const found = postmasterOf(this.cluster);
      return found?.status === "ready" && isAlive(found.pid);
    });
  }

  /** Freezes an agent, as a swapping host does. */
  async stopAgent(node: string, meanwhile: () => Promise<unknown>): Promise<void> {
    await this.outage("agent stopped", async () => {
      const agent = this.cluster.agents.get(node)!;
      agent.kill("SIGSTOP");
      await meanwhile().finally(() => agent.kill("SIGCONT"));
    });
  }

  /** Makes connections of nodes half-open. */
  async silence(
    nodes: readonly string[],
    which: "link" | "data" | "both",
    directions: readonly Direction[],
    meanwhile: () => Promise<unknown>,
  ): Promise<void> {
    await this.outage("link silent", async () => {
      const proxies = nodes.flatMap((node) => {
        const { link, data } = this.#proxies.get(node)!;
        return which === "both" ? [link, data] : [which === "link" ? link : data];
      });
      for (const proxy of proxies) proxy.silence(...directions);
      await meanwhile().finally(() => proxies.forEach((proxy) => proxy.speak()));
    });
  }

  /** Records an outage. `happens` causes the failure and resolves when it is over. */
  async outage(what: Outage["what"], happens: () => Promise<void>): Promise<void> {
    const outage = { what, fromMs: Date.now(), untilMs: Infinity };
    this.outages.push(outage);
    await happens();
    await this.cluster.linked();
    outage.untilMs = Date.now();
  }

  get isRouterDown(): boolean {
    return this.outages.some(({ what, untilMs }) => what === "router killed" && untilMs === Infinity);
  }

  engine(node: string, kind: Received["kind"] = "stream"): SimNodeEngine {
    const [slot, model] = kind === "embeddings" ? (["embed", embeddingModel] as const) : (["chat", chatModel] as const);
    return new SimNodeEngine(join(this.cluster.directory, node), slot, model);
  }

  /** Returns the node whose engine gives answers of this length. */
  readonly nodeOf = (completionTokens: number): string | undefined => this.nodes[completionTokens - shortestAnswer];

  /**
   * Resolves when all bills are right and nothing runs, waits or is undelivered. After 60 s without load, rejects with the
   * faults.
   */
  async settled(): Promise<void> {
    await this.cluster.linked();
    let faults: readonly string[] = ["nothing was checked"];
    const isRight = async () => (faults = await this.#faults()).length === 0;
    await until("all bills to be right", isRight, 60_000).catch(() => {
      throw new Error(`after 60 s without load, ${faults.length} faults:\n${faults.slice(0, 40).join("\n")}`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }

  busy(): Promise<readonly string[]> {
    return stillBusy(this.cluster, (node) => this.engine(node));
  }

  async #faults(): Promise<readonly string[]> {
    const busy = await this.busy();
    if (busy.length > 0) return busy;
    const usage = ofAccounts(await dumpAllUsage(this.cluster), (id) =>
      this.accounts.some(({ accountId }) => accountId === id),
    );
    const { received, outages, nodeOf } = this;
    const made = this.nodes.flatMap((node) => readJournal(journalOf(this.cluster, node), node, this.#options.itlMs));
    const billed = billingFaults({ received, made, usage, outages, nodeOf });
    return billed.length > 0 ? billed : commandFaults(this.cluster, this.accounts, usage.totals);
  }

  #slotsOf(node: string): object[] {
    const journal = journalOf(this.cluster, node);
    const tokens = shortestAnswer + this.nodes.indexOf(node);
    const paced = { "itl-ms": this.#options.itlMs, "ttft-ms": 50, tokens, journal };
    const env = { ...this.#options.environment, WEICHE_DATA_DIR: join(this.cluster.directory, node) };
    const slot = { backoffSeconds: { min: 1, max: 1 } };
    const { turns } = this.#options;
    const turning = turns.map((model) => ({ ...simEngine(model, { journal }), env }));
    const quick = { ...slot, name: "turns", minResidencySeconds: 0, drainOpenSeconds: 1 };
    return [
      ...(turns.length > 0 ? [{ ...quick, engines: turning }] : []),
      { ...slot, name: "chat", engines: [{ ...simEngine(chatModel, paced), env }] },
      { ...slot, name: "embed", engines: [{ ...simEngine(embeddingModel, { journal }), env }] },
    ];
  }

  #forward(): void {
    const portOf = (name: string) => Number(this.cluster.router.listen[name]!.split(":")[1]);
    for (const { link, data } of this.#proxies.values()) {
      link.to(portOf("nodes"));
      data.to(portOf("data"));
    }
  }

  /** Starts both engines first, so that starts do not affect the tests. */
  async warm(node: string): Promise<void> {
    for (const model of [chatModel, embeddingModel]) {
      await until(`${model} on ${node}`, async () => {
        await this.cluster.weiche("prewarm", model, "--node", node);
        const nodes = await this.cluster.nodes();
        const slots = nodes.find(({ name }) => name === node)?.slots ?? [];
        return slots.some(({ active, state }) => active === model && state === "active");
      });
    }
  }
}

function bodyOf(kind: Received["kind"], content: string): [path: string, body: object] {
  if (kind === "embeddings") return ["/embeddings", { model: embeddingModel, input: content }];
  const streamed = kind === "stream" && { stream: true, stream_options: { include_usage: true } };
  return ["/chat/completions", { model: chatModel, messages: [{ role: "user", content }], ...streamed }];
}

const embeddingEntry = {
  ...{ id: embeddingModel, category: "embeddings", status: "Beta", contextTokens: 8_192 },
  factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 0.25 }],
  embeddings: { dimensions: { min: 1, max: 64, default: 64 }, inputTokens: 8_192 },
};
