/** Decides which JSON schemas llama-server 0.5.0 refuses, and what it prints about them at any verbosity. */
import type { Refusal } from "../answer.ts";
import { asArray, field, type Body } from "../request.ts";

interface SchemaVerdict {
  readonly refusal?: Refusal;
  /** The lines that the engine prints on its standard error. */
  readonly prints: readonly string[];
}

const types = new Set(["object", "array", "string", "number", "integer", "boolean", "null"]);
const repetitionsMax = 2_000;

export function judgeSchemas(body: Body): SchemaVerdict {
  const schemas = [
    field(field(body["response_format"], "json_schema"), "schema"),
    ...asArray(body["tools"]).map((tool) => field(field(tool, "function"), "parameters")),
  ];
  const parts = schemas.flatMap(partsOf);
  const unknown = parts.find(({ type }) => typeof type === "string" && !types.has(type));
  if (unknown) {
    const why = `JSON schema conversion failed:\nUnrecognized schema: ${JSON.stringify(unknown)}`;
    const refusal = refused(`Unable to generate parser for this template. Automatic parser generation failed: ${why}`);
    return { refusal, prints: [`0.00.229.211 W srv    operator(): got exception: ${refusal.body}`] };
  }
  const patterns = parts.flatMap(({ pattern }) => (typeof pattern === "string" ? [pattern] : []));
  const loose = patterns.filter((pattern) => !/^\^.*\$$/.test(pattern));
  const prints = loose.map(
    (pattern) =>
      `WARNING: JSON schema conversion was incomplete: pattern ${pattern} is not supported (not anchored with '^' and '$'), accepting any string`,
  );
  const endless = patterns.find((pattern) => Number(/\{(\d+)/.exec(pattern)?.[1]) > repetitionsMax);
  if (endless === undefined) return { prints };
  const grammar = parts.flatMap(({ properties }) => Object.keys(properties ?? {}));
  return {
    refusal: refused("Failed to initialize samplers: failed to parse grammar"),
    prints: [
      ...prints,
      "parse: error parsing grammar: number of repetitions exceeds sane defaults, please reduce the number of repetitions",
      "",
      ...[...grammar, endless].map((text) => `response-format-schema-${text} ::= "\\"${text}\\"" space`),
    ],
  };
}

/** Returns a schema and all its parts. */
function partsOf(schema: unknown): Body[] {
  if (schema === null || typeof schema !== "object" || Array.isArray(schema)) return [];
  const { properties, items, anyOf } = schema as Body;
  return [schema as Body, ...[...Object.values(properties ?? {}), items, ...asArray(anyOf)].flatMap(partsOf)];
}

function refused(message: string): Refusal {
  return { status: 400, body: JSON.stringify({ error: { code: 400, message, type: "invalid_request_error" } }) };
}
