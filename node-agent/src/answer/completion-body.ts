/** Collects a completion's answer into one body. */
import {
  completionParts,
  usageBody,
  type AnswerEnvelope,
  type AnswerOptions,
  type AnswerWriter,
} from "./answer-writer.ts";
import type { FinishReason } from "./canonical-stream.ts";
import { Collected } from "./collected.ts";
import { completionLogprobs, type CompletionLogprobs } from "./logprobs.ts";

interface Choice {
  readonly text: string[];
  length: number;
  readonly logprobs: CompletionLogprobs;
  finish: FinishReason | undefined;
}

export function completionBody({ id, created, model }: AnswerEnvelope, options: AnswerOptions): AnswerWriter {
  const { logprobs: alternatives } = options;
  const collected = new Collected();
  const choices = Array.from({ length: options.choices }, (): Choice => ({
    ...{ text: [], length: 0, finish: undefined },
    logprobs: { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] },
  }));
  const content: AnswerWriter["content"] = (index, text, logprobs) => {
    const choice = choices[index]!;
    if (logprobs && alternatives !== undefined) {
      const more = completionLogprobs(logprobs, alternatives, choice.length);
      for (const list of Object.keys(more) as (keyof CompletionLogprobs)[])
        collected.addValues(choice.logprobs[list], more[list]);
    }
    choice.length += text.length;
    collected.add(choice.text, text);
  };
  return {
    ...completionParts(content),
    finish: (index, reason) => void (choices[index]!.finish = reason),
    takePending: () => "",
    closing(counts) {
      const shown = choices.map(({ text, logprobs, finish }, index) => ({
        index,
        text: text.join(""),
        logprobs: alternatives === undefined ? null : logprobs,
        finish_reason: finish,
      }));
      const usage = usageBody(counts);
      return JSON.stringify({ id, object: "text_completion", created, model, choices: shown, usage });
    },
  };
}
