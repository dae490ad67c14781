/** Checks JSON by schema, tools and embeddings. */
import type { Choice } from "../../cluster/api-client.ts";
import { expect, expectEqual, type Check } from "../check.ts";
import { embedder, forms, type Service } from "../service.ts";
import { story, whole, who } from "./answers.ts";

const extract = "Extract name, age and city as JSON: Marlene, aged 47, lives in Kassel.";
const person = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" }, city: { type: "string" } },
  required: ["name", "age", "city"],
  additionalProperties: false,
};

function formatOf(schema: object): object {
  return { response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema } } };
}

function tool(name: string, argument: string): object {
  const parameters = { type: "object", properties: { [argument]: { type: "string" } }, required: [argument] };
  return { type: "function", function: { name, description: `Get the ${name.slice(4)}`, parameters } };
}

const tools = [tool("get_weather", "city"), tool("get_time", "timezone")];
const weather = "What is the weather in Hamburg?";

/** Requests the same chat as a body and as a stream. */
async function bothWays(service: Service, asked: string | object, more: object): Promise<readonly Choice[]> {
  const answers = [await service.chat(asked, more), await service.stream(asked, more)];
  return answers.map((answer) => whole(answer).choices[0]!);
}

function expectCall(choice: Choice, name?: string): void {
  const { calls, finish, isNull, content } = choice;
  expect(calls.length > 0, "a call", choice);
  expectEqual(finish, "tool_calls", "finish_reason");
  expect(isNull, "no content beside a call", content);
  for (const call of calls) {
    expect(name === undefined || call.name === name, `a call of ${name}`, call);
    const argument = call.name === "get_time" ? "timezone" : "city";
    const given = parsed(call.arguments) as Record<string, unknown>;
    expect(call.id !== "" && typeof given[argument] === "string", "an id, and arguments as the schema has them", call);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`JSON is expected; seen: ${text.slice(0, 120)}`);
  }
}

export const structure: readonly Check[] = [
  {
    name: "json_schema is kept",
    async run(service) {
      for (const { content } of await bothWays(service, extract, { ...formatOf(person), max_tokens: 200 })) {
        const { name, age, city, ...rest } = parsed(content) as Record<string, unknown>;
        const kept = typeof name === "string" && Number.isInteger(age) && typeof city === "string";
        expect(kept && Object.keys(rest).length === 0, "an answer as the schema has it", content);
      }
    },
  },
  {
    name: "json_schema after thinking holds for the answer alone",
    async run(service) {
      const more = { ...formatOf(person), reasoning_effort: "low", max_tokens: 300 };
      for (const { content, reasoning } of await bothWays(service, extract, more)) {
        expect(reasoning.trim() !== "", "reasoning_content");
        expect(Number.isInteger((parsed(content) as { age: unknown }).age), "an answer as the schema has it", content);
      }
    },
  },
  {
    name: "json_object is JSON",
    async run(service) {
      const more = { response_format: { type: "json_object" }, max_tokens: 300 };
      for (const { content } of await bothWays(service, extract, more))
        expect(typeof parsed(content) === "object", "an object", content);
    },
  },
  {
    name: "a schema that is none: 400 that names response_format",
    async run(service) {
      for (const form of forms) {
        const { status, error } = await service.inForm(form, who, formatOf({ type: "nonsense" }));
        expectEqual(status, 400, "the status");
        expect(error?.param?.startsWith("response_format") === true, "param response_format…", error);
      }
    },
  },
  {
    name: "tools, auto: called where they help",
    async run(service) {
      for (const choice of await bothWays(service, weather, { tools, max_tokens: 100 }))
        expectCall(choice, "get_weather");
    },
  },
  {
    name: "tools, auto: text where they do not",
    async run(service) {
      for (const { calls, content, finish } of await bothWays(service, who, { tools, max_tokens: 100 })) {
        expect(calls.length === 0 && content !== "", "text without a call", { calls, content });
        expectEqual(finish, "stop", "finish_reason");
      }
    },
  },
  {
    name: "tools, none: never called",
    async run(service) {
      for (const { calls } of await bothWays(service, weather, { tools, tool_choice: "none", max_tokens: 60 }))
        expectEqual(calls.length, 0, "the number of calls");
    },
  },
  {
    name: "tools, required: a call, also where none is on the topic",
    async run(service) {
      for (const question of [weather, who, "Hi", story, "Was ist Weiche?"])
        for (const choice of await bothWays(service, question, { tools, tool_choice: "required", max_tokens: 200 }))
          expectCall(choice);
    },
  },
  {
    name: "tools, a named one: that one",
    async run(service) {
      for (const question of [weather, who])
        for (const name of ["get_weather", "get_time"]) {
          const named = { tools, tool_choice: { type: "function", function: { name } }, max_tokens: 200 };
          for (const choice of await bothWays(service, question, named)) expectCall(choice, name);
        }
    },
  },
  {
    name: "a call after thinking: no content, not even blank lines",
    async run(service) {
      const more = { tools, reasoning_effort: "low", max_tokens: 200 };
      for (const choice of await bothWays(service, weather, more)) {
        expect(choice.reasoning.trim() !== "", "reasoning_content");
        expectCall(choice, "get_weather");
      }
    },
  },
  {
    name: "a tool's result is answered, also with empty arguments in the history",
    async run(service) {
      for (const given of ['{"city": "Hamburg"}', ""]) {
        const call = { id: "call_1", type: "function", function: { name: "get_weather", arguments: given } };
        const messages = [
          { role: "user", content: weather },
          { role: "assistant", content: null, tool_calls: [call] },
          { role: "tool", tool_call_id: "call_1", content: '{"temperature": 17, "sky": "cloudy"}' },
        ];
        for (const { content } of await bothWays(service, { messages }, { tools, max_tokens: 60 }))
          expect(content.includes("17"), "the temperature", content);
      }
    },
  },
  {
    name: "embeddings: order, length, dimensions, base64, usage",
    boundMs: 120_000,
    async run(service) {
      const input = ["hello world", "cat", "the cat sleeps in the garden"];
      const embed = async (body: object) => whole(await service.ask("/embeddings", { model: embedder, ...body }));
      const { vectors: whichever, usage } = await embed({ input });
      const vectors = whichever as number[][];
      expectEqual(vectors.length, 3, "the number of vectors");
      for (const vector of vectors) {
        expectEqual(vector.length, 192, "dimensions");
        expect(Math.abs(Math.hypot(...vector) - 1) < 1e-3, "length 1", Math.hypot(...vector));
      }
      expect(usage!.prompt_tokens > 5 && usage!.total_tokens === usage!.prompt_tokens, "input tokens", usage);
      const [alone] = (await embed({ input: input[1]! })).vectors;
      expectAlike(alone as number[], vectors[1]!, "the same vector for the same text");
      const [short] = (await embed({ input: input[0], dimensions: 64 })).vectors;
      expectEqual(short!.length, 64, "dimensions that were asked for");
      const [packed] = (await embed({ input: input[0], encoding_format: "base64" })).vectors;
      const floats = new Float32Array(new Uint8Array(Buffer.from(packed as string, "base64")).buffer);
      expectAlike([...floats], vectors[0]!, "base64 of the same vector");
    },
  },
];

/** Expects almost equal vectors, because engines calculate slightly differently for several texts at once. */
function expectAlike(one: readonly number[], other: readonly number[], what: string): void {
  const likeness = one.reduce((sum, value, at) => sum + value * other[at]!, 0);
  expect(one.length === other.length && likeness > 0.999, what, likeness);
}
