/**
 * Runs a whole Weiche with one kind of engine. Two chat models share a slot with an engine of two more, if there is one.
 * An embedding model has another slot.
 */
import { join } from "node:path";
import { ask, type Answer, type Reading } from "../cluster/api-client.ts";
import { Cluster, engineHandles, until, type Account, type EngineHandle } from "../cluster/cluster.ts";
import { parseMetrics, samplesOf } from "../cluster/metrics-text.ts";
import { inputTokens, windowTokens, type EngineKind } from "./engine-kinds.ts";

const node = "node-1";
/** The models. The first two have the same weights under two names. */
export const [first, second, embedder] = ["tiny-first", "tiny-second", "tiny-embed"] as const;
/** The models of the engine that serves two. The second one costs more. */
export const sharing = [
  { id: "tiny-base", factor: 1 },
  { id: "tiny-other", factor: 3 },
] as const;
export const shared = sharing.map(({ id }) => id) as unknown as readonly ["tiny-base", "tiny-other"];
export const slotOf = (model: string) => (model === embedder ? "embeddings" : "chat");

/** A word in the prompts of the checks that must not appear in any file. */
export const canary = "Zyxwalbatross";

/** The forms of an answer. */
export const forms = ["body", "stream"] as const;

interface Counters {
  readonly prompt: number;
  readonly completion: number;
  readonly running: number;
}

export interface AskOptions extends Reading {
  readonly account?: Account;
}

export class Service implements AsyncDisposable {
  readonly kind: EngineKind;
  readonly cluster: Cluster;
  #account!: Account;
  #accounts = 0;

  private constructor(kind: EngineKind, cluster: Cluster) {
    this.kind = kind;
    this.cluster = cluster;
  }

  static async start(kind: EngineKind): Promise<Service> {
    const quick = { minResidencySeconds: 0, drainOpenSeconds: 1 };
    const slot = { ...quick, startSeconds: kind.startMs / 1_000, waiterSeconds: 600 };
    const engines: object[] = [first, second].map((model) => ({ model, ...kind.chat(model) }));
    if (kind.several) engines.push(kind.several.served(shared));
    const embeddings = { model: embedder, ...kind.embeddings(embedder) };
    const slots = [
      { ...slot, name: slotOf(first), engines },
      { ...slot, name: slotOf(embedder), engines: [embeddings] },
    ];
    const cluster = await Cluster.start({ catalogue, agents: { [node]: { slots } } });
    const service = new Service(kind, cluster);
    await service.freshAccount();
    return service;
  }

  /** Creates an account. Later requests without an account use it. */
  async freshAccount(): Promise<Account> {
    return (this.#account = await this.account());
  }

  async account(): Promise<Account> {
    return await this.cluster.account(`Account${++this.#accounts}`);
  }

  ask(path: string, body: object, { account = this.#account, ...reading }: AskOptions = {}): Promise<Answer> {
    return ask({ baseUrl: this.cluster.baseUrl, apiKey: account.apiKey }, path, body, reading);
  }

  /** Sends a chat to the first model, unless `more` names another. A text is the user's message. */
  chat(asked: string | object, more: object = {}, options: AskOptions = {}): Promise<Answer> {
    const messages = typeof asked === "string" ? { messages: [{ role: "user", content: asked }] } : asked;
    return this.ask("/chat/completions", { model: first, temperature: 0, ...messages, ...more }, options);
  }

  async inForm(form: (typeof forms)[number], asked: string | object, more: object = {}): Promise<Answer> {
    return await (form === "stream" ? this.stream(asked, more) : this.chat(asked, more));
  }

  /** Sends a chat as `chat` does, as a stream with usage. */
  async stream(asked: string | object, more: object = {}, options: AskOptions = {}): Promise<Answer> {
    return await this.chat(asked, { stream: true, stream_options: { include_usage: true }, ...more }, options);
  }

  get agentDirectory(): string {
    return join(this.cluster.directory, node);
  }

  #engineOf(model: string): EngineHandle | undefined {
    return engineHandles(this.agentDirectory).get(`${slotOf(model)}-${model}`);
  }

  /** Returns the engine's process id, or undefined if no engine runs. */
  pidOf(model: string): number | undefined {
    return this.#engineOf(model)?.pid;
  }

  /** Reads the counters of the first chat model's engine from the engine itself. */
  async counters(): Promise<Counters> {
    const text = await (await fetch(`${this.#engineOf(first)!.endpoint.origin}/metrics`)).text();
    const samples = [...samplesOf(parseMetrics(text))];
    const sum = (names: readonly string[]) => {
      const own = samples.filter(([series]) => names.includes(series.replace(/\{.*/, "")));
      return own.reduce((total, [, value]) => total + value, 0);
    };
    const { prompt, completion, running } = this.kind.counters;
    return { prompt: sum(prompt), completion: sum(completion), running: sum(running) };
  }

  /** Waits until the engine is idle. Resolves with the milliseconds that this took. */
  async idle(): Promise<number> {
    const sinceMs = performance.now();
    await until("the engine to be idle", async () => (await this.counters()).running === 0);
    return Math.round(performance.now() - sinceMs);
  }

  async killAgent(): Promise<void> {
    const agent = this.cluster.agents.get(node)!;
    agent.kill("SIGKILL");
    await agent.exited();
  }

  /** Stops the agent and resolves with its exit code. */
  async stopAgent(): Promise<number | NodeJS.Signals> {
    return await this.cluster.agents.get(node)!.stop();
  }

  async startAgent(): Promise<void> {
    await this.cluster.startAgent(node);
    await this.cluster.linked();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
  }
}

const priced = (factor: number) => ({
  status: "Beta",
  factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor }],
});
const catalogue = [
  ...[{ id: first, factor: 1 }, { id: second, factor: 1 }, ...sharing].map(({ id, factor }) => ({
    ...{ id, category: "language", contextTokens: windowTokens, ...priced(factor) },
    reasoning: { mode: "optional", efforts: ["none", "low", "medium"], templateKwargs: "accepted" },
    tools: { enforced: true },
  })),
  {
    ...{ id: embedder, category: "embeddings", contextTokens: inputTokens, ...priced(1) },
    embeddings: { dimensions: { min: 16, max: 192, default: 192 }, inputTokens },
  },
];
