/** Serves the paths of the simulated engine: API, health, sleep, token counts, and `/sim/...` for checkers. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Chats } from "./chat.ts";
import { serveEmbeddings } from "./embeddings.ts";
import type { EngineParts } from "./parts.ts";
import { refuse } from "./reply.ts";
import { countChatTokens, countTokens, readChat, readCompletion, type Body, type ScriptDefaults } from "./request.ts";
import { reply } from "./sink.ts";

export class EngineRoutes {
  readonly #parts: EngineParts;
  readonly #chats: Chats;
  #unnamed = 0;
  #served = 0;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.#chats = new Chats(parts);
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("error", () => {});
    response.on("error", () => {});
    request.on("end", () => {
      this.#route(request, Buffer.concat(chunks).toString(), response).catch(() =>
        refuse(response, this.#parts.dialect.refusals.internal),
      );
    });
  }

  async #route(request: IncomingMessage, bytes: string, response: ServerResponse): Promise<void> {
    const { dialect, loaded } = this.#parts;
    const url = new URL(request.url ?? "/", "http://engine");
    if (url.pathname.startsWith("/sim/")) return this.#checkers(`${request.method} ${url.pathname}`, bytes, response);
    this.#served++;
    if (!loaded()) return refuse(response, dialect.refusals.unavailable);
    if (this.#parts.coreIsDead()) {
      if (url.pathname === "/health") return reply(response, 503, "");
      if (request.method === "POST") return refuse(response, dialect.refusals.dead);
    }
    if (request.method === "GET") return this.#get(url.pathname, response);
    if (request.method !== "POST") return refuse(response, dialect.refusals["not-found"]);
    if (dialect.canSleep && movesMemory.has(url.pathname)) return this.#moveMemory(url, bytes, response);
    const body = parse(bytes);
    if (!body) return refuse(response, dialect.refusals["bad-json"]);
    const id = String(request.headers["x-request-id"] ?? `sim-${++this.#unnamed}`);
    this.#post(url.pathname, id, body, response);
  }

  #get(path: string, response: ServerResponse): void {
    const { core, dialect, facts } = this.#parts;
    switch (path) {
      case "/health":
        return reply(response, 200, dialect.healthBody);
      case "/metrics": {
        this.#chats.resultSeen();
        const figures = { ...this.#chats.figures(), served: this.#served };
        return reply(response, 200, dialect.metrics(facts.model, figures), "text/plain; version=0.0.4");
      }
      case "/is_sleeping":
        if (dialect.canSleep) return reply(response, 200, { is_sleeping: core.sleeping });
        break;
      default:
    }
    const page = dialect.page(path, facts);
    if (page === undefined) refuse(response, dialect.refusals["not-found"]);
    else reply(response, 200, page);
  }

  #post(path: string, id: string, body: Body, response: ServerResponse): void {
    switch (path) {
      case "/v1/chat/completions":
        return this.#chats.serve(readChat(id, body, this.#defaults()), response);
      case "/v1/completions":
        return this.#chats.serve(readCompletion(id, body, this.#defaults()), response);
      case "/v1/embeddings":
        return serveEmbeddings(this.#parts, id, body, response);
      default:
        return this.#count(path, body, response);
    }
  }

  async #moveMemory(url: URL, bytes: string, response: ServerResponse): Promise<void> {
    const { core, crash, dialect, facts, faults, ledger } = this.#parts;
    const { pathname: path, searchParams: query } = url;
    ledger.moves.push(`${path}${url.search}${bytes === "" ? "" : ` ${bytes}`}`);
    const place = path === "/sleep" ? "sleep" : path === "/wake_up" ? "wake" : undefined;
    const fault = place && faults.take(place);
    if (fault?.kind === "crash") return crash();
    if (fault?.kind === "hang") return;
    if (fault?.kind === "500") return refuse(response, dialect.refusals.internal);
    switch (path) {
      case "/sleep": {
        const level = Number(query.get("level") ?? 1);
        if (!faults.has("stays-awake")) {
          ledger.note("falling-asleep");
          await core.sleep(level, query.get("mode") ?? "abort", facts.sleepMs);
          ledger.note("asleep");
        }
        return reply(response, 200, { status: "sleeping", level });
      }
      case "/wake_up": {
        const tags = query.getAll("tags");
        ledger.note("waking");
        await core.wake(tags, facts.wakeMs);
        if (!core.sleeping) ledger.note("awake");
        const status = core.sleeping ? "sleeping" : "awake";
        return reply(response, 200, { status, tags: tags.length === 0 ? null : tags });
      }
      case "/reset_prefix_cache":
        return reply(response, 200, { success: true });
      default: {
        const method = parse(bytes)?.["method"];
        if (method === undefined) return reply(response, 400, { detail: "Missing 'method' in request body" });
        if (method !== "reload_weights") return refuse(response, dialect.refusals.internal);
        core.reloadWeights();
        return reply(response, 200, { results: [null] });
      }
    }
  }

  #checkers(path: string, bytes: string, response: ServerResponse): void {
    const { core, dialect, faults, ledger, loaded } = this.#parts;
    switch (path) {
      case "GET /sim/requests":
        return reply(response, 200, ledger.entries());
      case "DELETE /sim/requests":
        ledger.clear();
        return reply(response, 200, "");
      case "GET /sim/moves":
        return reply(response, 200, ledger.moves);
      case "GET /sim/state":
        return reply(response, 200, { loaded: loaded(), ...core.state() });
      case "PUT /sim/faults":
        faults.set(JSON.parse(bytes) as string[]);
        return reply(response, 200, "");
      default:
        return refuse(response, dialect.refusals["not-found"]);
    }
  }

  #count(path: string, body: Body, response: ServerResponse): void {
    const { dialect, facts } = this.#parts;
    const given = body["prompt"] ?? body["content"];
    const count = typeof given === "string" ? countTokens(given) : countChatTokens(body);
    const counted = dialect.counted(path, count, facts.contextTokens);
    if (counted === undefined) refuse(response, dialect.refusals["not-found"]);
    else reply(response, 200, counted);
  }

  #defaults(): ScriptDefaults {
    const { core, dialect, facts } = this.#parts;
    return { ...facts, ignoresNamedTool: dialect.ignoresNamedTool === true, gibberish: core.gibberish };
  }
}

const movesMemory = new Set(["/sleep", "/wake_up", "/collective_rpc", "/reset_prefix_cache"]);

function parse(bytes: string): Body | undefined {
  try {
    const body: unknown = JSON.parse(bytes);
    return body !== null && typeof body === "object" ? (body as Body) : undefined;
  } catch {
    return undefined;
  }
}
