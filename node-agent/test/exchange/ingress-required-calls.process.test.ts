/** Required calls, from a llama-server that allows text before them. */
import { expect, test } from "vitest";
import { chatRules, choicesOf, Rig } from "./ingress-rig.ts";
import { delta, done, usageEvent } from "./scripted-engine.ts";

const tools = [
  { type: "function", function: { name: "f", parameters: { type: "object", properties: { a: { type: "string" } } } } },
  { type: "function", function: { name: "g" } },
];
const begin = delta({ role: "assistant", content: null }) + delta({ reasoning_content: "Hm" });
const end = (reason: string) => delta({}, reason) + usageEvent(9, 8) + done;

async function required(stream: string, body: object = {}) {
  await using rig = await Rig.open(stream, { dialect: "llama-server" });
  const got = await rig.chat({ tools, tool_choice: "required", ...body }).answer;
  await rig.quiet();
  return { ...got, asked: rig.engine.saw[0]!.body, record: rig.outbox.records[0], faults: rig.faults };
}

const text = ['[{"na', 'me": "f", "arguments": {"a"', ': "b"}}', ', {"name": "g", "arguments": {}}]'];
const stream = begin + text.map((content) => delta({ content })).join("") + end("stop");

test("required calls are requested by a schema, with the tools in the prompt, and become calls, streamed and not [S8.4]", async () => {
  const { asked, text: whole, record } = await required(stream);
  expect(asked).toMatchObject({ tools, tool_choice: "none", response_format: { type: "json_schema" } });
  const { choices } = JSON.parse(whole) as { choices: unknown };
  const call = (name: string, json: string) => ({ type: "function", function: { name, arguments: json } });
  expect(choices).toMatchObject([
    {
      finish_reason: "tool_calls",
      message: { content: null, reasoning_content: "Hm", tool_calls: [call("f", '{"a": "b"}'), call("g", "{}")] },
    },
  ]);
  expect(record).toMatchObject({ promptTokens: 9, completionTokens: 8, source: "engine" });
  const streamed = await required(stream, { stream: true });
  expect(streamed.text).not.toMatch(/"content":"[^"]/);
  expect(choicesOf(streamed.text).at(-1)).toMatchObject({ finish_reason: "tool_calls" });
});

test("a call that the token limit cuts ends with length", async () => {
  const { text: whole } = await required(begin + delta({ content: text[0]! + text[1]! }) + end("length"));
  expect(JSON.parse(whole)).toMatchObject({
    choices: [{ finish_reason: "length", message: { tool_calls: [{ function: { arguments: '{"a"' } }] } }],
  });
});

test("text is the engine's fault, and the operator gets a remedy", async () => {
  const { status, faults } = await required(begin + delta({ content: "I will not." }) + end("stop"));
  expect(status).toBe(500);
  expect(faults).toEqual(["malformed: text where calls were required: the model needs tools.enforced: false"]);
});

test("if a call is optional or cannot be forced, the engine makes it itself", async () => {
  const { asked } = await required(stream, { tool_choice: "auto" });
  expect(asked).toMatchObject({ tools, tool_choice: "auto" });
  expect(asked).not.toHaveProperty("response_format");
  const rules = { ...chatRules, toolsEnforced: false };
  await using rig = await Rig.open(stream, { dialect: "llama-server", rules });
  const { text: whole } = await rig.chat({ tools, tool_choice: "required" }).answer;
  expect(JSON.parse(whole)).toMatchObject({
    choices: [{ finish_reason: "tool_calls", message: { content: text.join("") } }],
  });
});
