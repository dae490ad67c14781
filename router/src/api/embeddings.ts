/** `POST /v1/embeddings`: the schema of its body and what the router must know of it. */
import { Type } from "typebox";
import { compileSchema, optional, type RequestFacts } from "./request-schema.ts";

export const textsMax = 2_048;

const text = Type.String({ minLength: 1 });

export const embeddingSchema = Type.Object({
  model: Type.String({ minLength: 1, description: "API id of an embedding model." }),
  input: Type.Union([text, Type.Array(text, { minItems: 1, maxItems: textsMax })]),
  dimensions: optional(Type.Integer({ minimum: 1, description: "Length of the vectors; bounds depend on the model." })),
  encoding_format: optional(Type.Enum(["float", "base64"])),
  instruction: optional(Type.String({ description: "Short task description in English, for search queries." })),
});

const readBody = compileSchema(embeddingSchema);

export function readEmbedding(value: unknown): Omit<RequestFacts, "digest"> {
  const { model, input, dimensions } = readBody(value);
  const answers = Array.isArray(input) ? input.length : 1;
  return { model, templateKwargs: false, images: [], answers, ...(dimensions == null ? {} : { dimensions }) };
}
