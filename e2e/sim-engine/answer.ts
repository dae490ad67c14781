/** Defines an answer and the forms in which a dialect writes it. */
import type { FaultKind } from "./faults.ts";
import type { LedgerEntry } from "./ledger.ts";
import type { EngineFacts } from "./engine-facts.ts";
import type { Body, FinishReason, SimRequest } from "./request.ts";

export interface Answer {
  readonly request: SimRequest;
  readonly id: string;
  readonly createdSeconds: number;
  /** The name under which the model is served. */
  readonly model: string;
  /** Counts the tokens made so far. */
  readonly entry: LedgerEntry;
  readonly fault: FaultKind | undefined;
}

/** Writes an answer in a dialect. Each object is an event or a whole body, and its members keep their order on the wire. */
export interface AnswerForm {
  /** Returns the events while the prompt is read. If undefined, there are none. */
  reading?(): object[];
  /** Returns the events before the first token. */
  opening(): object[];
  /** Returns the events of a token. `finish` is given for the last token. */
  token(choice: number, index: number, finish: FinishReason | undefined): object[];
  /** Returns the events after the last token, such as requested usage. */
  closing(): object[];
  /** Returns the events of an end without a token, which ends all choices. */
  finish(reason: FinishReason): object[];
  /** Returns the answer as one body. `made`: the tokens of each choice. */
  whole(made: number, finish: FinishReason): object;
}

export interface Refusal {
  readonly status: number;
  readonly body: string;
  /** The engine refuses only when it works on the request. A stream then begins normally and refuses with its first event. */
  readonly late?: boolean;
}

export type RefusalKind =
  | "internal"
  /** The generating process is dead, but the answering one is not yet. Only vLLM has two processes. */
  | "dead"
  | "overloaded"
  | "unavailable"
  | "not-found"
  | "bad-json";

/** A kind of engine, with all differences between engine programs on the wire. */
export interface SimDialect {
  /** Listens while loading and reports it. Otherwise connections are refused until the engine is ready. */
  readonly listensWhileLoading?: boolean;
  /** Closes the connection after each streamed answer, although it announced to keep it. */
  readonly closesAfterStream?: boolean;
  /** Sends `[DONE]` also after an error event. */
  readonly terminatesErrors?: boolean;
  /** Notices at once that a client left only on a stream that is producing. */
  readonly noticesLeaversLate?: boolean;
  /** Keeps prompts in its slots and reuses them for every client, unless the request forbids it. */
  readonly keepsPromptsInSlots?: boolean;
  /** The interval of comments on an idle stream, also while the engine hangs. If undefined, there are none. */
  readonly pingMs?: number;
  readonly canSleep?: boolean;
  /** Treats a function that is required by name as "auto". */
  readonly ignoresNamedTool?: boolean;
  readonly healthBody: string;
  /** Returns the lines that the engine prints about a request. If undefined, it prints none. */
  prints?(body: Body): readonly string[];
  /** Returns the engine's refusal of a request, or undefined. */
  check(request: SimRequest, facts: EngineFacts): Refusal | undefined;
  readonly refusals: Readonly<Record<RefusalKind, Refusal>>;
  /** Refuses a prompt that is longer than the context. */
  overflow(promptTokens: number, contextTokens: number): Refusal;
  form(answer: Answer): AnswerForm;
  /** Returns the data of an event with the content of a refusal. */
  eventOf(refusal: Refusal): string;
  /** Returns the refusal to embed texts of these token counts, or undefined. */
  checkInputs(body: Body, tokens: readonly number[], contextTokens: number): Refusal | undefined;
  embeddings(data: readonly object[], tokens: number, of: { id: string; model: string; body: Body }): unknown;
  /** Returns the answer to a `GET` of a path of this dialect. */
  page(path: string, facts: EngineFacts): unknown;
  /** Returns the answer of a path that counts tokens, or undefined for other paths. `count`: tokens of the text or chat. */
  counted(path: string, count: number, contextTokens: number): unknown;
  metrics(model: string, state: EngineFigures): string;
}

