/** One answer in the making, and the forms in which a dialect words it. */
import type { FaultKind } from "./faults.ts";
import type { LedgerEntry } from "./ledger.ts";
import type { EngineFacts } from "./engine-facts.ts";
import type { Body, FinishReason, SimRequest } from "./request.ts";

export interface Answer {
  readonly request: SimRequest;
  readonly id: string;
  readonly createdSeconds: number;
  /** The served name. */
  readonly model: string;
  /** Counts what has been made so far. */
  readonly entry: LedgerEntry;
  readonly fault: FaultKind | undefined;
}

/** How a dialect words one answer. Each object is one event, or a whole body; its members keep their order on the wire. */
export interface AnswerForm {
  /** Events while the prompt is read. Absent: none. */
  reading?(): object[];
  /** Events before the first token. */
  opening(): object[];
  /** The token `index` of `choice`; with `finish` if it is the last. */
  token(choice: number, index: number, finish: FinishReason | undefined): object[];
  /** After the last token: usage, if it was asked for. */
  closing(): object[];
  /** An end that no token brings: all choices stop here. */
  finish(reason: FinishReason): object[];
  /** The answer as one body. `made`: tokens of each choice. */
  whole(made: number, finish: FinishReason): object;
}

export interface Refusal {
  readonly status: number;
  readonly body: string;
  /** Found only when the engine works on the request: a stream begins well and refuses with its first event. */
  readonly late?: boolean;
}

export type RefusalKind =
  | "internal"
  /** The process that generates is dead, and the one that answers is not yet. Only vLLM has two. */
  | "dead"
  | "overloaded"
  | "unavailable"
  | "not-found"
  | "bad-json";

/** A kind of engine: everything in which one program differs from another on the wire. */
export interface SimDialect {
  /** Listens while it loads, and says so. Otherwise connections are refused until it is ready. */
  readonly listensWhileLoading?: boolean;
  /** Closes the connection after each streamed answer, although it announced to keep it. */
  readonly closesAfterStream?: boolean;
  /** Sends `[DONE]` also after an error event. */
  readonly terminatesErrors?: boolean;
  /** Notices at once that a client left only on a stream that is producing. */
  readonly noticesLeaversLate?: boolean;
  /** Keeps prompts in its slots and reuses them for every client, unless told not to. */
  readonly keepsPromptsInSlots?: boolean;
  /** How often a stream that is open and gets nothing is sent a comment, also while the engine hangs. Absent: never. */
  readonly pingMs?: number;
  readonly canSleep?: boolean;
  /** Treats a function that is demanded by its name as "auto". */
  readonly ignoresNamedTool?: boolean;
  readonly healthBody: string;
  /** Lines that the engine prints about a request. Absent: none. */
  prints?(body: Body): readonly string[];
  /** Why this request is refused, in the engine's words. */
  check(request: SimRequest, facts: EngineFacts): Refusal | undefined;
  readonly refusals: Readonly<Record<RefusalKind, Refusal>>;
  /** Refuses a prompt that is longer than the context. */
  overflow(promptTokens: number, contextTokens: number): Refusal;
  form(answer: Answer): AnswerForm;
  /** The data of an event that says what a refusal says. */
  eventOf(refusal: Refusal): string;
  /** Why texts of these token counts are not embedded. */
  checkInputs(body: Body, tokens: readonly number[], contextTokens: number): Refusal | undefined;
  embeddings(data: readonly object[], tokens: number, of: { id: string; model: string; body: Body }): unknown;
  /** The answer to a `GET` of a path of this dialect. */
  page(path: string, facts: Pick<EngineFacts, "model" | "adapters" | "contextTokens" | "maxRunning">): unknown;
  /** The answer of a path that counts tokens; undefined: there is no such path. `count` is of the body's text or chat. */
  counted(path: string, count: number, contextTokens: number): unknown;
  metrics(model: string, state: EngineFigures): string;
}

export interface EngineFigures {
  /** Requests of any kind that the front has taken, this one included. */
  readonly served: number;
  readonly running: number;
  readonly waiting: number;
  readonly maxRunning: number;
  readonly promptTokens: number;
  /** The part of `promptTokens` that was found in a slot. */
  readonly cachedTokens: number;
  readonly generatedTokens: number;
  /** Generated tokens of requests that have ended. */
  readonly endedTokens: number;
  readonly finished: ReadonlyMap<string, number>;
  readonly sleeping: "awake" | "weights_offloaded" | "discard_all";
}

/**
 * The usage object, wrong in the way that the fault asks for; `undefined`: left out. `completion` may differ from what was
 * made where the engine itself reports only a part.
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

/** Counts that are wrong, as JSON texts: some are no numbers of JavaScript. */
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

/** The `logprobs` of one token, minimal; null if they were not asked for. */
export function logprobsOf({ request }: Answer, text: string): object | null {
  const { logprobs, top_logprobs: top } = request.body;
  if (!logprobs) return null;
  const token = { token: text, logprob: -0.01, bytes: [...Buffer.from(text)] };
  return { content: [{ ...token, top_logprobs: typeof top === "number" && top > 0 ? [token] : [] }] };
}

/** The whole text of each choice after `made` tokens. */
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

/** One sample of the text of `/metrics`. `labels`: in alphabetical order. */
export function metric(name: string, type: "counter" | "gauge", value: number, labels = ""): string {
  return `# TYPE ${name} ${type}\n${name}${labels && `{${labels}}`} ${value}\n`;
}

/** Metrics of the Python front itself, which move with each scrape, whatever the engine behind it does. */
export function frontMetrics({ served }: EngineFigures): string {
  const labels = 'handler="/metrics",method="GET",status="2xx"';
  const cpu = metric("process_cpu_seconds_total", "counter", served / 100);
  return cpu + metric("http_requests_total", "counter", served, labels);
}

/** How vLLM and SGLang answer `/tokenize`. */
export function tokenized(count: number, contextTokens: number): object {
  return { count, max_model_len: contextTokens, tokens: Array.from({ length: count }, (_, index) => index) };
}
