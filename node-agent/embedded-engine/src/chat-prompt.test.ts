import { fileURLToPath } from "node:url";
import { readGgufFileInfo } from "node-llama-cpp";
import { expect, test } from "vitest";
import { ChatTemplate } from "./chat-prompt.ts";
import { readChatRequest } from "./request/chat-request.ts";

const tinyModel = fileURLToPath(new URL("../../models/weiche-tiny.gguf", import.meta.url));
const chatMl = (await readGgufFileInfo(tinyModel)).metadata.tokenizer.chat_template;
const special = { bos_token: "<s>", eos_token: "</s>" };
const asIs = (value: unknown) => value;

function render(source: string | undefined, body: object, thinkFirst = false) {
  const request = readChatRequest({ messages: [{ role: "user", content: "Hi" }], ...body });
  return new ChatTemplate(source, special).render(request, asIs, thinkFirst);
}

test("a conversation is rendered by the model's own template, with reasoning off by default", () => {
  expect(render(chatMl, {})).toEqual({
    text: "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    startsThinking: false,
  });
});

test("reasoning is left to the model, or opened for it", () => {
  const on = { reasoning_effort: "low" };
  expect(render(chatMl, on)).toMatchObject({ text: expect.stringMatching(/assistant\n$/), startsThinking: false });
  expect(render(chatMl, on, true)).toMatchObject({ text: expect.stringMatching(/<think>\n$/), startsThinking: true });
  expect(render(chatMl, {}, true)).toMatchObject({ startsThinking: false });
});

test("a template that opens the reasoning itself is detected", () => {
  const template = "{{ messages[0].content }}<think>\n{# ends with </think> #}";
  expect(render(template, {}).startsThinking).toBe(true);
});

test("tools, calls and their results go through the template", () => {
  const tools = [{ type: "function", function: { name: "f", parameters: {} } }];
  const messages = [
    { role: "user", content: "Call f." },
    { role: "assistant", tool_calls: [{ id: "1", type: "function", function: { name: "f", arguments: '{"x":1}' } }] },
    { role: "tool", tool_call_id: "1", content: "done" },
  ];
  const { text } = render(chatMl, { messages, tools });
  expect(text).toContain('<tools>\n{"type": "function", "function": {"name": "f", "parameters": {}}}\n</tools>');
  expect(text).toContain('<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>');
  expect(text).toContain("<tool_response>\ndone\n</tool_response>");
});

test("the special tokens are the model's, whatever template arguments a client sends", () => {
  const template = "{{ bos_token }}{{ messages[0].content }}{{ mood }}";
  expect(render(template, { chat_template_kwargs: { bos_token: "X", messages: [], mood: "!" } }).text).toBe("<s>Hi!");
});

test("a model without a template gets a plain text, which ends where the next speaker would begin", () => {
  expect(render(undefined, {}).text).toBe("user: Hi\n\nassistant:");
  expect(new ChatTemplate(undefined, special).stop).toContain("\nuser:");
  expect(new ChatTemplate(chatMl, special).stop).toEqual([]);
});

test("if a template refuses the messages, the request is refused without quoting them", () => {
  const strict = "{{ raise_exception('no ' + messages[0].content) }}";
  expect(() => render(strict, {})).toThrow("the model's chat template does not take these messages");
});
