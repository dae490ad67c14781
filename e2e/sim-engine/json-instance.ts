/** Makes a small valid instance of a JSON schema, which the engine "generates" for a schema or a tool. */

type Schema = Readonly<Record<string, unknown>>;

const depthMax = 16;

/** Returns an instance of the schema. `document` resolves each `$ref`. */
export function instanceOf(schema: unknown, depth = 0, document = schema): unknown {
  if (schema === null || typeof schema !== "object" || depth > depthMax) return null;
  const given = schema as Schema;
  if (typeof given["$ref"] === "string") return instanceOf(at(document, given["$ref"]), depth + 1, document);
  if ("const" in given) return given["const"];
  if (Array.isArray(given["enum"])) return given["enum"][0];
  for (const key of ["anyOf", "oneOf", "allOf"]) {
    const options = given[key];
    if (Array.isArray(options)) return instanceOf(options[0], depth + 1, document);
  }
  const type = Array.isArray(given["type"]) ? given["type"][0] : (given["type"] ?? (given["properties"] && "object"));
  switch (type) {
    case "object":
      return objectOf(given, depth, document);
    case "array":
      return Array.from({ length: Number(given["minItems"] ?? 1) }, () =>
        instanceOf(given["items"], depth + 1, document),
      );
    case "integer":
    case "number":
      return given["minimum"] ?? 1;
    case "boolean":
      return true;
    case "string":
      return "x".repeat(Math.max(1, Number(given["minLength"] ?? 4)));
    default:
      return null;
  }
}

function objectOf(schema: Schema, depth: number, document: unknown): Record<string, unknown> {
  const properties = Object.entries((schema["properties"] ?? {}) as Record<string, unknown>);
  return Object.fromEntries(properties.map(([name, value]) => [name, instanceOf(value, depth + 1, document)]));
}

function at(document: unknown, pointer: string): unknown {
  return pointer
    .split("/")
    .slice(1)
    .reduce<unknown>((value, key) => (value as Schema | undefined)?.[key], document);
}
