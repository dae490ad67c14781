/** Sends one request to the API and reads its answer as it arrives. Reports only what the client received. */
import { once } from "node:events";
import { request, type Agent, type IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

export interface Client {
  /** The URL ends with `/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Keeps connections open. If undefined, each request uses a new connection. */
  readonly agent?: Agent;
}

export interface Reading {
  /** The client leaves when this signal aborts. */
  readonly signal?: AbortSignal;
  /** Called for each event with text, reasoning or a tool call. */
  readonly onPiece?: (pieces: number) => unknown;
  /** A slow client pauses this long after each read. */
  readonly readEveryMs?: number;
  /** Reads after `[DONE]` until the router ends the answer. If undefined, the client leaves at once, as many do. */
  readonly toTheEnd?: boolean;
}

export interface Question extends Client, Reading {
  readonly model: string;
  /** May begin with a word that controls the simulated engine, such as `sim:tokens=5`. */
  readonly text: string;
}

/**
 * `whole`: the answer is complete. `left`: the client left. `error`: the stream had an error event. `refused`: the answer
 * had an error status. `broken`: the connection ended before any of these.
 */
export type Ending = "whole" | "left" | "error" | "refused" | "broken";

/** What a client knows about its request, equal for a body and a stream. */
export interface Answer {
  /** The header `x-request-id`. Undefined if no head was received. */
  readonly id: string | undefined;
  /** 0 if no head was received. */
  readonly status: number;
  readonly ending: Ending;
  readonly choices: readonly Choice[];
  /** The embeddings as lists of numbers or base64. */
  readonly vectors: readonly (readonly number[] | string)[];
  readonly usage: Usage | undefined;
  readonly error: ApiError | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** The number of events with text, reasoning or a tool call. Simulated engines put one token into each. */
  readonly pieces: number;
  /** The longest time between two events, or between the last event and the end of an incomplete answer. */
  readonly longestGapMs: number;
  /** The time from the request to the first byte of the body. */
  readonly firstByteMs: number | undefined;
  /** Wall time, for comparison with the times of engines. */
  readonly sentAtMs: number;
  readonly endedAtMs: number;
}

export interface Choice {
  content: string;
  /** Whether the content was null or missing. */
  isNull: boolean;
  reasoning: string;
  calls: { id: string; name: string; arguments: string }[];
  finish: string | null;
  logprobs: TokenLogprob[];
}

interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly top_logprobs: readonly unknown[];
}

interface Usage {
  readonly prompt_tokens: number;
  /** Undefined in the usage of embeddings. */
  readonly completion_tokens?: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null;
}

interface ApiError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string;
}

interface Delta {
  readonly content?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly { index?: number; id?: string; function?: { name?: string; arguments?: string } }[];
}

/** An event of a stream, or a complete body. */
interface Chunk {
  readonly error?: ApiError;
  readonly usage?: Usage | null;
  readonly data?: readonly { readonly embedding: readonly number[] | string }[];
  readonly choices?: readonly {
    readonly index: number;
    readonly delta?: Delta;
    readonly message?: Delta;
    readonly text?: string;
    readonly finish_reason?: string | null;
    readonly logprobs?: { readonly content?: readonly TokenLogprob[] | null } | null;
  }[];
}

/** Sends a streamed chat of one message, with usage. */
export function askStream({ model, text, ...rest }: Question): Promise<Answer> {
  const messages = [{ role: "user", content: text }];
  return ask(
    rest,
    "/chat/completions",
    { model, messages, stream: true, stream_options: { include_usage: true } },
    rest,
  );
}

/** Posts `body` and resolves with the answer. Never rejects. */
export async function ask(client: Client, path: string, body: object, reading: Reading = {}): Promise<Answer> {
  const reader = new AnswerReader(reading);
  try {
    return reader.answer(await reader.read(client, path, body));
  } catch {
    return reader.answer(reading.signal?.aborted ? "left" : "broken");
  }
}

class AnswerReader {
  readonly #reading: Reading;
  readonly #sentAtMs = Date.now();
  readonly #startMs = performance.now();
  readonly #choices: Choice[] = [];
  #response: IncomingMessage | undefined;
  #firstByteMs: number | undefined;
  #vectors: Answer["vectors"] = [];
  #error: ApiError | undefined;
  #usage: Usage | undefined;
  #pieces = 0;
  #lastMs: number | undefined;
  #longestGapMs = 0;

