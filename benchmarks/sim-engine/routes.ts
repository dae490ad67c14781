/** The paths of the simulated engine: the API, health, sleep, tokenising, and what only checkers ask (`/sim/...`). */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "@weiche/shared/clock.ts";
import type { Answer, EngineFigures, SimDialect } from "./answer.ts";
import type { EngineCore } from "./core.ts";
import { embed, toBase64 } from "./embeddings.ts";
import type { Fault, Faults } from "./faults.ts";
import { Generation, type GenerationHost } from "./generation.ts";
import type { Ledger } from "./ledger.ts";
import {
  asNumber,
  countChatTokens,
  countTokens,
  inputTokens,
  isTokenList,
  parseSteering,
  readChat,
  readCompletion,
  type Body,
  type SimRequest,
} from "./request.ts";
import { Sink } from "./sink.ts";
import type { TimerWheel } from "./timer-wheel.ts";

export interface EngineFacts {
  readonly model: string;
  readonly ttftMs: number;
  readonly itlMs: number;
  readonly tokens: number;
  readonly reasoningTokens: number;
  readonly contextTokens: number;
  readonly maxRunning: number;
  readonly sleepMs: number;
  readonly wakeMs: number;
  readonly embeddingDimensions: number;
  readonly keepBodies: boolean;
}

export interface EngineParts {
  readonly facts: EngineFacts;
  readonly dialect: SimDialect;
  readonly clock: Clock;
  readonly wheel: TimerWheel;
  readonly core: EngineCore;
  readonly faults: Faults;
  readonly ledger: Ledger;
  loaded(): boolean;
  crash(): void;
}

