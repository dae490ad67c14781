/** The part of an answer that is still to be written when its engine is done. */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { EmbeddingRequest } from "../intake/embedding-request.ts";

/** The rest of an answer up to its last byte, in pieces that are made on demand. */
export interface AnswerRest extends Iterable<string> {
  /** The memory that is held for the pieces to come. */
  readonly heldBytes: number;
}

const pieceCharactersMax = 32 << 10;

/** The rest of an answer as one text. */
export class TextRest implements AnswerRest {
  readonly #text: string;
  #at = 0;
  heldBytes: number;

  constructor(text: string) {
    this.#text = text;
    this.heldBytes = Buffer.byteLength(text);
  }

  *[Symbol.iterator](): Iterator<string> {
    const text = this.#text;
    while (this.#at < text.length) {
      const from = this.#at;
      this.#at = this.#endOf(from);
      const piece = text.slice(from, this.#at);
      this.heldBytes -= Buffer.byteLength(piece);
      yield piece;
    }
  }

  /** Returns the end of the next piece. It never splits a surrogate pair, because neither half can be written. */
  #endOf(from: number): number {
    const end = Math.min(from + pieceCharactersMax, this.#text.length);
    const isPair = (this.#text.charCodeAt(end - 1) & 0xfc00) === 0xd800;
    return isPair && end < this.#text.length ? end - 1 : end;
  }
}

interface VectorsAbout {
  readonly model: ModelId;
  readonly format: EmbeddingRequest["format"];
  readonly promptTokens: number;
}

/** The answer to a request for embeddings. Its text is made item by item, because a long list has tens of megabytes. */
export class VectorsRest implements AnswerRest {
  /** The vectors that are still to be written. */
  readonly #vectors: (Float32Array | undefined)[];
  readonly #about: VectorsAbout;
  heldBytes: number;

  /** Takes `vectors` over, and removes each once it is written. */
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
