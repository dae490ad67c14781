/** Writes a chat's answer as server-sent events. */
import { eventText, type AnswerEnvelope, type AnswerOptions, type AnswerWriter } from "./answer-writer.ts";
import { chatLogprobs } from "./logprobs.ts";

export function chatEvents(envelope: AnswerEnvelope, options: AnswerOptions): AnswerWriter {
  const { logprobs: alternatives, includeUsage } = options;
  const { add, takePending, closing } = eventText("chat.completion.chunk", envelope, includeUsage);
  const event = (choice: number, delta: string, logprobs?: object) => {
    const shown =
      logprobs && alternatives !== undefined
        ? `"logprobs":${JSON.stringify({ content: chatLogprobs(logprobs, alternatives) })},`
        : "";
    add(`{"index":${choice},"delta":${delta},${shown}"finish_reason":null}`);
  };
  return {
    role: (choice) => event(choice, '{"role":"assistant","content":""}'),
    reasoning: (choice, text, logprobs) => event(choice, `{"reasoning_content":${JSON.stringify(text)}}`, logprobs),
    content: (choice, text, logprobs) => event(choice, `{"content":${JSON.stringify(text)}}`, logprobs),
    toolCall(choice, { index, opening, arguments: json }, logprobs) {
      const call = opening
        ? { index, id: opening.id, type: "function", function: { name: opening.name, arguments: json } }
        : { index, function: { arguments: json } };
      event(choice, `{"tool_calls":[${JSON.stringify(call)}]}`, logprobs);
    },
    finish: (choice, reason) => add(`{"index":${choice},"delta":{},"finish_reason":"${reason}"}`),
    takePending,
    closing,
  };
}
