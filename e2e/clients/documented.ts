/** Compares answers of the running system with the OpenAPI document, which must contain all their fields. */
import { openApiDocument } from "@weiche/router/src/api/openapi.ts";
import { describe, expect, test } from "vitest";
import { simulated, type Service, type Subject } from "./client-service.ts";

/** The part of JSON Schema that the document uses for answers. */
interface Schema {
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
}
interface Documented {
  readonly headers: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content: Readonly<Record<string, { readonly schema?: Schema }>>;
}
type Operation = { readonly responses: Readonly<Record<string, Documented>> };

const { paths, components } = openApiDocument("") as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly headers: Readonly<Record<string, { readonly required?: boolean }>>;
    readonly schemas: { readonly Error: Schema };
  };
};

/** Headers that HTTP itself defines. */
const ofHttp = ["connection", "content-length", "content-type", "date", "keep-alive", "transfer-encoding"];

/**
 * Returns the places where a value differs from its schema. A field that the schema does not name is a difference, too.
 */
function differences(value: unknown, schema: Schema | undefined, at: string): string[] {
  if (!schema) return [`${at} is not in the document`];
  if (schema.$ref) return differences(value, components.schemas.Error, at);
  if (schema.anyOf) {
    const all = schema.anyOf.map((one) => differences(value, one, at));
    return all.find(({ length }) => length === 0) ?? all[0]!;
  }
  if (schema.enum) return schema.enum.includes(value) ? [] : [`${at} is ${String(value)}`];
  if (schema.const !== undefined) return schema.const === value ? [] : [`${at} is ${String(value)}`];
  if (schema.type === "integer") return Number.isInteger(value) ? [] : [`${at} is no integer`];
  const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  if (type !== schema.type) return [`${at} is of type ${type}`];
  if (Array.isArray(value)) return value.flatMap((item) => differences(item, schema.items, `${at}[]`));
  if (type !== "object") return [];
  const { properties = {}, required = [], additionalProperties } = schema;
  const missing = required.filter((name) => !Object.hasOwn(value as object, name)).map((name) => `${at} lacks ${name}`);
  const members = Object.entries(value as object).flatMap(([name, member]) =>
    differences(member, properties[name] ?? additionalProperties, `${at}.${name}`),
  );
  return [...missing, ...members];
}

function differencesOfAnswer(path: string, method: string, answer: Response, body: unknown): string[] {
  const { headers, content } = paths[path]![method]!.responses[answer.status]!;
  const unknown = [...answer.headers.keys()].filter((name) => !ofHttp.includes(name) && !headers[name]);
  const missing = Object.keys(headers).filter(
    (name) => components.headers[name]!.required && !answer.headers.has(name),
  );
  const { schema } = content[answer.headers.get("content-type")!.split(";")[0]!]!;
  return [...unknown, ...missing, ...differences(body, schema, "body")];
}

export function describeDocument(service: () => Service, subjects: readonly Subject[]): void {
  async function ask(path: string, body?: object, key: keyof Service["keys"] = "all") {
    const { baseUrl, keys } = service();
    const method = body ? "post" : "get";
    const answer = await fetch(`${baseUrl.replace(/\/v1$/, "")}${path}`, {
      method,
      headers: { authorization: `Bearer ${keys[key]}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    const json: unknown = await answer.json();
    return { status: answer.status, json, differences: differencesOfAnswer(path, method, answer, json) };
  }
  const chat = (model: string, content: string, more: object = {}) => ({
    ...{ model, messages: [{ role: "user", content }], max_tokens: 30, ...more },
  });

  describe.each(subjects)("the OpenAPI document and $name", ({ model, embeddingModel, smallTalk, weather }) => {
    const parameters = { type: "object", properties: { city: { type: "string" } } };
    const tools = [{ type: "function", function: { name: "get_weather", parameters } }];

    test.each<[answer: string, path: string, body: object]>([
      ["a thought", "/v1/chat/completions", chat(model, smallTalk)],
      ["probabilities", "/v1/chat/completions", chat(model, smallTalk, { logprobs: true, top_logprobs: 2, n: 2 })],
      ["a call", "/v1/chat/completions", chat(model, weather, { tools, reasoning_effort: "none" })],
      ["a text", "/v1/completions", { model, prompt: "Once", max_tokens: 5 }],
      ["a text's probabilities", "/v1/completions", { model, prompt: "Once", max_tokens: 5, logprobs: 2 }],
      ["vectors", "/v1/embeddings", { model: embeddingModel, input: ["a", "b"] }],
      ["vectors as base64", "/v1/embeddings", { model: embeddingModel, input: "a", encoding_format: "base64" }],
    ])("agree about %s [S1.14]", async (_answer, path, body) => {
      const { status, json, differences } = await ask(path, body);
      // Without this check, missing probabilities would look like no difference.
      const hasLogprobs = JSON.stringify(json).includes('"logprobs":{');
      expect([status, differences, hasLogprobs]).toEqual([200, [], "logprobs" in body]);
    });
  });

  test.each<[status: number, key: keyof Service["keys"], model: string, content: string]>([
    [400, "all", "nope", "Hello"],
    [401, "wrong", simulated.model, "Hello"],
    [403, "noPackage", simulated.model, "Hello"],
    [429, "noQuota", simulated.model, "Hello"],
    [500, "all", simulated.model, "sim:fault=500"],
    [503, "all", simulated.model, "sim:fault=503"],
  ])("the OpenAPI document describes answers with status %i [S1.14]", async (expected, key, model, content) => {
    const { status, differences } = await ask("/v1/chat/completions", chat(model, content), key);
    expect([status, differences]).toEqual([expected, []]);
  });

  test("the OpenAPI document describes the list of models [S1.14]", async () => {
    const { status, differences } = await ask("/v1/models");
    expect([status, differences]).toEqual([200, []]);
  });
}