  constructor(reading: Reading) {
    this.#reading = reading;
  }

  async read({ baseUrl, apiKey, agent }: Client, path: string, body: object): Promise<Ending> {
    const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
    const { signal } = this.#reading;
    const call = request(`${baseUrl}${path}`, { method: "POST", agent: agent ?? false, headers, signal });
    call.on("error", () => {}).end(JSON.stringify(body)); // `once` and the response report the error too
    const [response] = (await once(call, "response")) as [IncomingMessage];
    this.#response = response;
    const isStream = response.headers["content-type"]?.startsWith("text/event-stream");
    if (response.statusCode !== 200 || !isStream) {
      const text = (await Array.fromAsync(this.#textOf(response))).join("");
      this.#take(JSON.parse(text) as Chunk);
      return response.statusCode === 200 ? "whole" : "refused";
    }
    let isDone = false;
    for await (const data of this.#eventsOf(response)) {
      isDone = data === "[DONE]";
      if (isDone && !this.#reading.toTheEnd) break;
      if (isDone) continue;
      this.#take(JSON.parse(data) as Chunk);
      if (this.#error) return "error";
      if (signal?.aborted) return "left";
    }
    return isDone ? "whole" : "broken";
  }

  answer(ending: Ending): Answer {
    const nowMs = performance.now();
    const silenceMs = ending === "whole" ? 0 : nowMs - (this.#lastMs ?? nowMs);
    const { headers = {}, statusCode: status = 0 } = this.#response ?? {};
    const retryAfter = headers["retry-after"];
    return {
      ...{ id: headers["x-request-id"] as string | undefined, status, ending, choices: this.#choices },
      ...{
        vectors: this.#vectors,
        usage: this.#usage,
        error: this.#error,
        pieces: this.#pieces,
        firstByteMs: this.#firstByteMs,
      },
      retryAfterSeconds: retryAfter === undefined ? undefined : Number(retryAfter),
      longestGapMs: Math.round(Math.max(this.#longestGapMs, silenceMs)),
      ...{ sentAtMs: this.#sentAtMs, endedAtMs: Date.now() },
    };
  }

  async *#textOf(response: IncomingMessage): AsyncGenerator<string> {
    for await (const text of response.setEncoding("utf8")) {
      this.#firstByteMs ??= performance.now() - this.#startMs;
      yield text as string;
      if (this.#reading.readEveryMs) await sleep(this.#reading.readEveryMs);
    }
  }

  async *#eventsOf(response: IncomingMessage): AsyncGenerator<string> {
    let rest = "";
    for await (const text of this.#textOf(response)) {
      const events = (rest + text).split("\n\n");
      rest = events.pop()!;
      for (const event of events) if (event.startsWith("data: ")) yield event.slice("data: ".length);
    }
  }

  #take({ error, usage, data, choices = [] }: Chunk): void {
    if (data) this.#vectors = data.map(({ embedding }) => embedding);
    this.#error = error ?? this.#error;
    this.#usage = usage ?? this.#usage;
    if (choices.length === 0) return;
    const nowMs = performance.now();
    this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - (this.#lastMs ?? nowMs));
    this.#lastMs = nowMs;
    let saysSomething = false;
    for (const { index, delta, message, text, finish_reason, logprobs } of choices) {
      const empty: Choice = { content: "", isNull: true, reasoning: "", calls: [], finish: null, logprobs: [] };
      const choice = (this.#choices[index] ??= empty);
      saysSomething = add(choice, message ?? delta ?? { content: text }) || saysSomething;
      choice.finish = finish_reason ?? choice.finish;
      choice.logprobs.push(...(logprobs?.content ?? []));
    }
    if (!saysSomething) return;
    this.#pieces++;
    this.#reading.onPiece?.(this.#pieces);
  }
}

/** Adds a delta. Returns whether it contains text, reasoning or a tool call. */
function add(choice: Choice, { content, reasoning_content: reasoning, tool_calls: calls = [] }: Delta): boolean {
  choice.content += content ?? "";
  choice.isNull &&= !content;
  choice.reasoning += reasoning ?? "";
  for (const [at, { index = at, id, function: called }] of calls.entries()) {
    const call = (choice.calls[index] ??= { id: "", name: "", arguments: "" });
    call.id += id ?? "";
    call.name += called?.name ?? "";
    call.arguments += called?.arguments ?? "";
  }
  return Boolean(content || reasoning || calls.length > 0);
}
