/**
 * Tests that every body gets a 2xx, or a 4xx with an error object, and never a 5xx or no answer. `WEICHE_CASES` sets the
 * number of bodies.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { chatSchema } from "@weiche/shared/convention/chat.ts";
import { completionSchema } from "@weiche/shared/convention/completions.ts";
import { embeddingSchema } from "@weiche/shared/convention/embeddings.ts";
import { startApi, type Answer } from "./api-harness.ts";

const cases = Number(process.env["WEICHE_CASES"] ?? 2_000);
const api = await forThisFile(startApi());

const models = fc.constantFrom(...Array<string>(8).fill("general-4-31b"), "general-3.8-27b", "coder-next", "small-24b");
const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 });
const url = fc.constantFrom("data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==", "data:image/gif;base64,R0lGODlh");
const textPart = fc.record({ type: fc.constant("text"), text });
const imagePart = fc.record({ type: fc.constant("image_url"), image_url: fc.record({ url }) });
const [texts, parts] = [textPart, fc.oneof(textPart, imagePart)].map((part) => fc.array(part, { maxLength: 3 }));
const content = fc.oneof({ arbitrary: text, weight: 3 }, texts!);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { freq: 4 });
const toolCall = fc.record({
  id: text,
  type: maybe(fc.constant("function")),
  function: fc.record({ name: text, arguments: text }),
});
const message = fc.oneof(
  fc.record({ role: fc.constantFrom("system", "developer", "user"), content }),
  fc.record({ role: fc.constant("user"), content: parts! }),
  fc.record({
    role: fc.constant("assistant"),
    content: fc.option(content),
    tool_calls: maybe(fc.array(toolCall, { maxLength: 2 })),
  }),
  fc.record({ role: fc.constant("tool"), content, tool_call_id: text }),
);
const named = { type: fc.constant("function"), function: fc.record({ name: text }) };
const tool = fc.record({
  type: fc.constant("function"),
  function: fc.record({ name: text, description: maybe(text), parameters: maybe(fc.object()) }),
});
const format = fc.oneof(
  fc.record({ type: fc.constantFrom("text", "json_object"), json_schema: fc.constant(null) }),
  fc.record({
    type: fc.constant("json_schema"),
    json_schema: fc.record({ name: text, schema: fc.object(), strict: maybe(fc.boolean()) }),
  }),
);
const penalty = maybe(fc.double({ min: -2, max: 2, noNaN: true }));

const generation = {
  model: models,
  max_tokens: maybe(fc.integer({ min: 1, max: 32_768 })),
  temperature: maybe(fc.double({ min: 0, max: 2, noNaN: true })),
  top_p: maybe(fc.double({ min: 0, max: 1, noNaN: true })),
  stop: maybe(fc.oneof(text, fc.array(text, { maxLength: 5 }))),
  n: maybe(fc.integer({ min: 1, max: 8 })),
  seed: maybe(fc.integer()),
  presence_penalty: penalty,
  frequency_penalty: penalty,
  stream: maybe(fc.boolean()),
  stream_options: maybe(fc.record({ include_usage: maybe(fc.boolean()) })),
};
const chat = fc
  .record(
    {
      ...generation,
      messages: fc.array(message, { minLength: 1, maxLength: 5 }),
      tools: maybe(fc.array(tool, { maxLength: 3 })),
      tool_choice: maybe(fc.oneof(fc.constantFrom("auto", "none", "required"), fc.record(named))),
      parallel_tool_calls: maybe(fc.boolean()),
      response_format: maybe(format),
      reasoning_effort: maybe(fc.constantFrom("none", "low")),
      chat_template_kwargs: maybe(fc.record({ enable_thinking: maybe(fc.boolean()) })),
      max_completion_tokens: maybe(fc.integer({ min: 1, max: 32_768 })),
      logprobs: maybe(fc.boolean()),
      top_logprobs: maybe(fc.integer({ min: 0, max: 20 })),
    },
    { requiredKeys: ["model", "messages"] },
  )
  .map(coherent);

/** Adds the fields that other fields depend on, because few random chats would be valid otherwise. */
function coherent(body: object): object {
  const { tools, tool_choice: choice, top_logprobs: most } = body as Record<string, any>;
  const name = tools?.[0]?.function.name ?? choice?.function?.name;
  return {
    ...body,
    ...(most ? { logprobs: true } : {}),
    ...(choice?.function ? { tool_choice: { ...choice, function: { name } } } : {}),
  };
}
const completion = fc.record(
  { ...generation, prompt: fc.oneof(text, fc.tuple(text)), logprobs: maybe(fc.integer({ min: 0, max: 20 })) },
  { requiredKeys: ["model", "prompt"] },
);
const embedding = fc.record(
  {
    model: fc.constant("vl-embedding-2b"),
    input: fc.oneof(text, fc.array(text, { minLength: 1, maxLength: 5 })),
    dimensions: maybe(fc.integer({ min: 64, max: 2_048 })),
    encoding_format: maybe(fc.constantFrom("float", "base64")),
    instruction: maybe(text),
  },
  { requiredKeys: ["model", "input"] },
);
const sound = fc.oneof(
  fc.tuple(fc.constant("/v1/chat/completions"), chat),
  fc.tuple(fc.constant("/v1/completions"), completion),
  fc.tuple(fc.constant("/embeddings"), embedding),
);

