/** Writes a completion's answer as server-sent events. */
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import { terminator, usageBody, type AnswerEnvelope, type AnswerOptions, type AnswerWriter } from "./answer-writer.ts";
import type { FinishReason } from "./canonical-stream.ts";
import { completionLogprobs } from "./logprobs.ts";
import type { TokenCounts } from "./usage-count.ts";

export class CompletionEvents implements AnswerWriter {
  readonly #options: AnswerOptions;
  readonly #head: string;
  readonly #lengths: number[];
  #pending = "";

  constructor({ id, created, model }: AnswerEnvelope, options: AnswerOptions) {
    this.#options = options;
    const head = JSON.stringify({ id, object: "text_completion", created, model });
    this.#head = `data: ${head.slice(0, -1)},"choices":[`;
    this.#lengths = Array.from({ length: options.choices }, () => 0);
  }

  role(): void {}

  /** Completions have no reasoning: what an engine sends as such is text. */
  reasoning(choice: number, text: string, logprobs: object | undefined): void {
    this.content(choice, text, logprobs);
  }

  content(choice: number, text: string, logprobs: object | undefined): void {
    const { logprobs: alternatives } = this.#options;
    const shown =
      logprobs && alternatives !== undefined
        ? completionLogprobs(logprobs, alternatives, this.#lengths[choice]!)
        : null;
    this.#lengths[choice]! += text.length;
    this.#event(choice, JSON.stringify(text), JSON.stringify(shown), "null");
  }

  toolCall(): void {
    throw new EngineFault("malformed", "a tool call in a completion");
  }

  finish(choice: number, reason: FinishReason): void {
    this.#event(choice, '""', "null", `"${reason}"`);
  }

  takePending(): string {
    const pending = this.#pending;
    this.#pending = "";
    return pending;
  }

  closing(counts: TokenCounts): string {
    if (!this.#options.includeUsage) return terminator;
    return `${this.#head}],"usage":${JSON.stringify(usageBody(counts))}}\n\n${terminator}`;
  }

  #event(choice: number, text: string, logprobs: string, finish: string): void {
    this.#pending += `${this.#head}{"index":${choice},"text":${text},"logprobs":${logprobs},"finish_reason":${finish}}]}\n\n`;
  }
}
