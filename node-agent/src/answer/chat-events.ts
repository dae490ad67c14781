/** Writes a chat's answer as server-sent events. */
import { terminator, usageBody, type AnswerEnvelope, type AnswerOptions, type AnswerWriter } from "./answer-writer.ts";
import type { CanonicalToolCall, FinishReason } from "./canonical-stream.ts";
import { chatLogprobs } from "./logprobs.ts";
import type { TokenCounts } from "./usage-count.ts";

export class ChatEvents implements AnswerWriter {
  readonly #options: AnswerOptions;
  /** The beginning of every event, up to the choice. */
  readonly #head: string;
  #pending = "";

  constructor({ id, created, model }: AnswerEnvelope, options: AnswerOptions) {
    this.#options = options;
    const head = JSON.stringify({ id, object: "chat.completion.chunk", created, model });
    this.#head = `data: ${head.slice(0, -1)},"choices":[`;
  }

  role(choice: number): void {
    this.#event(choice, '{"role":"assistant","content":""}');
  }

  reasoning(choice: number, text: string, logprobs: object | undefined): void {
    this.#event(choice, `{"reasoning_content":${JSON.stringify(text)}}`, logprobs);
  }

  content(choice: number, text: string, logprobs: object | undefined): void {
    this.#event(choice, `{"content":${JSON.stringify(text)}}`, logprobs);
  }

  toolCall(choice: number, { index, opening, arguments: json }: CanonicalToolCall, logprobs: object | undefined): void {
    const call = opening
      ? { index, id: opening.id, type: "function", function: { name: opening.name, arguments: json } }
      : { index, function: { arguments: json } };
    this.#event(choice, `{"tool_calls":[${JSON.stringify(call)}]}`, logprobs);
  }

  finish(choice: number, reason: FinishReason): void {
    this.#pending += `${this.#head}{"index":${choice},"delta":{},"finish_reason":"${reason}"}]}\n\n`;
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

  #event(choice: number, delta: string, logprobs?: object): void {
    const { logprobs: alternatives } = this.#options;
    const shown =
      logprobs && alternatives !== undefined
        ? `"logprobs":${JSON.stringify({ content: chatLogprobs(logprobs, alternatives) })},`
        : "";
    this.#pending += `${this.#head}{"index":${choice},"delta":${delta},${shown}"finish_reason":null}]}\n\n`;
  }
}
