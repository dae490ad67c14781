/** Collects a completion's answer into one body. */
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import { usageBody, type AnswerEnvelope, type AnswerOptions, type AnswerWriter } from "./answer-writer.ts";
import type { FinishReason } from "./canonical-stream.ts";
import { Collected } from "./collected.ts";
import { completionLogprobs, type CompletionLogprobs } from "./logprobs.ts";
import type { TokenCounts } from "./usage-count.ts";

interface Choice {
  readonly text: string[];
  length: number;
  readonly logprobs: CompletionLogprobs;
  finish: FinishReason | undefined;
}

export class CompletionBody implements AnswerWriter {
  readonly #envelope: AnswerEnvelope;
  readonly #options: AnswerOptions;
  readonly #collected = new Collected();
  readonly #choices: readonly Choice[];

  constructor(envelope: AnswerEnvelope, options: AnswerOptions) {
    this.#envelope = envelope;
    this.#options = options;
    this.#choices = Array.from({ length: options.choices }, () => ({
      ...{ text: [], length: 0, finish: undefined },
      logprobs: { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] },
    }));
  }

  role(): void {}

  reasoning(index: number, text: string, logprobs: object | undefined): void {
    this.content(index, text, logprobs);
  }

  content(index: number, text: string, logprobs: object | undefined): void {
    const choice = this.#choices[index]!;
    const { logprobs: alternatives } = this.#options;
    if (logprobs && alternatives !== undefined) {
      const more = completionLogprobs(logprobs, alternatives, choice.length);
      for (const list of Object.keys(more) as (keyof CompletionLogprobs)[])
        this.#collected.addValues(choice.logprobs[list], more[list]);
    }
    choice.length += text.length;
    this.#collected.add(choice.text, text);
  }

  toolCall(): void {
    throw new EngineFault("malformed", "a tool call in a completion");
  }

  finish(index: number, reason: FinishReason): void {
    this.#choices[index]!.finish = reason;
  }

  takePending(): string {
    return "";
  }

  closing(counts: TokenCounts): string {
    const { id, created, model } = this.#envelope;
    const choices = this.#choices.map(({ text, logprobs, finish }, index) => ({
      index,
      text: text.join(""),
      logprobs: this.#options.logprobs === undefined ? null : logprobs,
      finish_reason: finish,
    }));
    return JSON.stringify({ id, object: "text_completion", created, model, choices, usage: usageBody(counts) });
  }
}
