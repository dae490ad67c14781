/**
 * Brings the chunks of any engine into one order: for each choice its role, its pieces, then its finish reason. Throws
 * an `EngineFault` on an impossible order.
 *
 * Engines differ in when they send a finish reason, so it is held back until the end of the stream:
 *
 * | finish reason                          | seen in                             | what it means             |
 * |----------------------------------------|-------------------------------------|---------------------------|
 * | `stop` with every chunk                | gateways to Gemini                  | the last reason           |
 * | `stop` with the reasoning              | Ollama behind Open WebUI            | the answer follows        |
 * | twice                                  | SGLang to 0.4                       | once                      |
 * | `stop` after `length`                  | gateways that end a stream again    | `length`                  |
 */
import type { ChoiceDelta, EngineChunk, ToolCallPiece } from "../engines/dialects/dialect.ts";
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import { ToolCalls, type CanonicalToolCall } from "./tool-calls.ts";

export type FinishReason = "stop" | "length" | "tool_calls";

/** Receives an answer in canonical order and writes it as events or as one body. */
export interface AnswerSink {
  role(choice: number): void;
  reasoning(choice: number, text: string, logprobs: object | undefined): void;
  content(choice: number, text: string, logprobs: object | undefined): void;
  /** The first piece of each call has an `opening`. */
  toolCall(choice: number, piece: CanonicalToolCall, logprobs: object | undefined): void;
  finish(choice: number, reason: FinishReason): void;
}

interface CanonicalOptions {
  readonly choices: number;
  readonly stopsAsToolCalls: boolean;
  /** The prefix of the ids of calls that have no id from the engine. */
  readonly callIdPrefix: string;
  /** Called with a finish reason that the convention does not have. The answer ends with `stop`. */
  readonly onUnknownFinish: (reason: string) => void;
}

interface ChoiceState {
  hasRole: boolean;
  /** Set while reasoning has arrived, but no text of the answer. */
  isBetween: boolean;
  /** The finish reason so far. Text that follows it withdraws it. */
  ending: Ending | undefined;
  readonly calls: ToolCalls;
}

interface Ending {
  readonly reason: string;
  /** Whether the answer had all tokens that it may have. If undefined, it is unknown. */
  readonly isAtLimit: boolean | undefined;
}

export class CanonicalStream {
  readonly #sink: AnswerSink;
  readonly #options: CanonicalOptions;
  readonly #choices: readonly ChoiceState[];
  readonly #id = new AnswerId();
  /** Whether text or calls have come, or the stream has ended. */
  hasOutput = false;
  /** Whether text followed a finish reason. The next reason may be as premature, so only a terminator ends the answer. */
  hasContinued = false;
  /** The number of pieces of text and calls that the sink got. */
  written = 0;

