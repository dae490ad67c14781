/**
 * Brings the chunks of any engine into one order: per choice its role, its pieces, then its finish reason alone. Throws
 * an `EngineFault` on an impossible order.
 */
import type { ChoiceDelta, EngineChunk, ToolCallPiece } from "../engines/dialects/dialect.ts";
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import { AnswerFull } from "./answer-full.ts";

export type FinishReason = "stop" | "length" | "tool_calls";

/** Receives an answer in canonical order, and writes it as events or as one body. */
export interface AnswerSink {
  role(choice: number): void;
  reasoning(choice: number, text: string, logprobs: object | undefined): void;
  content(choice: number, text: string, logprobs: object | undefined): void;
  /** The first piece of each call has `opening`. */
  toolCall(choice: number, piece: CanonicalToolCall, logprobs: object | undefined): void;
  finish(choice: number, reason: FinishReason): void;
}

export interface CanonicalToolCall {
  readonly index: number;
  readonly opening?: { readonly id: string; readonly name: string };
  readonly arguments: string;
}

export interface CanonicalOptions {
  readonly choices: number;
  readonly stopsAsToolCalls: boolean;
  /** Prefix of the ids of calls to which the engine gives none. */
  readonly callIdPrefix: string;
}

interface ChoiceState {
  hasRole: boolean;
  /** Reasoning has arrived, and no text of the answer yet. */
  isBetween: boolean;
  finish: FinishReason | undefined;
  readonly calls: Set<number>;
}

/** More tool calls end the answer. */
const callsMax = 1_024;

export class CanonicalStream {
  readonly #sink: AnswerSink;
  readonly #options: CanonicalOptions;
  readonly #choices: readonly ChoiceState[];
  #unfinished: number;
  hasOutput = false;

  constructor(sink: AnswerSink, options: CanonicalOptions) {
    this.#sink = sink;
    this.#options = options;
    this.#choices = Array.from({ length: options.choices }, () => ({
      ...{ hasRole: false, isBetween: false, finish: undefined },
      calls: new Set<number>(),
    }));
    this.#unfinished = options.choices;
  }

  get isWhole(): boolean {
    return this.#unfinished === 0;
  }

  take(chunk: EngineChunk): void {
    for (const delta of chunk.choices) this.#takeDelta(delta);
  }

  /** Finishes every choice that the engine has not finished. */
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
    this.hasOutput ||= hasText || finish !== undefined;
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
    // A token without text still has its log probability.
    if (logprobs) this.#sink.content(index, "", logprobs);
    if (finish !== undefined) this.#finish(index, choice, finish);
  }

  #takeToolCall(index: number, choice: ChoiceState, piece: ToolCallPiece, logprobs: object | undefined): void {
    const rest = { index: piece.index, arguments: piece.arguments ?? "" };
    if (choice.calls.has(piece.index)) return this.#sink.toolCall(index, rest, logprobs);
    if (!piece.name) throw new EngineFault("malformed", "a tool call without a name");
    if (choice.calls.size >= callsMax) throw new AnswerFull("too many tool calls");
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
      // The engine ended a repetition, as its operator configured.
      case "repetition":
        // vLLM also sends `stop` after a call of a named function.
        return choice.calls.size > 0 || this.#options.stopsAsToolCalls ? "tool_calls" : "stop";
      default:
        throw new EngineFault("engine error", "it ended the answer itself");
    }
  }
}

/** Drops the blank lines between reasoning and text, which reasoning parsers leave in. */
function contentAfter(choice: ChoiceState, content: string | undefined): string | undefined {
  if (!content || !choice.isBetween) return content;
  const answer = content.trimStart();
  if (answer !== "") choice.isBetween = false;
  return answer;
}
