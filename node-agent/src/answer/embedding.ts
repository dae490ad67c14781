/** Runs a request for embeddings: splits its texts into batches, and cuts the vectors to the requested dimensions. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import { isObject, parseJson } from "@weiche/shared/json.ts";
import type { EmbeddingRequest } from "../intake/embedding-request.ts";
import { refusalOf } from "./engine-refusal.ts";
import type { EngineAccess, EngineWork, FinishedAnswer } from "./engine-work.ts";
import { promptTokensMax } from "./prompt-tokens.ts";
import { isCount, type TokenCounts } from "./usage-count.ts";

/** TEI's default limit of texts per request; it also keeps each answer small. */
const batchTextsMax = 32;
/** Half of TEI's limit of a body. */
const batchCharactersMax = 512 << 10;
const answerBytesMax = 64 << 20;

export class Embedding implements EngineWork {
  readonly answers = 1;
  readonly #request: EmbeddingRequest;
  readonly #model: ModelId;
  /** Maximum per text. */
  readonly #inputTokens: number;
  readonly #tokensMax: number;
  readonly #vectors: Float32Array[] = [];
  #promptTokens = 0;
  #isBelieved = true;

  /** `tokensMax`: the router's limit of what may be billed, all texts together. */
  constructor(request: EmbeddingRequest, rules: ModelRules, tokensMax: number) {
    this.#request = request;
    this.#model = rules.id;
    this.#inputTokens = rules.embeddings!.inputTokens;
    this.#tokensMax = tokensMax;
  }

  soFar(): TokenCounts {
    return { promptTokens: this.#promptTokens, completionTokens: 0, source: "counted" };
  }

  async run(engine: EngineAccess): Promise<FinishedAnswer> {
    for (const texts of batches(this.#request.texts)) await this.#embed(engine, texts);
    const counts = { ...this.soFar(), ...(this.#isBelieved && { source: "engine" as const }) };
    return { counts, rest: this.#body(counts) };
  }

  async #embed(engine: EngineAccess, texts: readonly string[]): Promise<void> {
    const body = Buffer.from(JSON.stringify(engine.dialect.embeddingBody(this.#model, texts)));
    const call = await engine.ask(nodePaths.embeddings, body);
    try {
      if (call.status !== 200) {
        const windowTokens = Math.min(this.#inputTokens, engine.windowTokens ?? Infinity);
        const about = { windowTokens, maxTokens: undefined, input: "input" as const, body };
        throw await refusalOf(engine, call, { ...about, promptTokensMax: promptTokensMax(body.length, 0) });
      }
      const answer = await call.readAll(answerBytesMax);
      call.finish();
      engine.onOutput(1);
      this.#take(answer, texts.length);
    } finally {
      call.close();
    }
  }

  #take(bytes: Buffer, texts: number): void {
    const answer = parseJson(bytes.toString());
    if (!isObject(answer)) throw new EngineFault("malformed", "embeddings that are no JSON object");
    const vectors = vectorsOf(answer["data"], texts);
    for (const vector of vectors) this.#vectors.push(cutTo(vector, this.#request.dimensions));
    const usage = isObject(answer["usage"]) ? answer["usage"] : {};
    const tokens = usage["prompt_tokens"];
    const mostTokens = Math.min(this.#inputTokens * texts, this.#tokensMax - this.#promptTokens);
    if (isCount(tokens, mostTokens)) this.#promptTokens += tokens;
    else this.#isBelieved = false;
  }

  /** Yields item by item, as a long list has tens of megabytes. */
  *#body({ promptTokens }: TokenCounts): Iterable<string> {
    const base64 = this.#request.format === "base64";
    yield '{"object":"list","data":[';
    for (const [index, vector] of this.#vectors.entries()) {
      const text = base64 ? `"${toBase64(vector)}"` : `[${vector.join(",")}]`;
      yield `${index === 0 ? "" : ","}{"object":"embedding","index":${index},"embedding":${text}}`;
    }
    const usage = { prompt_tokens: promptTokens, total_tokens: promptTokens };
    yield `],"model":${JSON.stringify(this.#model)},"usage":${JSON.stringify(usage)}}`;
  }
}

function* batches(texts: readonly string[]): Iterable<readonly string[]> {
  let batch: string[] = [];
  let characters = 0;
  for (const text of texts) {
    const isFull = batch.length >= batchTextsMax || characters + text.length > batchCharactersMax;
    if (isFull && batch.length > 0) {
      yield batch;
      batch = [];
      characters = 0;
    }
    batch.push(text);
    characters += text.length;
  }
  yield batch;
}

/** Returns the vectors in the order of the texts, in whatever order they arrived. */
function vectorsOf(data: unknown, texts: number): readonly Float32Array[] {
  const vectors = new Array<Float32Array | undefined>(texts).fill(undefined);
  for (const item of Array.isArray(data) ? data : []) {
    const { index, embedding } = isObject(item) ? item : {};
    const isVector = Array.isArray(embedding) && embedding.length > 0 && embedding.every(isFloat);
    if (!isVector || !isCount(index, texts - 1) || vectors[index])
      throw new EngineFault("malformed", "an embedding that is no list of numbers");
    vectors[index] = Float32Array.from(embedding as number[]);
  }
  if (vectors.includes(undefined)) throw new EngineFault("malformed", "embeddings are missing");
  return vectors as Float32Array[];
}

function isFloat(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(Math.fround(value));
}

/** Cuts a vector to its first components and normalises it, as engines do that support `dimensions`. */
function cutTo(vector: Float32Array, dimensions: number): Float32Array {
  if (vector.length < dimensions) throw new EngineFault("malformed", "vectors are shorter than the catalogue says");
  if (vector.length === dimensions) return vector;
  const cut = vector.subarray(0, dimensions);
  const length = Math.hypot(...cut) || 1;
  return cut.map((value) => value / length);
}

function toBase64(vector: Float32Array): string {
  const bytes = Buffer.allocUnsafe(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}