  constructor(sink: AnswerSink, options: CanonicalOptions) {
    this.#sink = sink;
    this.#options = options;
    this.#choices = Array.from({ length: options.choices }, (_, index) => ({
      ...{ hasRole: false, isBetween: false, ending: undefined },
      calls: new ToolCalls(`${options.callIdPrefix}-${index}`),
    }));
  }

  get isWhole(): boolean {
    return this.#choices.every(({ ending }) => ending !== undefined);
  }

  /** The number of answers, if all that have begun are whole and some have not begun. Otherwise undefined. */
  get wholeOfFewer(): number | undefined {
    const begun = this.#choices.filter(({ hasRole }) => hasRole);
    const isFewer = begun.length > 0 && begun.length < this.#choices.length;
    return isFewer && begun.every(({ ending }) => ending !== undefined) ? begun.length : undefined;
  }

  /** `isAtLimit`: whether the answers of this chunk have all tokens that they may have. If undefined, it is unknown. */
  take({ id, choices }: EngineChunk, isAtLimit?: boolean): void {
    const isOfOther = this.#id.isOther(id);
    for (const delta of choices) this.#takeDelta(delta, isOfOther, isAtLimit);
  }

  /** Finishes every choice at the end of the stream. The answer must be whole. */
  end(): void {
    this.hasOutput = true;
    this.#choices.forEach((choice, index) => this.#finish(index, choice));
  }

  /** Finishes every choice with `length`, because a limit was reached. Of several choices, finished ones keep their reason. */
  endAtLimit(): void {
    for (const choice of this.#choices)
      if (!choice.ending || this.#choices.length === 1) choice.ending = { reason: "length", isAtLimit: true };
    this.end();
  }

  #takeDelta(delta: ChoiceDelta, isOfOther: boolean, isAtLimit: boolean | undefined): void {
    const { index, reasoning, toolCalls, finish } = delta;
    const choice = this.#choices[index];
    if (!choice) throw new EngineFault("malformed", "an answer that was not requested");
    this.#begin(index, choice);
    let logprobs = delta.logprobs;
    const hasText = Boolean(reasoning || delta.content || toolCalls?.some(saysSomething) || logprobs);
    if (choice.ending && hasText) {
      if (isOfOther) throw new EngineFault("malformed", "another answer after the finish");
      choice.ending = undefined;
      this.hasContinued = true;
    }
    if (finish !== undefined) hold(choice, { reason: finish, isAtLimit });
    if (!hasText) return;
    this.hasOutput = true;
    if (reasoning) {
      choice.isBetween = true;
      this.written++;
      this.#sink.reasoning(index, reasoning, logprobs);
      logprobs = undefined;
    }
    const content = contentAfter(choice, delta.content);
    if (content) {
      this.written++;
      this.#sink.content(index, content, logprobs);
      logprobs = undefined;
    }
    for (const piece of toolCalls ?? []) {
      const call = choice.calls.take(piece);
      if (!call) continue;
      this.written++;
      this.#sink.toolCall(index, call, logprobs);
      logprobs = undefined;
    }
    // A token without text still has its log probability.
    if (logprobs) this.#sink.content(index, "", logprobs);
  }

  #begin(index: number, choice: ChoiceState): void {
    if (choice.hasRole) return;
    choice.hasRole = true;
    this.#sink.role(index);
  }

  #finish(index: number, choice: ChoiceState): void {
    this.#begin(index, choice);
    const reason = this.#canonicalReason(choice, choice.ending!);
    // A call that the token limit cut off may have lost its arguments.
    for (const call of choice.calls.missingArguments(reason === "length")) this.#sink.toolCall(index, call, undefined);
    this.#sink.finish(index, reason);
  }

  #canonicalReason({ calls }: ChoiceState, { reason, isAtLimit }: Ending): FinishReason {
    if (lengths.has(reason)) return "length";
    const isOfCalls = reason === "tool_calls";
    if (!isOfCalls && !stops.has(reason)) this.#options.onUnknownFinish(reason);
    // vLLM also sends `tool_calls` if the token limit cut a call off.
    if (calls.isCut(isAtLimit)) return "length";
    // vLLM also sends `stop` after a call of a named function.
    return isOfCalls || calls.count > 0 || this.#options.stopsAsToolCalls ? "tool_calls" : "stop";
  }
}

/** The finish reason for the token limit, including the words of Mistral and of gateways. */
const lengths: ReadonlySet<string> = new Set(["length", "model_length", "max_tokens"]);
/** vLLM and SGLang use these for an answer that they could not finish. */
const failures: ReadonlySet<string> = new Set(["abort", "error"]);
/**
 * `repetition`: the engine ended a repetition, as its operator configured. `function_call`: the reason of the older
 * form of calls.
 */
const stops: ReadonlySet<string> = new Set(["stop", "repetition", "function_call"]);

/** Keeps a reason until the end of the stream. A reason that says more than `stop` is not replaced. */
function hold(choice: ChoiceState, ending: Ending): void {
  if (failures.has(ending.reason)) throw new EngineFault("engine error", "it ended the answer itself");
  if (!choice.ending || choice.ending.reason === "stop") choice.ending = ending;
}

/** Finds chunks of another answer in a stream. Some engines give each chunk its own id, which says nothing. */
class AnswerId {
  #id: string | undefined;
  #isSteady = false;

  /** Takes the id of the next chunk. Returns whether all chunks before had one id, and this one has another. */
  isOther(id: string | undefined): boolean {
    if (id === undefined) return false;
    if (id !== this.#id && this.#isSteady) return true;
    this.#isSteady = id === this.#id;
    this.#id = id;
    return false;
  }
}

/**
 * Returns whether the piece has content. Parsers close a call with an empty piece, which some send after the finish.
 */
function saysSomething({ name, arguments: text }: ToolCallPiece): boolean {
  return Boolean(name || text?.trim());
}

/** Drops the blank lines between reasoning and text, which reasoning parsers leave in. */
function contentAfter(choice: ChoiceState, content: string | undefined): string | undefined {
  if (!content || !choice.isBetween) return content;
  const answer = content.trimStart();
  if (answer !== "") choice.isBetween = false;
  return answer;
}