export interface EngineFigures {
  /** The number of requests of any kind that the front has accepted, including the present one. */
  readonly served: number;
  readonly running: number;
  readonly waiting: number;
  readonly maxRunning: number;
  readonly promptTokens: number;
  /** The number of `promptTokens` that were found in a slot. */
  readonly cachedTokens: number;
  readonly generatedTokens: number;
  /** The generated tokens of ended requests. */
  readonly endedTokens: number;
  readonly finished: ReadonlyMap<string, number>;
  readonly sleeping: "awake" | "weights_offloaded" | "discard_all";
}

/**
 * Returns the usage object, wrong as the fault defines, or undefined if the fault omits it. `completion` may differ from the
 * generated tokens if the engine itself reports only a part.
 */
export function usageOf(
  { request: { promptTokens }, fault, entry }: Answer,
  completion = entry.generated,
  details: object = {},
): object | null | undefined {
  if (fault === "usage-missing") return undefined;
  if (fault === "usage-null") return null;
  const completion_tokens = faulty(completion, fault);
  return { prompt_tokens: promptTokens, total_tokens: promptTokens + completion, completion_tokens, ...details };
}

/** Wrong counts as JSON texts, because some are not representable as JavaScript numbers. */
const wrongCounts: Partial<Record<FaultKind, string>> = {
  "usage-negative": "-5",
  "usage-string": '"12"',
  "usage-fraction": "1.5",
  "usage-infinite": "1e400",
  "usage-unsafe": "9007199254740993",
  "usage-large": "1000000000",
};
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };

function faulty(completion: number, fault: FaultKind | undefined): unknown {
  if (fault === "usage-falling") return Math.max(0, 100 - completion);
  const wrong = fault && wrongCounts[fault];
  return wrong === undefined ? completion : rawJSON(wrong);
}

/** Returns minimal `logprobs` of a token, or null if they were not requested. */
export function logprobsOf({ request }: Answer, text: string): object | null {
  const { logprobs, top_logprobs: top } = request.body;
  if (!logprobs) return null;
  const token = { token: text, logprob: -0.01, bytes: [...Buffer.from(text)] };
  return { content: [{ ...token, top_logprobs: typeof top === "number" && top > 0 ? [token] : [] }] };
}

/** Returns the whole text of a choice after `made` tokens. */
export function textOf({ request: { script } }: Answer, made: number) {
  const text = { reasoning: "", content: "" };
  const calls: { readonly name: string; arguments: string }[] = [];
  for (let index = 0; index < made; index++) {
    const { kind, text: said, call = 0 } = script.piece(index);
    if (kind === "arguments") (calls[call] ??= { name: script.tools[call]!, arguments: "" }).arguments += said;
    else text[kind] += said;
  }
  return { ...text, calls };
}

export function eachChoice<T>({ request }: Answer, word: (choice: number) => T): T[] {
  return Array.from({ length: request.choices }, (_, choice) => word(choice));
}

/** Returns a sample of `/metrics` as text. `labels` are in alphabetical order. */
export function metric(name: string, type: "counter" | "gauge", value: number, labels = ""): string {
  return `# TYPE ${name} ${type}\n${name}${labels && `{${labels}}`} ${value}\n`;
}

/** Returns the metrics of the Python front, which change with each scrape even if the engine is idle. */
export function frontMetrics({ served }: EngineFigures): string {
  const labels = 'handler="/metrics",method="GET",status="2xx"';
  const cpu = metric("process_cpu_seconds_total", "counter", served / 100);
  return cpu + metric("http_requests_total", "counter", served, labels);
}

/** Returns the answer of vLLM and SGLang to `/tokenize`. */
export function tokenized(count: number, contextTokens: number): object {
  return { count, max_model_len: contextTokens, tokens: Array.from({ length: count }, (_, index) => index) };
}
