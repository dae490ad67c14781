/** Starts the real API server with simulated keys and nodes. Clients connect over real sockets. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { parseCatalogue, type Catalogue } from "@weiche/shared/catalogue.ts";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import {
  asId,
  type AccountId,
  type KeyId,
  type ModelId,
  type NodeId,
  type RequestId,
  type UserId,
} from "@weiche/shared/ids.ts";
import type { AnswerKind, EngineDeath, NodeFault } from "@weiche/shared/node-protocol.ts";
import type { Caller, KeyCache, KeyRefusal } from "../../src/callers/caller.ts";
import type { FinishedRequest } from "../../src/api/exchange.ts";
import type { SentAttempt } from "../../src/api/sent-attempts.ts";
import type { RefusalCode } from "../../src/usage/refusal-codes.ts";
import type { Limiter } from "../../src/limits/limiter.ts";
import { MemoryLimiter } from "../../src/limits/memory-limiter.ts";
import type { Placement, PlacementRequest } from "../../src/nodes/placement.ts";
import { NodeLost, type AnswerBody, type AnswerEnding, type AnswerReader } from "../../src/nodes/upstream.ts";
import type { Upstream, UpstreamRequest } from "../../src/nodes/upstream.ts";
import { createApiServer, type ApiServer, type ApiServerDeps, type ApiTimes } from "../../src/api/server.ts";

export const catalogue: Catalogue = readCatalogue("../../../deploy/catalogue.yaml");

function readCatalogue(path: string): Catalogue {
  const result = parseCatalogue(readFileSync(join(import.meta.dirname, path), "utf8"));
  if (!result.catalogue) throw new Error(JSON.stringify(result.mistakes));
  return result.catalogue;
}

export function caller(more: Partial<Caller> = {}): Caller {
  return {
    accountId: asId<AccountId>("account-1"),
    userId: asId<UserId>("user-1"),
    keyId: asId<KeyId>("key-1"),
    allowedModels: undefined,
    requestsPerMinute: 1_000_000,
    parallelRequests: 10_000,
    ...more,
  };
}

export function allow(...models: string[]): Caller {
  return caller({ allowedModels: new Set(models.map((model) => asId<ModelId>(model))) });
}

/** Keys by their value. Contains `sk-good` from the beginning. */
class SimKeys extends Map<string, Caller | KeyRefusal> implements KeyCache {
  find(key: string): Caller | KeyRefusal {
    return this.get(key) ?? { refused: "invalid_api_key", why: "unknown" };
  }
}

/** The reaction of a simulated node to one request. */
export interface SimAnswer {
  readonly status?: number;
  /** Defaults to `json`. */
  readonly kind?: AnswerKind;
  readonly retryAfterSeconds?: number;
  /** The pieces of the body in order. The node waits for promises among them. */
  readonly chunks?: Iterable<string | Buffer | Promise<unknown>>;
  readonly ending?: AnswerEnding;
  readonly engineDeath?: EngineDeath;
  readonly nodeFault?: NodeFault;
  /** The node is lost before the head of its answer. */
  readonly lost?: true;
  /** The head waits for this promise. */
  readonly held?: Promise<unknown>;
  /** The stream ends in an error. */
  readonly failing?: true;
}

/** Simulates nodes that answer as a script defines. `open` counts the requests still in work. */
class SimNodes implements Upstream {
  readonly sent: { readonly node: NodeId; readonly request: UpstreamRequest }[] = [];
  script: (request: UpstreamRequest, node: NodeId) => SimAnswer = () => ({ chunks: ['{"ok":true}'] });
  open = 0;

  async send(node: NodeId, request: UpstreamRequest, signal: AbortSignal) {
    this.sent.push({ node, request });
    const answer = this.script(request, node);
    if (answer.lost) throw new NodeLost("simulated");
    this.open++;
    const body = new SimBody(answer);
    body.stream.once("close", () => this.open--).on("error", () => {});
    try {
      if (answer.held) await Promise.race([answer.held, aborted(signal)]);
      signal.throwIfAborted();
    } catch (error) {
      body.cancel();
      throw error;
    }
    const { status = 200, kind = "json", retryAfterSeconds = 0 } = answer;
    return { status, kind, retryAfterSeconds, waited: undefined, body };
  }
}

class SimBody implements AnswerBody {
  readonly stream: Readable;
  readonly ending: AnswerEnding;
  readonly engineDeath: EngineDeath | undefined;
  readonly nodeFault: NodeFault | undefined;

  constructor({ chunks = [], failing, ending, engineDeath, nodeFault }: SimAnswer) {
    this.engineDeath = engineDeath;
    this.nodeFault = nodeFault;
    this.ending = ending ?? (failing ? "broken" : "complete");
    const pieces = chunks[Symbol.iterator]();
    this.stream = new Readable({
      highWaterMark: 16_384,
      read() {
        const { value, done } = pieces.next();
        if (value instanceof Promise) void value.then(() => this.destroyed || this._read(0));
        else if (!done) this.push(Buffer.from(value));
        else if (failing) this.destroy(new Error("simulated stream error"));
        else this.push(null);
      },
    });
  }

  readInto(reader: AnswerReader): void {
    this.stream.on("data", (piece: Buffer) => reader.take(piece)).once("close", () => reader.end());
  }

