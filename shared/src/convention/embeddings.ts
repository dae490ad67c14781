/** `POST /v1/embeddings`: vectors of texts. */
import { Type, type Static } from "typebox";
import { keptStringBytes } from "../http/json-guard.ts";
import { bodyReader, optional, worded } from "./body-reader.ts";
import type { RequestFacts } from "./model-rules.ts";

type EmbeddingBody = Static<typeof embeddingSchema>;

export const textsMax = 2_048;

const text = worded(
  Type.String({ minLength: 1 }),
  "must be a text. Token ids are not accepted: with LangChain set check_embedding_ctx_length=False",
);

export const embeddingSchema = Type.Object({
  model: Type.String({ minLength: 1, description: "API id of an embedding model." }),
  input: Type.Union([text, Type.Array(text, { minItems: 1, maxItems: textsMax })]),
  dimensions: optional(Type.Integer({ minimum: 1, description: "Length of the vectors; bounds depend on the model." })),
  encoding_format: optional(Type.Enum(["float", "base64"])),
  instruction: optional(Type.String({ description: "Short task description in English, for search queries." })),
});

export const embeddingBody = bodyReader(embeddingSchema);

export function embeddingFacts({ model, input, dimensions, instruction }: EmbeddingBody): RequestFacts {
  const answers = Array.isArray(input) ? input.length : 1;
  const bytes = Buffer.byteLength(instruction ?? "");
  // The router keeps only this many bytes of a longer text.
  const instructionBytes = bytes < keptStringBytes ? bytes : Infinity;
  return { model, embeds: true, answers, dimensions: dimensions ?? undefined, instructionBytes };
}
