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
  readonly fault?: FaultKind;
}

/** How a dialect words one answer. Each string is the data of one event, or a whole body. */
export interface AnswerForm {
  /** While the prompt is read. Absent: nothing is said of it. */
  reading?(): string[];
  /** Before the first token. */
  opening(): string[];
  /** The token `index` of `choice`; with `finish` if it is the last. */
  token(choice: number, index: number, finish: FinishReason | undefined): string[];
  /** After the last token: usage, if it was asked for. */
  closing(): string[];
  /** An end that no token brings: all choices stop here. */
  finish(reason: FinishReason): string[];
  /** The answer as one body. `made` tokens of each choice. */
  whole(made: number, finish: FinishReason): string;
}

export interface Refusal {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Found once the engine works on it: a stream begins well and says it with its first event. */
  readonly late?: boolean;
}

export type RefusalKind =
  | "overflow"
  | "internal"
  /** The process that generates is dead, and the one that answers is not yet. Only vLLM has two. */
  | "dead"
  | "overloaded"
  | "unavailable"
  | "unknown-model"
  | "not-found"
  | "bad-json";

/** A kind of engine: everything in which one program differs from another on the wire. */
export interface SimDialect {
  /** Listens while it loads, and says so. Otherwise connections are refused until it is ready. */
  readonly listensWhileLoading: boolean;
  /** Closes the connection after each streamed answer, although it announced to keep it. */
  readonly closesAfterStream: boolean;
  /** Sends `[DONE]` also after an error event. */
  readonly terminatesErrors: boolean;
  /** Notices a leaver at once only on a stream that is producing. */
  readonly noticesLeaversLate: boolean;
  /** Keeps prompts in its slots and finds them again for anybody, unless told not to. */
  readonly keepsPromptsInSlots?: boolean;
  /** How often a stream that is open and gets nothing is sent a comment, also while the engine hangs. Absent: never. */
  readonly pingMs?: number;
  readonly canSleep: boolean;
  /** A function that is demanded by its name is taken for "auto". */
  readonly ignoresNamedTool: boolean;
  readonly healthBody: string;
  /** What it prints of a request. Absent: nothing. */
  prints?(body: Body): readonly string[];
  /** Why this request is refused, in the engine's words. */
  check(request: SimRequest, facts: EngineFacts): Refusal | undefined;
  refusal(kind: RefusalKind, details?: { promptTokens?: number; maxTokens?: number; contextTokens?: number }): Refusal;
  form(answer: Answer): AnswerForm;
  /** The data of an event that says what a refusal says. */
  eventOf(refusal: Refusal): string;
  /** Why these texts, of so many tokens each, are not embedded. */
  checkInputs(body: Body, tokens: readonly number[], contextTokens: number): Refusal | undefined;
  embeddings(data: readonly object[], tokens: number, of: { id: string; model: string; body: Body }): unknown;
  /** What a `GET` of a path of its own shows. */
  page(path: string, facts: Pick<EngineFacts, "model" | "contextTokens" | "maxRunning">): unknown;
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
  /** Of those, the ones that were found in a slot. */
  readonly cachedTokens: number;
  readonly generatedTokens: number;
  /** Generated tokens of requests that have ended. */
  readonly endedTokens: number;
  readonly finished: ReadonlyMap<string, number>;
  readonly sleeping: "awake" | "weights_offloaded" | "discard_all";
}

/**
 * The usage object as JSON text, wrong in the way that the fault asks for; `undefined`: left out. `completion` may differ
 * from what was made where the engine itself reports only a part.
 */
export function usageText(answer: Answer, completion = answer.entry.generated, details = ""): string | undefined {
  const { request, fault } = answer;
  if (fault === "usage-missing") return undefined;
  if (fault === "usage-null") return "null";
  const total = request.promptTokens + completion;
  return `{"prompt_tokens":${request.promptTokens},"total_tokens":${total},"completion_tokens":${faulty(completion, fault)}${details}}`;
}

const wrongCounts: Partial<Record<FaultKind, string>> = {
  "usage-negative": "-5",
  "usage-string": '"12"',
  "usage-fraction": "1.5",
  "usage-infinite": "1e400",
  "usage-unsafe": "9007199254740993",
  "usage-large": "1000000000",
};

function faulty(completion: number, fault: FaultKind | undefined): string {
  if (fault === "usage-falling") return String(Math.max(0, 100 - completion));
  return (fault && wrongCounts[fault]) ?? String(completion);
}

/** `,"logprobs":…` of one token, minimal. */
export function logprobsText(answer: Answer, text: string): string {
  const { logprobs, top_logprobs: top } = answer.request.body;
  if (!logprobs) return "null";
  const token = { token: text, logprob: -0.01, bytes: [...Buffer.from(text)] };
  const alternatives = typeof top === "number" && top > 0 ? [token] : [];
  return JSON.stringify({ content: [{ ...token, top_logprobs: alternatives }] });
}

/** What `choice` says in full, after `made` tokens. */
export function textOf(answer: Answer, made: number): { reasoning: string; content: string; calls: ToolCall[] } {
  const text = { reasoning: "", content: "" };
  const calls: ToolCall[] = [];
  const { script } = answer.request;
  for (let index = 0; index < made; index++) {
    const { kind, text: said, call = 0 } = script.piece(index);
    if (kind === "arguments") (calls[call] ??= { name: script.tools[call]!, arguments: "" }).arguments += said;
    else text[kind] += said;
  }
  return { ...text, calls };
}

export interface ToolCall {
  readonly name: string;
  arguments: string;
}

export function eachChoice({ request }: Answer): number[] {
  return Array.from({ length: request.choices }, (_, index) => index);
}

/** What the Python front of an engine counts of itself: it moves with each scrape, whatever the engine behind it does. */
export function frontMetrics({ served }: EngineFigures): string {
  return (
    `# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total ${served / 100}\n` +
    `# TYPE http_requests_total counter\nhttp_requests_total{handler="/metrics",method="GET",status="2xx"} ${served}\n`
  );
}

/** How vLLM and SGLang answer `/tokenize`. */
export function tokenized(count: number, contextTokens: number): object {
  return { count, max_model_len: contextTokens, tokens: Array.from({ length: count }, (_, index) => index) };
}
