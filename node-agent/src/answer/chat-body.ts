/** Collects a chat's answer into one body. */
import { usageBody, type AnswerEnvelope, type AnswerOptions, type AnswerWriter } from "./answer-writer.ts";
import type { FinishReason } from "./canonical-stream.ts";
import { Collected } from "./collected.ts";
import { chatLogprobs, type TokenLogprob } from "./logprobs.ts";

interface Choice {
  readonly reasoning: string[];
  readonly content: string[];
  readonly logprobs: TokenLogprob[];
  readonly calls: Map<number, { readonly id: string; readonly name: string; readonly arguments: string[] }>;
  finish: FinishReason | undefined;
}

export function chatBody({ id, created, model }: AnswerEnvelope, options: AnswerOptions): AnswerWriter {
  const { logprobs: alternatives } = options;
  const collected = new Collected();
  const choices = Array.from({ length: options.choices }, (): Choice => ({
    ...{ reasoning: [], content: [], logprobs: [], finish: undefined },
    calls: new Map(),
  }));
  const addLogprobs = (choice: Choice, logprobs: object | undefined) => {
    if (logprobs && alternatives !== undefined)
      collected.addValues(choice.logprobs, chatLogprobs(logprobs, alternatives));
  };
  const addText = (part: "reasoning" | "content") => (index: number, text: string, logprobs: object | undefined) => {
    collected.add(choices[index]![part], text);
    addLogprobs(choices[index]!, logprobs);
  };
  return {
    role() {},
    reasoning: addText("reasoning"),
    content: addText("content"),
    toolCall(index, piece, logprobs) {
      const choice = choices[index]!;
      if (piece.opening) {
        collected.count(piece.opening.id + piece.opening.name);
        choice.calls.set(piece.index, { ...piece.opening, arguments: [] });
      }
      collected.add(choice.calls.get(piece.index)!.arguments, piece.arguments);
      addLogprobs(choice, logprobs);
    },
    finish: (index, reason) => void (choices[index]!.finish = reason),
    takePending: () => "",
    closing(counts) {
      const shown = choices.map((choice, index) => ({
        index,
        message: messageOf(choice),
        logprobs: alternatives === undefined ? null : { content: choice.logprobs },
        finish_reason: choice.finish,
      }));
      const usage = usageBody(counts);
      return JSON.stringify({ id, object: "chat.completion", created, model, choices: shown, usage });
    },
  };
}

/**
 * Returns the message of a choice. Without text, `content` is null if there are calls or the token limit was reached.
 * Blank text beside calls counts as no text.
 */
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