  pause(): void {
    this.stream.pause();
  }

  resume(): void {
    this.stream.resume();
  }

  cancel(): void {
    this.stream.destroy();
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
}

export interface Harness extends AsyncDisposable {
  readonly port: number;
  readonly server: ApiServer;
  readonly keys: SimKeys;
  readonly nodes: SimNodes;
  readonly limiter: MemoryLimiter;
  /** The requests whose place was given back, once for each time. */
  readonly left: RequestId[];
  /** The nodes or a refusal that placement returns, and the requests for a placement. */
  readonly placement: {
    names: string[];
    refused?: "no_node_available" | "maintenance" | undefined;
    awayMs?: number;
    readonly asked: PlacementRequest[];
  };
  readonly finished: FinishedRequest[];
  /** The errors that the router reported as bugs. */
  readonly failures: unknown[];
  /** The refusals that were counted for known keys. */
  readonly refused: RefusalCode[];
  /** The verdicts about attempts, such as `void n1 1`. */
  readonly verdicts: string[];
  /** The outcomes of attempts that placement records, such as `n1 failed`. */
  readonly ends: string[];
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  fetch(path: string, init?: RequestInit): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined if it is not JSON. */
  readonly json: any;
}

interface HarnessOptions {
  readonly clock?: Clock;
  readonly times?: Partial<ApiTimes>;
  readonly limits?: Partial<ApiServerDeps["config"]["limits"]>;
  readonly requestMsMax?: number;
  readonly tls?: ApiServerDeps["tls"];
  readonly catalogue?: () => Catalogue;
  /** Replaces the simulated nodes. */
  readonly upstream?: Upstream;
  readonly place?: ApiServerDeps["place"];
  /** Replaces the lists of the harness. */
  readonly events?: ApiServerDeps["events"];
  /** Wraps the harness's limiter in another one. */
  readonly limiter?: (memory: Limiter) => Limiter;
}

export async function startApi(options: HarnessOptions = {}): Promise<Harness> {
  const clock = options.clock ?? systemClock;
  const keys = new SimKeys([["sk-good", caller()]]);
  const nodes = new SimNodes();
  const limiter = new MemoryLimiter(clock);
  const left: RequestId[] = [];
  const leave = limiter.leave.bind(limiter);
  limiter.leave = (account, request) => {
    left.push(request);
    leave(account, request);
  };
  const placement: Harness["placement"] = { names: ["n1", "n2"], asked: [] };
  const finished: FinishedRequest[] = [];
  const failures: unknown[] = [];
  const refused: RefusalCode[] = [];
  const verdicts: string[] = [];
  const ends: string[] = [];
  const decided = (word: string) => (sent: SentAttempt) => void verdicts.push(`${word} ${sent.node} ${sent.attempt}`);
  const place = (request: PlacementRequest, exclude: ReadonlySet<NodeId>): Placement => {
    placement.asked.push(request);
    if (placement.refused) return { ...placement, refused: placement.refused };
    const node = placement.names.map((name) => asId<NodeId>(name)).find((name) => !exclude.has(name));
    return node ? { node, slot: asId("a") } : { refused: "no_node_available" };
  };
  const server = createApiServer({
    keys,
    limiter: options.limiter?.(limiter) ?? limiter,
    catalogue: options.catalogue ?? (() => catalogue),
    place: options.place ?? place,
    began({ node }) {
      let isOver = false;
      return (end) => {
        if (end !== "overloaded" && end.outcome === "answered") return; // the first byte does not end the attempt
        if (!isOver) ends.push(`${node} ${end === "overloaded" ? end : end.outcome}`);
        isOver = true;
      };
    },
    upstream: options.upstream ?? nodes,
    verdicts: { settled: decided("settled"), declareVoid: decided("void"), declareRefused: decided("refused") },
    clock,
    events: options.events ?? {
      requestFinished: (facts) => finished.push(facts),
      requestFailed: (_id, error) => failures.push(error),
      connectionRefused() {},
      forwardedUnread() {},
      requestRefused: (_of, code) => refused.push(code),
    },
    config: {
      listen: { api: { host: "127.0.0.1", port: 0 } },
      limits: { perIpPerSecond: 0, perIpBurst: 20, trustedProxies: [], ...options.limits },
      requestMsMax: options.requestMsMax ?? 600_000,
    },
    ...(options.times ? { times: options.times } : {}),
    ...(options.tls ? { tls: options.tls } : {}),
  });
  const { port } = await server.listen();
  const request = async (path: string, init: RequestInit = {}): Promise<Answer> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: tryParse(text) };
  };
  const authorization = "Bearer sk-good";
  return {
    port,
    server,
    keys,
    nodes,
    limiter,
    left,
    placement,
    finished,
    failures,
    refused,
    verdicts,
    ends,
    fetch: request,
    get: (path, headers = {}) => request(path, { headers: { authorization, ...headers } }),
    post: (path, body, headers = {}) =>
      request(path, {
        method: "POST",
        headers: { authorization, "content-type": "application/json", ...headers },
        body: typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body),
      }),
    [Symbol.asyncDispose]: () => server.close(0),
  };
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const chat = (more: Record<string, unknown> = {}) => ({
  model: "general-4-31b",
  messages: [{ role: "user", content: "Hello" }],
  ...more,
});
