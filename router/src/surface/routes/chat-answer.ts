/**
 * Writes the answer of a chat in the playground: the chunks of the public API, and the portal's own events. The first event has the
 * model's state, the last one the answer's cost. A refusal before any event keeps its status; a later one is an event.
 *
 *   event: state   {"state": "active"}, or {"state": "activating", "usualMs": …} with the recent waiting time, if known
 *                  while it waits in a slot, repeatedly {"state": "waiting", "position": …, "estimateMs": …}
 *   data: …        the API's chunks, then data: [DONE]
 *   event: done    {promptTokens, completionTokens, reasoningTokens, credits, firstTokenMs, tokensPerSecond, durationMs}
 *   event: error   {error, status, retryAfterSeconds}
 */
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { creditsOf, formatCredits, type Millicredits } from "@weiche/shared/credits.ts";
import { SseParser } from "@weiche/shared/http/sse.ts";
import { parseJson } from "@weiche/shared/json.ts";
import { HttpAnswer, type AnswerSink } from "../../edge/answer-sink.ts";
import type { Waiting } from "./chat-waits.ts";

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly completion_tokens_details?: { readonly reasoning_tokens?: number } | null;
}

interface Chunk {
  readonly choices?: readonly {
    readonly delta?: {
      readonly content?: unknown;
      readonly reasoning_content?: unknown;
      readonly tool_calls?: readonly unknown[] | null;
    };
  }[];
  readonly usage?: Usage | null;
}

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "x-accel-buffering": "no",
};

export class ChatAnswer implements AnswerSink {
  /** Whether the API has begun to answer. A state event may be sent earlier. */
  hasBegun = false;
  /** The request's id, which the page needs for the cost of an answer that it stops. Known before the first event. */
  requestId = "";
  readonly #page: HttpAnswer;
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  readonly #events = new SseParser();
  #state: "active" | "activating" | undefined;
  /** The model's factor, known once the request is placed. */
  #factor: Millicredits | undefined;
  #refused: { readonly status: number; readonly headers: OutgoingHttpHeaders } | undefined;
  #firstTokenAtMs: number | undefined;
  #usage: Usage | undefined;

  constructor(response: ServerResponse, clock: Clock) {
    this.#page = new HttpAnswer(response);
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
  }

  /** Is called before each attempt. Sends an event if the state has changed. `usualMs`: recent waiting time of others. */
  placed(state: "active" | "activating", factor: Millicredits, usualMs?: number): void {
    this.#factor = factor;
    if (this.#page.isClosed || this.#state === state) return;
    this.#begin();
    this.#state = state;
    this.#page.piece(event("state", { state, usualMs }));
  }

  /** Whether nothing of the answer has come, and its client is there. */
  get isWaited(): boolean {
    return !this.hasBegun && !this.#page.isClosed;
  }

  /** The position of a request that waits in a slot. */
  waits({ position, estimateMs }: Waiting): void {
    if (this.isWaited)
      this.#page.piece(event("state", { state: "waiting", position, estimateMs: Math.round(estimateMs) }));
  }

  head(status: number, headers: OutgoingHttpHeaders): void {
    this.hasBegun = true;
    if (status === 200) return this.#begin();
    this.#refused = { status, headers };
    if (!this.#page.hasBegun) this.#page.head(status, headers);
  }

  piece(bytes: Buffer): boolean {
    for (const each of this.#events.push(bytes)) if (each.kind === "data") this.#look(each.data);
    return this.#page.piece(bytes);
  }

  /** `last` is the whole body of a refusal. */
  end(last?: Buffer): boolean {
    if (this.#refused) return this.#page.end(this.#state && last ? refusalEvent(this.#refused, last) : last);
    if (last) this.piece(last);
    return this.#page.end(event("done", this.#summary()));
  }

  cut(when: "at-once" | "written"): void {
    this.#page.cut(when);
  }

  onDrain(callback: () => void): void {
    this.#page.onDrain(callback);
  }

  onClosed(callback: (isWhole: boolean) => void): void {
    this.#page.onClosed(callback);
  }

  #begin(): void {
    if (!this.#page.hasBegun) this.#page.head(200, { ...streamHeaders, "x-request-id": this.requestId });
  }

  /** Notes the time of the first text or tool call, and the usage. Keeps no text. */
  #look(data: string): void {
    if (this.#firstTokenAtMs !== undefined && !data.includes('"usage":{')) return;
    const { choices, usage } = (parseJson(data) ?? {}) as Chunk;
    if (choices?.some(({ delta }) => delta?.content || delta?.reasoning_content || delta?.tool_calls?.length))
      this.#firstTokenAtMs ??= this.#clock.monotonicMs();
    if (usage) this.#usage = usage;
  }

  #summary() {
    const nowMs = this.#clock.monotonicMs();
    const first = this.#firstTokenAtMs;
    const { prompt_tokens: prompt, completion_tokens: completion, completion_tokens_details: more } = this.#usage ?? {};
    const isCounted = prompt !== undefined && completion !== undefined && this.#factor !== undefined;
    return {
      promptTokens: prompt ?? null,
      completionTokens: completion ?? null,
      reasoningTokens: more?.reasoning_tokens ?? null,
      credits: isCounted ? formatCredits(creditsOf(prompt, completion, this.#factor!)) : null,
      firstTokenMs: first === undefined ? null : Math.round(first - this.#startedAtMs),
      tokensPerSecond: first === undefined || completion === undefined ? null : perSecond(completion, nowMs - first),
      durationMs: Math.round(nowMs - this.#startedAtMs),
    };
  }
}

/** Returns the tokens per second after the first token, or null for too few tokens or too little time. */
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