/** Changes the bytes of a valid body. */
type Mutation = {
  kind: "none" | "cut" | "flip" | "insert" | "double" | "value";
  at: number;
  byte: number;
  value: unknown;
};
const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom("none", "cut", "flip", "insert", "double", "value"),
  at: fc.nat(),
  byte: fc.nat(255),
  value: fc.oneof(
    { arbitrary: fc.anything({ withBigInt: false, maxDepth: 3 }), weight: 9 },
    { arbitrary: fc.constantFrom(...[1, {}, "a", []].map((item) => Array<unknown>(10_000).fill(item))), weight: 1 },
  ),
});

function mutate(body: object, { kind, at, byte, value }: Mutation): Buffer {
  const names = Object.keys(body);
  const name = names[at % names.length]!;
  if (kind === "value") return Buffer.from(JSON.stringify({ ...body, [name]: value }));
  const bytes = Buffer.from(JSON.stringify(body));
  const place = at % bytes.length;
  if (kind === "cut") return bytes.subarray(0, place);
  if (kind === "flip") bytes[place] = byte;
  if (kind === "insert") return Buffer.concat([bytes.subarray(0, place), Buffer.of(byte), bytes.subarray(place)]);
  if (kind === "double") return Buffer.from(JSON.stringify(body).replace("{", `{${JSON.stringify(name)}:1,`));
  return bytes;
}

function isProper({ status, headers, json }: Answer): boolean {
  if (!/^[0-9a-f-]{36}$/.test(headers.get("x-request-id") ?? "")) return false;
  if (status === 200) return json.ok === true;
  const { message: told, type, param, code } = json.error;
  const strings = [told, type, code].every((value) => typeof value === "string" && value !== "");
  return status >= 400 && status < 500 && strings && (param === null || typeof param === "string");
}

interface Schema {
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly type?: string;
}

/** Lists the members that a body can have: each field by its path and type, and each fixed word. */
function possible({ anyOf, properties, items, enum: words, const: word, type }: Schema, at = ""): string[] {
  if (anyOf) return anyOf.flatMap((one) => possible(one, at));
  if (word !== undefined || words) return (words ?? [word]).map((each) => `${at} = ${String(each)}`);
  const fields = Object.entries(properties ?? {}).flatMap(([name, field]) => possible(field, `${at}.${name}`));
  return [`${at}: ${type === "integer" ? "number" : type}`, ...fields, ...(items ? possible(items, `${at}[]`) : [])];
}

function present(value: unknown = null, at = ""): string[] {
  if (value === null) return [`${at}: null`];
  if (Array.isArray(value)) return [`${at}: array`, ...value.flatMap((item) => present(item, `${at}[]`))];
  if (typeof value === "string") return [`${at}: string`, `${at} = ${value}`];
  if (typeof value !== "object") return [`${at}: ${typeof value}`];
  return [`${at}: object`, ...Object.entries(value).flatMap(([name, member]) => present(member, `${at}.${name}`))];
}

test.each<[name: string, schema: Schema, bodies: fc.Arbitrary<unknown>]>([
  ["chats", chatSchema, chat],
  ["completions", completionSchema, completion],
  ["embeddings", embeddingSchema, embedding],
])("random %s contain every field of the schema with every type and every fixed word [D9]", (_name, schema, bodies) => {
  const seen = new Set(fc.sample(bodies, { seed: 1, numRuns: 2_000 }).flatMap((body) => present(body)));
  expect(possible(schema).filter((each) => !seen.has(each))).toEqual([]);
});

test(`${cases} bodies and their mutations get a 2xx or a proper error [D6 D9 S4.18]`, async () => {
  const seen = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(sound, mutation), { minLength: 20, maxLength: 20 }), async (batch) => {
      const answers = await Promise.all(batch.map(([[path, body], change]) => api.post(path, mutate(body, change))));
      for (const answer of answers) seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
      expect(answers.map(isProper)).toEqual(batch.map(() => true));
    }),
    { numRuns: Math.ceil(cases / 20), endOnFailure: true },
  );
  expect(new Set(seen.keys())).toEqual(new Set([200, 400]));
  expect(api.failures).toEqual([]);
  expect(api.left.length).toBe(api.finished.length);
}, 600_000);
