/** Tools and structured output of the embedded engine, from the real process. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask, chatWith, joined, type ToolCallDelta } from "./embedded-chat.ts";
import { post, startEngine, type EngineProcess } from "./embedded-process.ts";

let engine: EngineProcess;
let { chat, message, chunksOf } = chatWith("");

beforeAll(async () => {
  engine = await startEngine();
  ({ chat, message, chunksOf } = chatWith(engine.url));
});
afterAll(() => engine[Symbol.asyncDispose]());

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Get the weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
} as const;
const clock = { type: "function", function: { name: "get_time", parameters: { type: "object", properties: {} } } };

describe("tools", () => {
  const wish = { ...ask("What is the weather in Hamburg?"), tools: [weather] };

  test.each([{}, { reasoning_effort: "low" }])(
    "are called by the model itself, with %j [S5.3 S7.7]",
    async (thinking) => {
      const answer = await chat({ ...wish, ...thinking });
      expect(answer.choices[0]).toMatchObject({ finish_reason: "tool_calls", message: { content: null } });
      const [call] = answer.choices[0]!.message.tool_calls!;
      expect(call).toMatchObject({
        id: expect.stringMatching(/^call_/),
        type: "function",
        function: { name: "get_weather" },
      });
      const chunks = await chunksOf({ ...wish, ...thinking });
      const deltas = chunks.flatMap(({ choices }) => (choices[0]?.delta["tool_calls"] ?? []) as ToolCallDelta[]);
      expect(deltas[0]).toMatchObject({
        index: 0,
        id: expect.stringMatching(/^call_/),
        function: { name: "get_weather" },
      });
      expect(deltas.slice(1).some(({ id }) => id)).toBe(false);
      const args = deltas.map((delta) => delta.function!.arguments).join("");
      expect(JSON.parse(args)).toEqual({ city: expect.any(String) });
      expect(call).toMatchObject({ function: { arguments: args } });
      expect(chunks.at(-2)!.choices[0]!.finish_reason).toBe("tool_calls");
    },
  );

  test("lead to an answer from their results", async () => {
    const call = {
      id: "call_1",
      type: "function",
      function: { name: "get_weather", arguments: '{"city": "Hamburg"}' },
    };
    const result = { role: "tool", tool_call_id: "call_1", content: '{"temperature": 17, "condition": "cloudy"}' };
    const messages = [...wish.messages, { role: "assistant", tool_calls: [call] }, result];
    expect((await message({ ...wish, messages })).content).toMatch(/17/);
  });

  test("are not called if they do not help, or must not be called [S8.4]", async () => {
    expect(await message({ ...wish, ...ask("What is the capital of Italy?") })).not.toHaveProperty("tool_calls");
    expect(await message({ ...wish, tool_choice: "none" })).not.toHaveProperty("tool_calls");
  });

  test.each([{}, { reasoning_effort: "low" }])("are called if required, with %j [S8.4]", async (thinking) => {
    const must = { ...wish, ...ask("Who are you?"), ...thinking, temperature: 1 };
    const required = await chat({ ...must, tools: [weather, clock], tool_choice: "required" });
    expect(required.choices[0]).toMatchObject({ finish_reason: "tool_calls", message: { content: null } });
    const named = { type: "function", function: { name: "get_time" } };
    const forced = await chat({ ...must, tools: [weather, clock], tool_choice: named });
    expect(forced.choices[0]!.message.tool_calls).toMatchObject([{ function: { name: "get_time" } }]);
    expect(forced.choices[0]!.finish_reason).toBe("tool_calls");
  });
});

test("a required call is made even if the model would end after its reasoning", async () => {
  const must = { ...ask("Who are you?"), tools: [weather, clock], tool_choice: "required", reasoning_effort: "low" };
  const seeds = Array.from({ length: 24 }, (_, index) => 101 + index);
  const answers = await Promise.all(seeds.map((seed) => chat({ ...must, seed, temperature: 1 })));
  expect(answers.filter(({ choices }) => choices[0]!.finish_reason !== "tool_calls")).toEqual([]);
});

describe("structured output", () => {
  const schema = {
    type: "object",
    properties: {
      name: { type: "string", maxLength: 20 },
      age: { type: "integer" },
      city: { enum: ["Kassel", "Bonn"] },
    },
    required: ["name", "age", "city"],
  };
  const wish = ask("Extract name, age and city as JSON: Marlene, aged 47, lives in Kassel.");
  const bySchema = (shape: object) => ({ type: "json_schema", json_schema: { name: "x", schema: shape } });

  test("follows its schema even if the model tends to something else [S9.1]", async () => {
    const seeds = [1, 2, 3, 4, 5, 6, 7, 8];
    const answers = await Promise.all(
      seeds.map((seed) => chat({ ...wish, temperature: 2, seed, response_format: bySchema(schema) })),
    );
    for (const { choices } of answers) {
      expect(choices[0]!.finish_reason).toBe("stop");
      const value = JSON.parse(choices[0]!.message.content!) as Record<string, unknown>;
      expect(Object.keys(value)).toEqual(["name", "age", "city"]);
      expect(Number.isInteger(value["age"])).toBe(true);
      expect(["Kassel", "Bonn"]).toContain(value["city"]);
    }
  });

  test("applies to the content only, not to the reasoning before it [S7.7]", async () => {
    const answer = await message({ ...wish, reasoning_effort: "low", response_format: bySchema(schema) });
    expect(answer.reasoning_content).toMatch(/\w/);
    expect(JSON.parse(answer.content!)).toMatchObject({ city: expect.any(String) });
  });

  test("without a schema is any JSON object [S9.2]", async () => {
    const answer = await message({ ...wish, response_format: { type: "json_object" } });
    expect(JSON.parse(answer.content!)).toBeTypeOf("object");
  });

  test("contains characters of several tokens complete", async () => {
    const body = { ...wish, response_format: bySchema({ const: "🙂日本ß" }) };
    const chunks = await chunksOf(body);
    expect(joined(chunks, "content").trim()).toBe('"🙂日本ß"');
    expect(chunks.filter(({ choices }) => String(choices[0]?.delta["content"]).includes("\u{FFFD}"))).toEqual([]);
    const cut = await message({ ...body, max_tokens: 2 });
    expect(cut.content).not.toContain("\u{FFFD}");
  });

  test("is refused for an invalid schema", async () => {
    const refusal = await post(engine.url, "/v1/chat/completions", {
      ...wish,
      response_format: bySchema({ type: "x" }),
    });
    expect(refusal.status).toBe(400);
  });
});
