/**
 * The answer of a test chat, as the pipeline of the public API writes it and as the page reads it: the same chunks, and
 * beside them events of our own. One tells at once whether the model has to be activated first, the last one what the
 * answer cost. A refusal that comes before any event keeps its status; a later one is an event.
 *
 *   event: state   {"state": "active" | "activating"}
 *   data: …        chunks as the API sends them, then data: [DONE]
 *   event: done    {promptTokens, completionTokens, reasoningTokens, credits, firstTokenMs, tokensPerSecond, durationMs}
 *   event: error   {error, status, retryAfterSeconds}
 */
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { Writable } from "node:stream";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { creditsOf, formatCredits, type Millicredits } from "@weiche/shared/credits.ts";
import type { ClientResponse } from "../api/exchange.ts";

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly completion_tokens_details?: { readonly reasoning_tokens?: number } | null;
}

interface Chunk {
  readonly choices?: readonly {
    readonly delta?: { readonly content?: unknown; readonly reasoning_content?: unknown };
  }[];
  readonly usage?: Usage | null;
}

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "x-accel-buffering": "no",
};

export class ChatAnswer extends Writable implements ClientResponse {
  /** As the pipeline sees it: whether it has begun to answer. */
  headersSent = false;
  shouldKeepAlive = true;
  /** What the request is billed by; known once it is sent to a node. */
  factor: Millicredits | undefined;
  readonly #response: ServerResponse;
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  #state: "active" | "activating" | undefined;
  /** Of a refusal. */
  #refused: { readonly status: number; readonly headers: OutgoingHttpHeaders } | undefined;
  #firstTokenAtMs: number | undefined;
  #usage: Usage | undefined;

  constructor(response: ServerResponse, clock: Clock) {
    super();
    this.#response = response;
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
    this.on("error", () => {}); // written to after the client has gone
    if (response.destroyed) this.destroy(); // who left while it was asked for
    response.on("close", () => this.destroy());
  }

  /** Told before the answer, again if it changed. */
  tellState(state: "active" | "activating"): void {
    if (this.destroyed || this.#state === state) return;
    this.#begin();
    this.#state = state;
    this.#response.write(event("state", { state }));
  }

  writeHead(status: number, headers: OutgoingHttpHeaders): this {
    this.headersSent = true;
    if (status === 200) this.#begin();
    else {
      this.#refused = { status, headers };
      if (!this.#response.headersSent) this.#response.writeHead(status, headers);
    }
    return this;
  }

  /** The body of such a request has come already. */
  writeContinue(): void {}

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (!this.#refused) this.#look(bytes.toString());
    const out = this.#refused && this.#state ? refusalEvent(this.#refused, bytes) : bytes;
    if (this.#response.write(out)) done();
    else this.#response.once("drain", done);
  }

  override _final(done: () => void): void {
    if (this.#refused) this.#response.end(done);
    else this.#response.end(event("done", this.#summary()), done);
  }

  #begin(): void {
    if (!this.#response.headersSent) this.#response.writeHead(200, streamHeaders);
  }

  /** Only whole events come here. The texts in them are looked at for whether they are there, and go nowhere else. */
  #look(events: string): void {
    for (const line of events.split("\n")) {
      if (!line.startsWith("data: {")) continue;
      if (this.#firstTokenAtMs !== undefined && !line.includes('"usage":{')) continue;
      const { choices, usage } = parse(line.slice("data: ".length));
      if (choices?.some(({ delta }) => delta?.content || delta?.reasoning_content))
        this.#firstTokenAtMs ??= this.#clock.monotonicMs();
      if (usage) this.#usage = usage;
    }
  }

  #summary() {
    const nowMs = this.#clock.monotonicMs();
    const first = this.#firstTokenAtMs;
    const { prompt_tokens: prompt, completion_tokens: completion, completion_tokens_details: more } = this.#usage ?? {};
    const isCounted = prompt !== undefined && completion !== undefined && this.factor !== undefined;
    return {
      promptTokens: prompt ?? null,
      completionTokens: completion ?? null,
      reasoningTokens: more?.reasoning_tokens ?? null,
      credits: isCounted ? formatCredits(creditsOf(prompt, completion, this.factor!)) : null,
      firstTokenMs: first === undefined ? null : Math.round(first - this.#startedAtMs),
      tokensPerSecond: first === undefined || completion === undefined ? null : perSecond(completion, nowMs - first),
      durationMs: Math.round(nowMs - this.#startedAtMs),
    };
  }
}

/** The first token is not made within that time. null: too short to tell. */
function perSecond(tokens: number, ms: number): number | null {
  return tokens < 2 || ms < 1 ? null : Math.round(((tokens - 1) / ms) * 10_000) / 10;
}

function refusalEvent({ status, headers }: { status: number; headers: OutgoingHttpHeaders }, body: Buffer): string {
  const retryAfter = headers["retry-after"];
  const retryAfterSeconds = retryAfter === undefined ? null : Number(retryAfter);
  return event("error", { ...(JSON.parse(body.toString()) as object), status, retryAfterSeconds });
}

function event(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

function parse(text: string): Chunk {
  try {
    return JSON.parse(text) as Chunk;
  } catch {
    return {};
  }
}
