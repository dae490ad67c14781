/** Collects a chat's answer into one body. */
import { usageBody, type AnswerEnvelope, type AnswerOptions, type AnswerWriter } from "./answer-writer.ts";
import type { CanonicalToolCall, FinishReason } from "./canonical-stream.ts";
import { Collected } from "./collected.ts";
import { chatLogprobs, type TokenLogprob } from "./logprobs.ts";
import type { TokenCounts } from "./usage-count.ts";

interface Choice {
  readonly reasoning: string[];
  readonly content: string[];
  readonly logprobs: TokenLogprob[];
  readonly calls: Map<number, { readonly id: string; readonly name: string; readonly arguments: string[] }>;
  finish: FinishReason | undefined;
}

export class ChatBody implements AnswerWriter {
  readonly #envelope: AnswerEnvelope;
  readonly #options: AnswerOptions;
  readonly #collected = new Collected();
  readonly #choices: readonly Choice[];

  constructor(envelope: AnswerEnvelope, options: AnswerOptions) {
    this.#envelope = envelope;
    this.#options = options;
    this.#choices = Array.from({ length: options.choices }, () => ({
      ...{ reasoning: [], content: [], logprobs: [], finish: undefined },
      calls: new Map(),
    }));
  }

  role(): void {}

  reasoning(index: number, text: string, logprobs: object | undefined): void {
    const choice = this.#choices[index]!;
    this.#collected.add(choice.reasoning, text);
    this.#addLogprobs(choice, logprobs);
  }

  content(index: number, text: string, logprobs: object | undefined): void {
    const choice = this.#choices[index]!;
    this.#collected.add(choice.content, text);
    this.#addLogprobs(choice, logprobs);
  }

  toolCall(index: number, piece: CanonicalToolCall, logprobs: object | undefined): void {
    const choice = this.#choices[index]!;
    if (piece.opening) {
      this.#collected.count(piece.opening.id + piece.opening.name);
      choice.calls.set(piece.index, { ...piece.opening, arguments: [] });
    }
    this.#collected.add(choice.calls.get(piece.index)!.arguments, piece.arguments);
    this.#addLogprobs(choice, logprobs);
  }

  #addLogprobs(choice: Choice, logprobs: object | undefined): void {
    const { logprobs: alternatives } = this.#options;
    if (logprobs && alternatives !== undefined)
      this.#collected.addValues(choice.logprobs, chatLogprobs(logprobs, alternatives));
  }

  finish(index: number, reason: FinishReason): void {
    this.#choices[index]!.finish = reason;
  }

  takePending(): string {
    return "";
  }

  closing(counts: TokenCounts): string {
    const { id, created, model } = this.#envelope;
    const choices = this.#choices.map((choice, index) => ({
      index,
      message: messageOf(choice),
      logprobs: this.#options.logprobs === undefined ? null : { content: choice.logprobs },
      finish_reason: choice.finish,
    }));
    return JSON.stringify({ id, object: "chat.completion", created, model, choices, usage: usageBody(counts) });
  }
}

/** Without text, `content` is null if there are calls or the limit was reached. Beside calls, blank text is none. */
function messageOf({ reasoning, content, calls, finish }: Choice) {
  const joined = content.join("");
  const text = calls.size > 0 && joined.trim() === "" ? "" : joined;
  const tool_calls = [...calls.values()].map((call) => ({
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.arguments.join("") },
  }));
  return {
    role: "assistant",
    content: text === "" && (calls.size > 0 || finish === "length") ? null : text,
    ...(reasoning.length > 0 && { reasoning_content: reasoning.join("") }),
    ...(calls.size > 0 && { tool_calls }),
  };
}
