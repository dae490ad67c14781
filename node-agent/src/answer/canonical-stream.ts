/**
 * Brings the chunks of any engine into one order and one shape: for each answer its role, then its pieces (thoughts before
 * text before calls within a chunk), then its finish alone. What cannot be is a fault of the engine.
 */
import type { ChoiceDelta, EngineChunk, ToolCallPiece } from "../engines/dialects/dialect.ts";
import { EngineFault } from "../engines/dialects/engine-fault.ts";

export type FinishReason = "stop" | "length" | "tool_calls";

/** Where the answer goes: an event stream, or one body. Calls come in canonical order. */
export interface AnswerSink {
  role(choice: number): void;
  reasoning(choice: number, text: string, logprobs: object | undefined): void;
  content(choice: number, text: string, logprobs: object | undefined): void;
  /** The first of each call has id and name. */
  toolCall(choice: number, piece: CanonicalToolCall, logprobs: object | undefined): void;
  finish(choice: number, reason: FinishReason): void;
}

export interface CanonicalToolCall {
  readonly index: number;
  /** Only in the first piece of a call. */
  readonly opening?: { readonly id: string; readonly name: string };
  readonly arguments: string;
}

export interface CanonicalOptions {
  readonly choices: number;
  readonly stopsAsToolCalls: boolean;
  /** For calls that the engine gives no id. */
  readonly callIdPrefix: string;
}

interface ChoiceState {
  hasRole: boolean;
  /** Thoughts have come, and no text of the answer yet. */
  isBetween: boolean;
  finish: FinishReason | undefined;
  /** By the engine's index. */
  readonly calls: Set<number>;
}

/** A model cannot mean more in one answer. */
const callsMax = 1_024;

export class CanonicalStream {
  readonly #sink: AnswerSink;
  readonly #options: CanonicalOptions;
  readonly #choices: readonly ChoiceState[];
  #unfinished: number;
  #hasOutput = false;

  constructor(sink: AnswerSink, options: CanonicalOptions) {
    this.#sink = sink;
    this.#options = options;
    this.#choices = Array.from({ length: options.choices }, () => ({
      ...{ hasRole: false, isBetween: false, finish: undefined },
      calls: new Set<number>(),
    }));
    this.#unfinished = options.choices;
  }

  /** Whether anything but roles has come. */
  get hasOutput(): boolean {
    return this.#hasOutput;
  }

  /** Whether every answer has its reason to end. */
  get isWhole(): boolean {
    return this.#unfinished === 0;
  }

  take(chunk: EngineChunk): void {
    for (const delta of chunk.choices) this.#takeDelta(delta);
  }

  /** Ends every answer that the engine has not ended. */
  endAll(reason: FinishReason): void {
    this.#choices.forEach((choice, index) => {
      if (!choice.finish) this.#takeDelta({ index, finish: reason });
    });
  }

  #takeDelta(delta: ChoiceDelta): void {
    const { index, reasoning, toolCalls, finish } = delta;
    const choice = this.#choices[index];
    if (!choice) throw new EngineFault("malformed", "an answer that was not asked for");
    if (!choice.hasRole) {
      choice.hasRole = true;
      this.#sink.role(index);
    }
    let logprobs = delta.logprobs;
    const hasText = Boolean(reasoning || delta.content || toolCalls?.length || logprobs);
    if (choice.finish) {
      if (hasText) throw new EngineFault("malformed", "text after the finish");
      return;
    }
    this.#hasOutput ||= hasText || finish !== undefined;
    if (reasoning) {
      choice.isBetween = true;
      this.#sink.reasoning(index, reasoning, logprobs);
      logprobs = undefined;
    }
    const content = contentAfter(choice, delta.content);
    if (content) {
      this.#sink.content(index, content, logprobs);
      logprobs = undefined;
    }
    for (const piece of toolCalls ?? []) {
      this.#takeToolCall(index, choice, piece, logprobs);
      logprobs = undefined;
    }
    // A token without text of its own still has its probability.
    if (logprobs) this.#sink.content(index, "", logprobs);
    if (finish !== undefined) this.#finish(index, choice, finish);
  }

  #takeToolCall(index: number, choice: ChoiceState, piece: ToolCallPiece, logprobs: object | undefined): void {
    const rest = { index: piece.index, arguments: piece.arguments ?? "" };
    if (choice.calls.has(piece.index)) return this.#sink.toolCall(index, rest, logprobs);
    if (!piece.name) throw new EngineFault("malformed", "a tool call without a name");
    if (choice.calls.size >= callsMax) throw new EngineFault("malformed", "too many tool calls");
    choice.calls.add(piece.index);
    const id = piece.id || `${this.#options.callIdPrefix}-${index}-${piece.index}`;
    this.#sink.toolCall(index, { ...rest, opening: { id, name: piece.name } }, logprobs);
  }

  #finish(index: number, choice: ChoiceState, reason: string): void {
    choice.finish = this.#canonicalReason(choice, reason);
    this.#unfinished--;
    this.#sink.finish(index, choice.finish);
  }

  #canonicalReason(choice: ChoiceState, reason: string): FinishReason {
    switch (reason) {
      case "length":
      case "tool_calls":
        return reason;
      case "stop":
      // The engine ended a loop, as its operator told it to.
      case "repetition":
        // vLLM says so of a named function too.
        return choice.calls.size > 0 || this.#options.stopsAsToolCalls ? "tool_calls" : "stop";
      default:
        throw new EngineFault("engine error", "it ended the answer itself");
    }
  }
}

/** Reasoning parsers leave the blank lines that stand between a thought and its answer: they belong to neither. */
function contentAfter(choice: ChoiceState, content: string | undefined): string | undefined {
  if (!content || !choice.isBetween) return content;
  const answer = content.trimStart();
  if (answer !== "") choice.isBetween = false;
  return answer;
}
