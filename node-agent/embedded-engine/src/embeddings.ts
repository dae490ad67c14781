/** `POST /v1/embeddings`: vectors of length 1, in the order of the input. */
import { bodyReader } from "@weiche/shared/convention/body-reader.ts";
import { embeddingSchema, textsMax } from "@weiche/shared/convention/embeddings.ts";
import { checkDimensions } from "@weiche/shared/convention/model-rules.ts";
import type { Json } from "@weiche/shared/json.ts";
import { setImmediate } from "node:timers/promises";
import type { LlamaEmbeddingContext, Token } from "node-llama-cpp";
import { Type } from "typebox";
import { sendJson, type Call } from "./request/call.ts";
import type { Engine } from "./model.ts";
import type { Pool } from "./pool.ts";
import { contextExceeded, RequestError } from "./request/request-error.ts";
import { readTexts, type Text } from "./texts.ts";

const embeddingBody = bodyReader(
  Type.Object({
    dimensions: embeddingSchema.properties.dimensions,
    encoding_format: embeddingSchema.properties.encoding_format,
  }),
);

export async function embeddings({ engine, body, response, signal }: Call): Promise<void> {
  if (engine.embeddings === undefined)
    throw new RequestError(400, "not_supported_error", "this engine was not started with --embeddings");
  const { dimensions, encoding_format: format = "float" } = embeddingBody.declared(body);
  checkDimensions(dimensions, { min: 1, max: engine.model.embeddingVectorSize });
  const { contexts, countTokens } = engine.embeddings;
  const inputs = await encodeInputs(engine, countTokens, readTexts((body as Json)["input"], "input", textsMax), signal);
  const data = [];
  let promptTokens = 0;
  for (const [index, input] of inputs.entries()) {
    const vector = normalised((await embed(contexts, input, signal)).slice(0, dimensions));
    const tokens = countTokens(input);
    engine.metrics.promptTokens += tokens;
    promptTokens += tokens;
    data.push({ object: "embedding", index, embedding: format === "float" ? vector : base64(vector) });
  }
  const usage = { prompt_tokens: promptTokens, total_tokens: promptTokens };
  sendJson(response, 200, { object: "list", model: engine.alias, data, usage });
}

/** Checks all inputs before the first one is computed. */
async function encodeInputs(
  { vocabulary, contextTokens }: Engine,
  countTokens: (input: Token[]) => number,
  inputs: readonly Text[],
  signal: AbortSignal,
): Promise<Token[][]> {
  const encoded: Token[][] = [];
  for (const [index, input] of inputs.entries()) {
    const tokens =
      typeof input === "string"
        ? await vocabulary.encodeText(input, contextTokens, signal)
        : vocabulary.tokens(input, "input");
    const length = countTokens(tokens);
    if (length > contextTokens) throw contextExceeded(length, contextTokens, `input ${index}`);
    encoded.push(tokens);
    await setImmediate(undefined, { signal });
  }
  return encoded;
}

/** Each input waits for its turn, so that other requests run between the inputs of a long list. */
async function embed(pool: Pool<LlamaEmbeddingContext>, tokens: Token[], signal: AbortSignal): Promise<number[]> {
  const context = await pool.acquire(signal);
  try {
    return [...(await context.getEmbeddingFor(tokens)).vector];
  } finally {
    pool.release(context);
  }
}

function normalised(vector: readonly number[]): number[] {
  const length = Math.hypot(...vector);
  return vector.map((value) => value / (length || 1));
}

/** Returns 32-bit floats in little-endian order, the order of every machine that runs llama.cpp. */
function base64(vector: readonly number[]): string {
  return Buffer.from(new Float32Array(vector).buffer).toString("base64");
}
