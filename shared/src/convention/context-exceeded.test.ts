import { expect, test } from "vitest";
import { contextExceeded } from "./context-exceeded.ts";

const errors = {
  counted: contextExceeded(32_768, 40_000, { input: "messages", maxTokens: undefined }),
  "counted, with a limit": contextExceeded(32_768, 32_000, { input: "prompt", maxTokens: 1_000 }),
  "counted in part": contextExceeded(32_768, { atLeast: 32_669 }, { input: "messages", maxTokens: 100 }),
  "not counted": contextExceeded(512, undefined, { input: "input", maxTokens: undefined }),
};
const all = Object.entries(errors);

/**
 * The words that client libraries search in the exception's text, which is only the message since OpenAI's client 3.56.
 */
const sought: Readonly<Record<string, string>> = {
  "litellm 1.110, and dspy 3.4 with it": "this model's maximum context length is",
  "crewai 1.15": "maximum context length",
  "LangChain 1.7 and 1.6 for Node.js, strands 1.62": "context_length_exceeded",
  "pydantic-ai 2.68": "reduce the length of the",
};

test.each(Object.entries(sought))("%s recognises each overflow [S4.5]", (_library, words) => {
  for (const [, error] of all) expect(error.message.toLowerCase()).toContain(words);
});

test.each(all)("an overflow that is %s has its numbers where clients read them [S4.5]", (_name, { message }) => {
  const pattern =
    /maximum context length is (\d+) tokens\. However, you requested (?:at least )?(\d+) tokens \((?:at least )?(\d+) in the (?:messages|prompt|input), (\d+) in the completion\)/;
  const [window, requested, input, completion] = pattern.exec(message)!.slice(1).map(Number);
  expect(input! + completion!).toBe(requested);
  expect(requested!).toBeGreaterThan(window!);
});

test("the message has the counted tokens, and asks to shorten a part that the client controls", () => {
  expect(all.map(([, { message, param }]) => [param, message.split("However, ")[1]])).toEqual([
    [
      "messages",
      "you requested 40000 tokens (40000 in the messages, 0 in the completion). Please reduce the length of the messages. (context_length_exceeded)",
    ],
    [
      "prompt",
      "you requested 33000 tokens (32000 in the prompt, 1000 in the completion). Please reduce the length of the prompt or completion. (context_length_exceeded)",
    ],
    [
      "messages",
      "you requested at least 32769 tokens (at least 32669 in the messages, 100 in the completion). Please reduce the length of the messages or completion. (context_length_exceeded)",
    ],
    [
      "input",
      "you requested at least 513 tokens (at least 513 in the input, 0 in the completion). Please reduce the length of the input. (context_length_exceeded)",
    ],
  ]);
});
