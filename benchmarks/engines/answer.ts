/** An answer of the API as its client reads it: the same words whether it came as one body or as a stream. */

export interface Call {
  id: string;
  name: string;
  arguments: string;
}

export interface Choice {
  content: string;
  /** The answer said that there is no content, or never sent any. */
  isNull: boolean;
  reasoning: string;
  calls: Call[];
  finish: string | null;
  logprobs: TokenLogprob[];
}

export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly top_logprobs: readonly unknown[];
}

export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null;
  readonly completion_tokens_details?: { readonly reasoning_tokens?: number } | null;
}

export interface ApiError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string;
}

/** `whole`: it came to its end. `refused`: an error status. `error`: an error event. `broken`: cut without any of these. */
export type Ending = "whole" | "refused" | "error" | "broken";

export interface Answer {
  readonly id: string | undefined;
  readonly status: number;
  readonly ending: Ending;
  readonly choices: readonly Choice[];
  readonly usage: Usage | undefined;
  readonly error: ApiError | undefined;
  /** Events of a stream that said something, and the longest time between two of them, or before it was broken off. */
  readonly pieces: number;
  readonly longestGapMs: number;
}

interface Delta {
  readonly content?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly { index?: number; id?: string; function?: { name?: string; arguments?: string } }[];
}

interface Event {
  readonly error?: ApiError;
  readonly usage?: Usage | null;
  readonly choices?: readonly {
    readonly index: number;
    readonly delta?: Delta;
    readonly message?: Delta;
    readonly text?: string;
    readonly finish_reason?: string | null;
    readonly logprobs?: { readonly content?: readonly TokenLogprob[] | null } | null;
  }[];
}

/** Reads to the end; `onPiece` is told of each event that says something. An aborted request ends `broken`. */
export async function readAnswer(response: Response, onPiece: (pieces: number) => void = () => {}): Promise<Answer> {
  const reader = new AnswerReader(onPiece);
  const { status, headers } = response;
  const ended = (ending: Ending) => reader.answer(headers.get("x-request-id") ?? undefined, status, ending);
  try {
    if (status !== 200 || !headers.get("content-type")?.startsWith("text/event-stream")) {
      reader.take((await response.json()) as Event);
      return ended(status === 200 ? "whole" : "refused");
    }
    for await (const data of eventsOf(response.body!)) {
      if (data === "[DONE]") return ended("whole");
      reader.take(JSON.parse(data) as Event);
      if (reader.error) return ended("error");
    }
  } catch {
    // the connection is gone
  }
  return ended("broken");
}

class AnswerReader {
  error: ApiError | undefined;
  readonly #choices: Choice[] = [];
  readonly #onPiece: (pieces: number) => void;
  #usage: Usage | undefined;
  #pieces = 0;
  #lastMs: number | undefined;
  #longestGapMs = 0;

  constructor(onPiece: (pieces: number) => void) {
    this.#onPiece = onPiece;
  }

  take({ error, usage, choices = [] }: Event): void {
    this.error = error ?? this.error;
    this.#usage = usage ?? this.#usage;
    for (const { index, delta, message, text, finish_reason, logprobs } of choices) {
      const choice = (this.#choices[index] ??= {
        ...{ content: "", isNull: true, reasoning: "", calls: [], finish: null, logprobs: [] },
      });
      this.#add(choice, message ?? delta ?? { content: text ?? null });
      choice.finish = finish_reason ?? choice.finish;
      choice.logprobs.push(...(logprobs?.content ?? []));
    }
    if (choices.length > 0) this.#piece();
  }

  #add(choice: Choice, { content, reasoning_content: reasoning, tool_calls: calls = [] }: Delta): void {
    choice.content += content ?? "";
    choice.isNull &&= content == null || content === "";
    choice.reasoning += reasoning ?? "";
    for (const [at, { index = at, id, function: called }] of calls.entries()) {
      const call = (choice.calls[index] ??= { id: "", name: "", arguments: "" });
      call.id += id ?? "";
      call.name += called?.name ?? "";
      call.arguments += called?.arguments ?? "";
    }
  }

  #piece(): void {
    const nowMs = performance.now();
    this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - (this.#lastMs ?? nowMs));
    this.#lastMs = nowMs;
    this.#onPiece(++this.#pieces);
  }

  answer(id: string | undefined, status: number, ending: Ending): Answer {
    // What ends without a word has been silent until now.
    const silenceMs = ending === "whole" ? 0 : performance.now() - (this.#lastMs ?? performance.now());
    const [pieces, longestGapMs] = [this.#pieces, Math.round(Math.max(this.#longestGapMs, silenceMs))];
    return { id, status, ending, choices: this.#choices, usage: this.#usage, error: this.error, pieces, longestGapMs };
  }
}

async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body) {
    text += decoder.decode(bytes, { stream: true });
    const parts = text.split("\n\n");
    text = parts.pop()!;
    for (const part of parts) if (part.startsWith("data: ")) yield part.slice("data: ".length);
  }
}
