/**
 * Brings the chunks of any engine into one order: for each choice its role, its pieces, then its finish reason. Throws
 * an `EngineFault` on an impossible order.
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
  finish: FinishReason | undefined;
  readonly calls: ToolCalls;
}

export class CanonicalStream {
  readonly #sink: AnswerSink;
  readonly #options: CanonicalOptions;
  readonly #choices: readonly ChoiceState[];
  #unfinished: number;
  hasOutput = false;
  /** The number of pieces of text and calls that the sink got. */
  written = 0;

  constructor(sink: AnswerSink, options: CanonicalOptions) {
    this.#sink = sink;
    this.#options = options;
    this.#choices = Array.from({ length: options.choices }, (_, index) => ({
      ...{ hasRole: false, isBetween: false, finish: undefined },
      calls: new ToolCalls(`${options.callIdPrefix}-${index}`),
    }));
    this.#unfinished = options.choices;
  }

  get isWhole(): boolean {
    return this.#unfinished === 0;
  }

  /** The number of answers, if all that have begun are whole and some have not begun. Otherwise undefined. */
  get wholeOfFewer(): number | undefined {
    const begun = this.#choices.filter(({ hasRole }) => hasRole);
    const isFewer = begun.length > 0 && begun.length < this.#choices.length;
    return isFewer && begun.every(({ finish }) => finish !== undefined) ? begun.length : undefined;
  }

  /** `isAtLimit`: whether the answers of this chunk have all tokens that they may have. If undefined, it is unknown. */
  take(chunk: EngineChunk, isAtLimit?: boolean): void {
    for (const delta of chunk.choices) this.#takeDelta(delta, isAtLimit);
  }

  /** Finishes every choice that the engine has not finished. */
  endAll(reason: FinishReason): void {
    this.#choices.forEach((choice, index) => {
      if (!choice.finish) this.#takeDelta({ index, finish: reason });
    });
  }

  #takeDelta(delta: ChoiceDelta, isAtLimit?: boolean): void {
    const { index, reasoning, toolCalls, finish } = delta;
    const choice = this.#choices[index];
    if (!choice) throw new EngineFault("malformed", "an answer that was not requested");
    if (!choice.hasRole) {
      choice.hasRole = true;
      this.#sink.role(index);
    }
    let logprobs = delta.logprobs;
    const hasText = Boolean(reasoning || delta.content || toolCalls?.some(saysSomething) || logprobs);
    if (choice.finish) {
      if (hasText) throw new EngineFault("malformed", "text after the finish");
      return;
    }
    this.hasOutput ||= hasText || finish !== undefined;
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
    if (finish !== undefined) this.#finish(index, choice, this.#canonicalReason(choice, finish, isAtLimit));
  }

  #finish(index: number, choice: ChoiceState, reason: FinishReason): void {
    choice.finish = reason;
    this.#unfinished--;
    // A call that the token limit cut off may have lost its arguments.
    for (const call of choice.calls.missingArguments(reason === "length")) this.#sink.toolCall(index, call, undefined);
    this.#sink.finish(index, reason);
  }

  #canonicalReason({ calls }: ChoiceState, reason: string, isAtLimit: boolean | undefined): FinishReason {
    if (lengths.has(reason)) return "length";
    if (failures.has(reason)) throw new EngineFault("engine error", "it ended the answer itself");
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
