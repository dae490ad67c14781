import type { ModelId } from "@weiche/shared/ids.ts";
import type { EmbeddingRequest } from "../intake/embedding-request.ts";
import type { AnswerRest } from "./engine-work.ts";

export interface VectorsAbout {
  readonly model: ModelId;
  readonly format: EmbeddingRequest["format"];
  readonly promptTokens: number;
}

/** The answer to a request for embeddings. Its text is made item by item: a long list has tens of megabytes. */
export class VectorsRest implements AnswerRest {
  /** Those that are still to be written. */
  readonly #vectors: (Float32Array | undefined)[];
  readonly #about: VectorsAbout;
  heldBytes: number;

  /** Owns `vectors`, and removes each once it is written. */
  constructor(vectors: (Float32Array | undefined)[], about: VectorsAbout) {
    this.#vectors = vectors;
    this.#about = about;
    this.heldBytes = vectors.reduce((sum, vector) => sum + (vector?.byteLength ?? 0), 0);
  }

  *[Symbol.iterator](): Iterator<string> {
    const { model, format, promptTokens } = this.#about;
    yield '{"object":"list","data":[';
    for (let index = 0; index < this.#vectors.length; index++) {
      const vector = this.#vectors[index]!;
      this.#vectors[index] = undefined;
      this.heldBytes -= vector.byteLength;
      const text = format === "base64" ? `"${toBase64(vector)}"` : `[${vector.join(",")}]`;
      yield `${index === 0 ? "" : ","}{"object":"embedding","index":${index},"embedding":${text}}`;
    }
    const usage = { prompt_tokens: promptTokens, total_tokens: promptTokens };
    yield `],"model":${JSON.stringify(model)},"usage":${JSON.stringify(usage)}}`;
  }
}

function toBase64(vector: Float32Array): string {
  const bytes = Buffer.allocUnsafe(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}
