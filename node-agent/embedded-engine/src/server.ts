/** The engine's HTTP server. It listens before the model is loaded, and ends running requests when it stops. */
import { isObject } from "@weiche/shared/json.ts";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { sendJson, type Call, type Surroundings } from "./request/call.ts";
import { metricsText } from "./metrics.ts";
import type { Engine } from "./model.ts";
import { asRequestError, errorBody, invalid, RequestError } from "./request/request-error.ts";

const bodyBytesMax = 32 << 20;
/** Longer than an agent keeps idle connections, so that none is closed while a request is on its way. */
const idleMs = 60_000;

type Handlers = ReadonlyMap<string, (call: Call) => Promise<void>>;

export class EngineServer {
  readonly http: Server;
  readonly #surroundings: Surroundings;
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<void>>();
  #loaded: { readonly engine: Engine; readonly handlers: Handlers } | undefined;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
    this.http = createServer({ keepAliveTimeout: idleMs }, (request, response) => {
      const answered = this.#answer(request, response).finally(() => this.#running.delete(answered));
      this.#running.add(answered);
    });
  }

  /** Serves requests from now on, because the model is loaded. */
  open(engine: Engine, handlers: Handlers): void {
    this.#loaded = { engine, handlers };
  }

  /** Takes no further requests and ends running ones. Resolves when they have released the model. */
  async stop(): Promise<void> {
    this.http.close();
    this.#stopping.abort(new RequestError(503, "service_unavailable", "the engine is stopping"));
    await Promise.all(this.#running);
    this.http.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const left = new AbortController();
    response.on("close", () => left.abort(new Error("the client has left")));
    const signal = AbortSignal.any([left.signal, this.#stopping.signal]);
    try {
      await this.#route(request, response, signal);
    } catch (error) {
      if (!left.signal.aborted) refuse(response, error);
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const path = request.url!.split("?", 1)[0]!;
    if (this.#loaded === undefined) throw new RequestError(503, "unavailable_error", "Loading model");
    const { engine, handlers } = this.#loaded;
    if (request.method === "GET" && path === "/health") return sendJson(response, 200, { status: "ok" });
    if (request.method === "GET" && path === "/v1/models") return sendJson(response, 200, this.#models(engine));
    if (request.method === "GET" && path === "/metrics") {
      response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" });
      response.end(metricsText(engine.metrics, engine.load(), engine.alias));
      return;
    }
    const handle = handlers.get(path);
    if (request.method !== "POST" || handle === undefined)
      throw new RequestError(404, "not_found_error", "no such path or method");
    const body = await readBody(request);
    if (isObject(body) && typeof body["model"] === "string" && body["model"] !== engine.alias)
      throw new RequestError(404, "not_found_error", "the model does not exist here", { param: "model" });
    await handle({ engine, surroundings: this.#surroundings, body, response, signal });
  }

  #models(engine: Engine) {
    const created = Math.floor(this.#surroundings.clock.now() / 1000);
    const { alias: id, contextTokens: max_model_len } = engine;
    return { object: "list", data: [{ id, object: "model", created, owned_by: "weiche", max_model_len }] };
  }
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw new RequestError(413, "invalid_request_error", "the body is too large");
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw invalid("the body is not JSON");
  }
}

/** Answers with a status before the first event. In a stream, sends an error event and no `[DONE]`. */
function refuse(response: ServerResponse, error: unknown): void {
  const known = asRequestError(error) ?? new RequestError(500, "server_error", "internal error");
  if (known.status === 500) process.stderr.write(`embedded engine: ${String((error as Error).stack)}\n`);
  if (response.headersSent) response.end(`data: ${JSON.stringify(errorBody(known))}\n\n`);
  else sendJson(response, known.status, errorBody(known));
}
