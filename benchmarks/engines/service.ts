/** A whole Weiche above one kind of engine: two chat models that share a slot, embeddings in another. What checks ask. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Cluster, enginePids, until } from "../cluster/cluster.ts";
import { parseMetrics, samplesOf } from "../cluster/metrics-text.ts";
import { readAnswer, type Answer } from "./answer.ts";
import { inputTokens, windowTokens, type EngineKind } from "./engine-kinds.ts";

const node = "node-1";
/** The models; the first two are the same weights under two names. */
export const [first, second, embedder] = ["tiny-first", "tiny-second", "tiny-embed"] as const;
const slotOf = (model: string) => (model === embedder ? "embeddings" : "chat");

/** Nothing of prompts may be written down anywhere: each check's prompts have this word in them where it does no harm. */
export const canary = "Zyxwalbatross";

/** In which an answer can be asked for. */
export const forms = ["body", "stream"] as const;

export interface Counters {
  readonly prompt: number;
  readonly completion: number;
  readonly running: number;
}

export interface Account {
  readonly accountId: string;
  readonly apiKey: string;
}

export interface AskOptions {
  readonly account?: Account;
  readonly signal?: AbortSignal;
  readonly onPiece?: (pieces: number) => void;
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
    const slot = {
      minResidencySeconds: 0,
      drainOpenSeconds: 1,
      startSeconds: kind.startMs / 1_000,
      waiterSeconds: 600,
    };
    const engines = [first, second].map((model) => ({ model, ...kind.chat(model) }));
    const embeddings = { model: embedder, ...kind.embeddings(embedder) };
    const cluster = await Cluster.start({
      catalogue,
      agents: {
        [node]: {
          slots: [
            { ...slot, name: slotOf(first), engines },
            { ...slot, name: slotOf(embedder), engines: [embeddings] },
          ],
        },
      },
    });
    const service = new Service(kind, cluster);
    await service.freshAccount();
    return service;
  }

  /** From now on what names no account comes from a new one, which has sent nothing yet. */
  async freshAccount(): Promise<Account> {
    return (this.#account = await this.account());
  }

  async account(): Promise<Account> {
    return await this.cluster.account(`Account${++this.#accounts}`);
  }

  async post(path: string, body: object, { account = this.#account, signal }: AskOptions = {}): Promise<Response> {
    return await fetch(`${this.cluster.baseUrl}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${account.apiKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      ...(signal ? { signal } : {}),
    });
  }

  /** A chat with the first model, unless `body` names another; a text is the user's message. */
  async chat(asked: string | object, more: object = {}, options: AskOptions = {}): Promise<Answer> {
    const messages = typeof asked === "string" ? { messages: [{ role: "user", content: asked }] } : asked;
    const body = { model: first, temperature: 0, ...messages, ...more };
    try {
      return await readAnswer(await this.post("/chat/completions", body, options), options.onPiece);
    } catch {
      return gone;
    }
  }

  async inForm(form: (typeof forms)[number], asked: string | object, more: object = {}): Promise<Answer> {
    return await (form === "stream" ? this.stream(asked, more) : this.chat(asked, more));
  }

  /** The same, as a stream with usage. */
  async stream(asked: string | object, more: object = {}, options: AskOptions = {}): Promise<Answer> {
    return await this.chat(asked, { stream: true, stream_options: { include_usage: true }, ...more }, options);
  }

  get agentDirectory(): string {
    return join(this.cluster.directory, node);
  }

  /** The engine's process; undefined: it does not run. */
  pidOf(model: string): number | undefined {
    return enginePids(this.agentDirectory).get(`${slotOf(model)}-${model}`);
  }

  /** What the engine says of itself, past agent and router. */
  async counters(model: string = first): Promise<Counters> {
    const file = join(this.agentDirectory, "agent/engines", `${slotOf(model)}-${model}.json`);
    const { endpoint } = JSON.parse(readFileSync(file, "utf8")) as { endpoint: { origin: string } };
    const text = await (await fetch(`${endpoint.origin}/metrics`)).text();
    const samples = [...samplesOf(parseMetrics(text))].map(
      ([series, value]) => [series.replace(/\{.*/, ""), value] as const,
    );
    const sum = (names: readonly string[]) =>
      samples.filter(([name]) => names.includes(name)).reduce((total, [, value]) => total + value, 0);
    const { prompt, completion, running } = this.kind.counters;
    return { prompt: sum(prompt), completion: sum(completion), running: sum(running) };
  }

  /** Resolves once the engine works on nothing, with the time that it took. */
  async idle(model: string = first, boundMs = 30_000): Promise<number> {
    const sinceMs = performance.now();
    await until("the engine to be idle", async () => (await this.counters(model)).running === 0, boundMs);
    return Math.round(performance.now() - sinceMs);
  }

  async killAgent(): Promise<void> {
    const agent = this.cluster.agents.get(node)!;
    agent.kill("SIGKILL");
    await agent.exited();
  }

  /** Asks the agent to end, and resolves with its exit code. */
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

/** No answer at all: the client left, or the connection was lost or given up. */
const gone: Answer = {
  ...{ id: undefined, status: 0, ending: "broken", choices: [], usage: undefined, error: undefined },
  ...{ pieces: 0, longestGapMs: 0 },
};

const shared = { status: "Beta", factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 1 }] };
const catalogue = [
  ...[first, second].map((id) => ({
    ...{ id, category: "language", contextTokens: windowTokens, ...shared },
    reasoning: { mode: "optional", efforts: ["none", "low", "medium"], templateKwargs: "accepted" },
    tools: { enforced: true },
  })),
  {
    ...{ id: embedder, category: "embeddings", contextTokens: inputTokens, ...shared },
    embeddings: { dimensions: { min: 16, max: 192, default: 192 }, inputTokens },
  },
];
