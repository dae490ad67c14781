/** Clients get canonical answers from recorded answers of vLLM 0.32.0. */
import { expect, test } from "vitest";
import { choicesOf } from "./ingress-rig.ts";
import { readRecording } from "./recordings.ts";
import { replay } from "./replay.ts";

const vllm = (name: string, more: object = {}) => replay(name, more, "vllm");

interface Whole {
  readonly choices: readonly {
    readonly message: Record<string, unknown>;
    readonly finish_reason: string;
    readonly logprobs: { readonly content: readonly { readonly token: string }[] } | null;
  }[];
  readonly usage: object;
}
const whole = async (name: string) => JSON.parse((await vllm(name, { stream: false })).text) as Whole;
const recorded = (name: string) => JSON.parse(readRecording(name).body) as Whole;

test("an answer after reasoning begins with its first word, streamed and not, and costs the same", async () => {
  const { text, record } = await vllm("v16-chat-thinking-on-stream");
  const contents = choicesOf(text).flatMap((choice) => {
    const { delta } = choice as { delta?: { content?: string } };
    return delta?.content ? [delta.content] : [];
  });
  expect(contents.slice(0, 2)).toEqual(["The", " capital"]);
  expect(record).toMatchObject({ promptTokens: 17, completionTokens: 31, reasoningTokens: 17, source: "engine" });
  const { choices } = await whole("v16-chat-thinking-on-stream");
  const { message } = recorded("v15-chat-thinking-on").choices[0]!;
  expect(message["content"]).toBe("\n\nThe capital of Norway is Oslo.");
  expect(choices[0]!.message).toEqual({
    ...{ role: "assistant", content: "The capital of Norway is Oslo.", reasoning_content: message["reasoning"] },
  });
});

test.each(["v70-tool-thinking-stream", "v73-tool-named-thinking-stream"])(
  "%s: a call after reasoning has no content, as in vLLM's own body [S5.3]",
  async (name) => {
    const { message, finish_reason } = (await whole(name)).choices[0]!;
    const expected = recorded("v71-tool-thinking").choices[0]!.message;
    const [call] = expected["tool_calls"] as { function: object }[];
    expect(message).toMatchObject({
      ...{ content: null, reasoning_content: expected["reasoning"] },
      tool_calls: [{ type: "function", function: call!.function }],
    });
    expect(finish_reason).toBe("tool_calls");
    expect((await vllm(name)).text).not.toContain('"content":"\\n');
  },
);

test("a call keeps the log probabilities of its tokens, even of tokens that are in none of its fields [S4.13]", async () => {
  const { choices } = await whole("v74-tool-logprobs-stream");
  const tokens = choices[0]!.logprobs!.content.map(({ token }) => token);
  expect(tokens).toHaveLength(23);
  expect(tokens.join("")).toBe(
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Hamburg"}}\n</tool_call><|im_end|>',
  );
  expect(choices[0]!.message["content"]).toBeNull();
});

const refusals: [name: string, param: string, message: string, shortfalls: string[]][] = [
  ["v34-chat-bad-schema", "response_format", "must be a JSON Schema whose types are types of JSON", []],
  ["v35-chat-bad-schema-stream", "response_format", "must be a JSON Schema whose types are types of JSON", []],
  ["v47-chat-n2-greedy", "n", "must be 1 where temperature is 0", []],
  [
    "v50-chat-stop-5-strings",
    "stop",
    "must be at most 4 strings for this model, for now",
    ["its engine takes 4 stop strings: start it with VLLM_MAX_STOP_STRINGS=64"],
  ],
];
test.each(refusals)("%s: a refusal names %s and what it must be [S4.9]", async (name, param, must, shortfalls) => {
  const got = await vllm(name);
  expect(got.status).toBe(400);
  expect(JSON.parse(got.text)).toMatchObject({ error: { param, message: `Invalid '${param}': ${must}.` } });
  expect(got.shortfalls).toEqual(shortfalls);
  expect(got.faults).toEqual([]);
  expect(got.record).toBeUndefined();
});
