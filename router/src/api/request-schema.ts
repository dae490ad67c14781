/** Schemas of request bodies: how they are compiled, how a mistake is told, and the parameters that endpoints share. */
import { Type, type Static, type TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { ApiError } from "@weiche/shared/errors.ts";
import { mistakeFinder, type Mistake } from "./schema-mistake.ts";

/** What the router must know of a request's body; everything else is the node's concern. */
export interface RequestFacts {
  readonly model: string;
  /** Hash of the body as it came. */
  readonly digest: string;
  /** Hash of the beginning of the conversation; absent where a node's cache is of no use. */
  readonly conversation?: string;
  /** How many answers are asked for: choices, or texts to embed. */
  readonly answers: number;
  readonly maxTokens?: number;
  /** What the client called it. */
  readonly maxTokensParam?: string;
  readonly reasoningEffort?: string;
  readonly templateKwargs: boolean;
  readonly images: readonly ImageFacts[];
  readonly dimensions?: number;
}

export interface ImageFacts {
  readonly param: string;
  /** By its first bytes; undefined: none that we know. */
  readonly format: ImageFormat | undefined;
}

export type ImageFormat = "png" | "jpeg" | "webp" | "gif";

/** An optional parameter. `null` means that it is absent. */
export function optional<Schema extends TSchema>(schema: Schema) {
  return Type.Optional(Type.Union([schema, Type.Null()]));
}

/** Nothing is converted: "1" is no number. Unknown fields are let through; nothing reads them. */
export function compileSchema<Schema extends TSchema>(schema: Schema): (value: unknown, at?: string) => Static<Schema> {
  const validator = Compile(schema);
  const findMistake = mistakeFinder(schema);
  return (value, at = "") => {
    if (validator.Check(value)) return value as Static<Schema>;
    throw invalid(...explain(findMistake(value), at));
  };
}

/** A 400 that names the parameter. */
export function invalid(param: string, what: string): ApiError {
  return param === ""
    ? new ApiError("invalid_request", `The body ${what}.`)
    : new ApiError("invalid_request", `Invalid '${param}': ${what}.`, { param });
}

function explain(error: Mistake | undefined, at: string): [param: string, what: string] {
  if (!error) return [at, "is not valid"];
  const { keyword, message, params } = error;
  const param = join(at, error.instancePath);
  if (keyword === "required") return [join(param, `/${params.requiredProperties?.[0] ?? ""}`), "is required"];
  if (keyword === "enum") return [param, `must be one of ${(params.allowedValues ?? []).join(", ")}`];
  if (keyword === "const") return [param, `must be ${String(params.allowedValue)}`];
  if (keyword === "minLength") return [param, "must not be empty"];
  return [param, message];
}

/** `/messages/0/role` is told as `messages[0].role`. Names come from the schema, never from the body. */
function join(at: string, pointer: string): string {
  let path = at;
  for (const name of pointer.split("/").slice(1)) {
    if (/^\d+$/.test(name)) path += `[${name}]`;
    else path += path === "" ? name : `.${name}`;
  }
  return path;
}

/** What a node takes. */
const stopsMax = 64;

/** Shared by chat and legacy completions. Bounds that the service leaves open are what engines can take. */
export const generationParameters = {
  model: Type.String({ minLength: 1, description: "API id of a model that the key may use." }),
  max_tokens: optional(Type.Integer({ minimum: 1, description: "Most output tokens, reasoning included." })),
  temperature: optional(Type.Number({ minimum: 0, maximum: 2 })),
  top_p: optional(Type.Number({ minimum: 0, maximum: 1, description: "Alternative to temperature." })),
  stop: optional(
    Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: stopsMax })], {
      description: `Output ends before such a sequence; at most ${stopsMax} of them.`,
    }),
  ),
  n: optional(Type.Integer({ minimum: 1, maximum: 128, description: "Each answer is billed as output." })),
  seed: optional(Type.Integer({ minimum: -(2 ** 63), exclusiveMaximum: 2 ** 63 })),
  presence_penalty: optional(Type.Number({ minimum: -2, maximum: 2 })),
  frequency_penalty: optional(Type.Number({ minimum: -2, maximum: 2 })),
  stream: optional(Type.Boolean({ description: "Answer as Server-Sent Events." })),
  stream_options: optional(
    Type.Object({
      include_usage: optional(Type.Boolean({ description: "Adds a final chunk with token counts." })),
    }),
  ),
};
