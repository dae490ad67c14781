/** Writes a completion's answer as server-sent events. */
import {
  completionParts,
  eventText,
  type AnswerEnvelope,
  type AnswerOptions,
  type AnswerWriter,
} from "./answer-writer.ts";
import { completionLogprobs } from "./logprobs.ts";

export function completionEvents(envelope: AnswerEnvelope, options: AnswerOptions): AnswerWriter {
  const { choices, logprobs: alternatives, includeUsage } = options;
  const { add, takePending, closing } = eventText("text_completion", envelope, includeUsage);
  const lengths = Array.from({ length: choices }, () => 0);
  const event = (choice: number, text: string, logprobs: object | null, finish: string) =>
    add(
      `{"index":${choice},"text":${JSON.stringify(text)},"logprobs":${JSON.stringify(logprobs)},"finish_reason":${finish}}`,
    );
  const content: AnswerWriter["content"] = (choice, text, logprobs) => {
    const isShown = logprobs && alternatives !== undefined;
    const shown = isShown ? completionLogprobs(logprobs, alternatives, lengths[choice]!) : null;
    lengths[choice]! += text.length;
    event(choice, text, shown, "null");
  };
  return {
    ...completionParts(content),
    finish: (choice, reason) => event(choice, "", null, `"${reason}"`),
    takePending,
    closing,
  };
}