export class EngineRoutes {
  readonly #parts: EngineParts;
  readonly #host: GenerationHost;
  readonly #figures = { promptTokens: 0, generatedTokens: 0, endedTokens: 0, finished: new Map<string, number>() };
  #count = 0;
  #lastResultMs = 0;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    const { dialect, wheel, ledger, core } = parts;
    this.#host = {
      wheel,
      ledger,
      terminatesErrors: dialect.terminatesErrors,
      errorEvent: () => dialect.errorEvent(),
      internalError: () => dialect.refusal("internal"),
      made: (tokens) => {
        this.#figures.generatedTokens += tokens;
        this.#lastResultMs = wheel.nowMs;
      },
      leave: (work) => core.leave(work),
      ended: (answer, reason) => {
        this.#figures.endedTokens += answer.entry.generated;
        this.#figures.finished.set(reason, (this.#figures.finished.get(reason) ?? 0) + 1);
      },
      crash: () => parts.crash(),
    };
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("error", () => {});
    response.on("error", () => {});
    request.on("end", () => {
      this.#route(request, Buffer.concat(chunks), response).catch(() => this.#refuse(response, "internal"));
    });
  }

  async #route(request: IncomingMessage, bytes: Buffer, response: ServerResponse): Promise<void> {
    const { dialect, facts, loaded } = this.#parts;
    const url = new URL(request.url ?? "/", "http://engine");
    const path = `${request.method} ${url.pathname}`;
    if (path.includes(" /sim/")) return this.#checkers(path, bytes, response);
    if (!loaded()) return this.#refuse(response, "unavailable");
    switch (path) {
      case "GET /health":
        return answer(response, 200, dialect.canSleep ? "" : '{"status":"ok"}');
      case "GET /v1/models":
        return answer(response, 200, dialect.models(facts.model, facts.contextTokens));
      case "GET /version":
        return answer(response, 200, { version: "0.27.0" });
      case "GET /metrics":
        this.#lastResultMs = this.#parts.wheel.nowMs; // a scrape counts as a result: see the late leavers below
        return answer(response, 200, dialect.metrics(facts.model, this.#now()), "text/plain; version=0.0.4");
      default:
    }
    if (request.method === "POST" && /^\/(sleep|wake_up|collective_rpc|reset_prefix_cache)$/.test(url.pathname))
      return this.#sleepOrWake(url, bytes, response);
    if (path === "GET /is_sleeping" && dialect.canSleep)
      return answer(response, 200, { is_sleeping: this.#parts.core.sleeping });
    if (request.method !== "POST") return this.#refuse(response, "not-found");
    const body = parse(bytes);
    if (!body) return this.#refuse(response, "bad-json");
    const id = String(request.headers["x-request-id"] ?? `sim-${++this.#count}`);
    switch (url.pathname) {
      case "/v1/chat/completions":
        return this.#generate(readChat(id, body, this.#defaults()), response);
      case "/v1/completions":
        return this.#generate(readCompletion(id, body, this.#defaults()), response);
      case "/v1/embeddings":
        return this.#embeddings(id, body, response);
      case "/tokenize":
        return answer(response, 200, this.#tokenize(body));
      case "/v1/chat/completions/input_tokens":
        return answer(response, 200, { input_tokens: countChatTokens(body), object: "response.input_tokens" });
      default:
        return this.#refuse(response, "not-found");
    }
  }

  #generate(request: SimRequest, response: ServerResponse): void {
    const { dialect, facts, clock, core, faults, ledger, wheel } = this.#parts;
    const fault = request.steering.fault ?? faults.take("request");
    const refusal = dialect.check(request, facts.model, facts.contextTokens);
    if (refusal) return answer(response, refusal.status, refusal.body);
    if (fault && this.#answersWrong(fault, request, response)) return;
    const fields = Object.keys(request.body);
    const body = facts.keepBodies ? { body: request.body } : {};
    const path = request.kind === "chat" ? "/v1/chat/completions" : "/v1/completions";
    const entry = ledger.open({ id: request.id, path, prompt_tokens: request.promptTokens, fields, ...body });
    if (fault) entry.fault = fault.kind;
    const made: Answer = {
      request,
      id: request.id,
      createdSeconds: Math.floor(clock.now() / 1000),
      model: facts.model,
      entry,
      ...(fault ? { fault: fault.kind } : {}),
    };
    this.#figures.promptTokens += request.promptTokens;
    const pace = { ttftMs: request.steering.ttftMs ?? facts.ttftMs, itlMs: request.steering.itlMs ?? facts.itlMs };
    const generation = new Generation(this.#host, made, dialect.form(made), new Sink(response), pace, fault);
    response.once("close", () => {
      if (dialect.noticesLeaversLate && !generation.producing) this.#noticeLate(wheel.nowMs, generation);
      else generation.callerLeft();
      if (dialect.closesAfterStream && request.stream) response.socket?.destroySoon();
    });
    core.submit(generation);
  }

  /** Looked at only once nobody in the engine has got a result for a second. */
  #noticeLate(sinceMs: number, generation: Generation): void {
    const { wheel } = this.#parts;
    const quietSinceMs = Math.max(sinceMs, this.#lastResultMs);
    if (wheel.nowMs - quietSinceMs >= 1_000) return generation.callerLeft();
    wheel.add(quietSinceMs + 1_000, { due: () => this.#noticeLate(sinceMs, generation) });
  }

  /** Faults of the answer as a whole, before anything is generated. */
  #answersWrong({ kind }: Fault, request: SimRequest, response: ServerResponse): boolean {
    const { contextTokens } = this.#parts.facts;
    const maxTokens = asNumber(request.body["max_tokens"]) ?? 0;
    switch (kind) {
      case "500":
        this.#refuse(response, "internal");
        return true;
      case "503":
        this.#refuse(response, "unavailable");
        return true;
      case "429":
        this.#refuse(response, "overloaded");
        return true;
      case "overflow":
        this.#refuse(response, "overflow", { promptTokens: contextTokens + 1, maxTokens, contextTokens });
        return true;
      case "html":
        answer(response, 200, "<html><body><h1>It works!</h1></body></html>", "text/html");
        return true;
      case "empty":
        answer(response, 200, "", request.stream ? "text/event-stream" : "application/json");
        return true;
      case "wrong-length":
        response.writeHead(200, { "content-type": "text/event-stream", "content-length": "100000" });
        response.write(": ping\n\n", () => response.socket?.destroySoon());
        return true;
      default:
        return false;
    }
  }

  async #embeddings(id: string, body: Body, response: ServerResponse): Promise<void> {
    const { core, facts, faults, ledger } = this.#parts;
    const inputs: unknown[] = isTokenList(body["input"]) ? [body["input"]] : [body["input"]].flat();
    const steering = parseSteering(String(inputs[0] ?? ""), true);
    const fault = steering.fault ?? faults.take("request");
    const counts = inputs.map(inputTokens);
    const tokens = counts.reduce((sum, count) => sum + count, 0);
    const longest = Math.max(...counts);
    if (longest > facts.contextTokens)
      return this.#refuse(response, "overflow", { promptTokens: longest, contextTokens: facts.contextTokens });
    const request = { ...readCompletion(id, body, this.#defaults()), stream: false };
    if (fault && this.#answersWrong(fault, request, response)) return;
    if (fault?.kind === "crash") return this.#parts.crash();
    if (fault?.kind === "reset" || fault?.kind === "cut") return void response.socket?.resetAndDestroy();
    const kept = facts.keepBodies ? { body } : {};
    const entry = ledger.open({
      id,
      path: "/v1/embeddings",
      prompt_tokens: tokens,
      fields: Object.keys(body),
      ...kept,
    });
    const work = {
      begin: () => void core.delay(steering.ttftMs ?? facts.ttftMs).then(() => fault?.kind === "hang" || finish()),
      abort: () => finish(),
    };
    const finish = () => {
      if (entry.closedAtMs !== undefined) return;
      answer(response, 200, vectors(inputs, body, tokens, facts, id));
      ledger.close(entry, "finished", "stop");
      core.leave(work);
    };
    response.once("close", () => {
      ledger.close(entry, "aborted");
      core.leave(work);
    });
    core.submit(work);
  }

  async #sleepOrWake(url: URL, bytes: Buffer, response: ServerResponse): Promise<void> {
    const { core, dialect, facts, faults, ledger } = this.#parts;
    if (!dialect.canSleep) return this.#refuse(response, "not-found");
    if (url.pathname === "/collective_rpc") core.reloadWeights();
    const place = url.pathname === "/sleep" ? "sleep" : "wake";
    const moves = url.pathname === "/sleep" || url.pathname === "/wake_up";
    const fault = moves ? faults.take(place) : undefined;
    if (fault?.kind === "crash") return this.#parts.crash();
    if (fault?.kind === "hang") return;
    if (fault?.kind === "500") return this.#refuse(response, "internal");
    if (place === "sleep" && !faults.has("stays-awake")) {
      ledger.note("falling-asleep");
      const { level, mode } = {
        level: url.searchParams.get("level") ?? "1",
        mode: url.searchParams.get("mode") ?? "abort",
      };
      await core.sleep(Number(level), mode, facts.sleepMs);
      ledger.note("asleep");
    }
    if (url.pathname === "/wake_up") {
      ledger.note("waking");
      await core.wake(url.searchParams.getAll("tags"), facts.wakeMs);
      if (!core.sleeping) ledger.note("awake");
    }
    void bytes;
    answer(response, 200, "");
  }

  #checkers(path: string, bytes: Buffer, response: ServerResponse): void {
    const { core, faults, ledger } = this.#parts;
    if (path === "GET /sim/requests") return answer(response, 200, ledger.entries());
    if (path === "DELETE /sim/requests") return void (ledger.clear(), answer(response, 200, ""));
    if (path === "GET /sim/state") {
      const { running, waiting, sleeping, sleptBusy } = core;
      return answer(response, 200, { loaded: this.#parts.loaded(), running, waiting, sleeping, sleptBusy });
    }
    if (path === "PUT /sim/faults") {
      try {
        faults.set(JSON.parse(bytes.toString()) as string[]);
        return answer(response, 200, "");
      } catch (error) {
        return answer(response, 400, String(error), "text/plain");
      }
    }
    return this.#refuse(response, "not-found");
  }

  #tokenize(body: Body): unknown {
    const { contextTokens } = this.#parts.facts;
    const text = body["prompt"] ?? body["content"];
    const count = typeof text === "string" ? countTokens(text) : countChatTokens(body);
    const tokens = Array.from({ length: count }, (_, index) => index);
    return { count, max_model_len: contextTokens, tokens };
  }

  #refuse(response: ServerResponse, ...what: Parameters<SimDialect["refusal"]>): void {
    const refusal = this.#parts.dialect.refusal(...what);
    answer(response, refusal.status, refusal.body);
  }

  #defaults() {
    return { ...this.#parts.facts, gibberish: this.#parts.core.gibberish };
  }

  #now(): EngineFigures {
    const { core, facts } = this.#parts;
    const { running, waiting, sleepState: sleeping } = core;
    return { ...this.#figures, running, waiting, sleeping, maxRunning: facts.maxRunning };
  }
}

function vectors(inputs: readonly unknown[], body: Body, tokens: number, facts: EngineFacts, id: string): unknown {
  const dimensions = asNumber(body["dimensions"]);
  const data = inputs.map((input, index) => {
    const vector = embed(String(input), facts.embeddingDimensions, dimensions);
    return { index, object: "embedding", embedding: body["encoding_format"] === "base64" ? toBase64(vector) : vector };
  });
  const usage = { prompt_tokens: tokens, total_tokens: tokens, completion_tokens: 0, prompt_tokens_details: null };
  return { id: `embd-${id}`, object: "list", created: 0, model: facts.model, data, usage };
}

function answer(response: ServerResponse, status: number, body: unknown, type = "application/json"): void {
  if (response.headersSent) return;
  const text = typeof body === "string" ? body : JSON.stringify(body);
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(text) }).end(text);
}

function parse(bytes: Buffer): Body | undefined {
  try {
    const body: unknown = JSON.parse(bytes.toString());
    return body !== null && typeof body === "object" ? (body as Body) : undefined;
  } catch {
    return undefined;
  }
}
