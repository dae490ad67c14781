/** Runs a request for embeddings: splits its texts into batches and cuts the vectors to the requested dimensions. */
import { promptTokensMax, textTokensMax } from "@weiche/shared/convention/prompt-tokens.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import type { AccountId } from "@weiche/shared/ids.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { EngineFault } from "../../engines/dialects/engine-fault.ts";
import { isObject, parseJson } from "@weiche/shared/json.ts";
import { contextExceeded } from "@weiche/shared/convention/context-exceeded.ts";
import { textName, type EmbeddingRequest } from "../../intake/embedding-request.ts";
import { promptSize } from "../../intake/prompt-size.ts";
import type { EngineCuts } from "./cut-texts.ts";
import { refusalOf } from "../engine-refusal.ts";
import type { EngineAccess, EngineWork, FinishedAnswer } from "../engine-work.ts";
import type { GenerationScope } from "../generation.ts";
import type { PromptEstimates } from "../prompt-estimates.ts";
import { isCount, type TokenCounts } from "../usage-count.ts";
import { VectorsRest } from "../answer-rest.ts";

/** TEI's default limit of texts per request. It also keeps each answer small. */
const batchTextsMax = 32;
/** Half of TEI's limit for a request body. */
const batchCharactersMax = 512 << 10;
const answerBytesMax = 64 << 20;

export class Embedding implements EngineWork {
  readonly answers = 1;
  readonly #request: EmbeddingRequest;
  readonly #rules: ModelRules;
  /** The limit for each text. */
  readonly #inputTokens: number;
  readonly #tokensMax: number;
  readonly #vectors: Float32Array[] = [];
  readonly #estimates: PromptEstimates;
  readonly #accountId: AccountId;
  #promptTokens = 0;
  #estimatedTokens = 0;

  constructor(
    request: EmbeddingRequest,
    { accountId, rules, tokensMax, estimates }: Omit<GenerationScope, "requestId" | "nowMs">,
  ) {
    this.#request = request;
    this.#accountId = accountId;
    this.#rules = rules;
    this.#inputTokens = rules.embeddings!.inputTokens;
    this.#tokensMax = tokensMax;
    this.#estimates = estimates;
  }

  soFar(): TokenCounts {
    const estimatedTokens = this.#estimatedTokens || undefined;
    return { promptTokens: this.#promptTokens, completionTokens: 0, estimatedTokens, source: "counted" };
  }

  async run(engine: EngineAccess): Promise<FinishedAnswer> {
    const windowTokens = Math.min(
      this.#inputTokens,
      engine.windowTokens ?? Infinity,
      engine.cuts?.atTokens ?? Infinity,
    );
    // An engine with this window refuses longer texts itself.
    const refuses = !engine.cuts && windowTokens === engine.windowTokens;
    const longBytes = refuses ? Infinity : windowTokens;
    for (const batch of batches(this.#request.texts, longBytes)) await this.#embed(engine, batch);
    const counts = { ...this.soFar(), ...(this.#estimatedTokens === 0 && { source: "engine" as const }) };
    const { format } = this.#request;
    const { promptTokens } = counts;
    return { counts, rest: new VectorsRest(this.#vectors, { model: this.#rules.id, format, promptTokens }) };
  }

  async #embed(engine: EngineAccess, batch: Batch): Promise<void> {
    const { data, tokens } = this.#read(await this.#answerOf(engine, batch));
    const vectors = vectorsOf(data, batch.texts.length);
    if (batch.isLong && engine.cuts) await this.#checkWhole(engine, engine.cuts, batch, tokens);
    for (const vector of vectors) this.#vectors.push(cutTo(vector, this.#request.dimensions));
    this.#count(tokens, batch);
    engine.onOutput(1);
  }

  async #answerOf(engine: EngineAccess, batch: Batch): Promise<Buffer> {
    const body = Buffer.from(JSON.stringify(engine.dialect.embeddingBody(this.#rules.id, batch.texts)));
    const call = await engine.ask(nodePaths.embeddings, body);
    try {
      if (call.status !== 200) {
        const windowTokens = Math.min(this.#inputTokens, engine.windowTokens ?? Infinity);
        const about = { windowTokens, maxTokens: undefined, input: "input" as const, body };
        const inputPart = this.#nameOf(batch, windowTokens);
        throw await refusalOf(engine, call, { ...about, inputPart, promptTokensMax: promptTokensMax(body.length, 0) });
      }
      const answer = await call.readAll(answerBytesMax);
      call.finish();
      return answer;
    } finally {
      call.close();
    }
  }

  #read(bytes: Buffer): { readonly data: unknown; readonly tokens: unknown } {
    const answer = parseJson(bytes.toString());
    if (!isObject(answer)) throw new EngineFault("malformed", "the embeddings are not a JSON object");
    const usage = isObject(answer["usage"]) ? answer["usage"] : {};
    return { data: answer["data"], tokens: usage["prompt_tokens"] };
  }

  /** Throws if the engine has cut the only text of the batch. Asks the engine again if its count leaves that open. */
  async #checkWhole(engine: EngineAccess, cuts: EngineCuts, batch: Batch, tokens: unknown): Promise<void> {
    if (!isCount(tokens, this.#inputTokens)) return;
    const cutTokens = cuts.atTokens;
    const isCut = await cuts.hasCut(batch.texts[0]!, tokens, async (texts) => {
      const counted = this.#read(await this.#answerOf(engine, { ...batch, texts })).tokens;
      return isCount(counted, Infinity) ? counted : undefined;
    });
    if (!isCut) return;
    if (tokens < Math.min(this.#inputTokens, cutTokens))
      engine.onShortfall(`the engine cuts texts at ${tokens} tokens, the catalogue promises ${this.#inputTokens}`);
    throw contextExceeded(tokens, undefined, { input: "input", maxTokens: undefined, param: this.#nameOf(batch) });
  }

  /** Throws if a text exceeds the model's rules although the engine accepts it. A count of 0 is ignored. */
  #count(tokens: unknown, batch: Batch): void {
    const size = promptSize(batch.texts);
    const mostTokens = this.#inputTokens * batch.texts.length;
    const leftTokens = this.#tokensMax - this.#promptTokens;
    if (isCount(tokens, Math.min(mostTokens, leftTokens)) && tokens > 0) {
      this.#promptTokens += tokens;
      this.#estimates.learn(this.#rules.id, this.#accountId, size, tokens);
      return;
    }
    if (isCount(tokens, textTokensMax(size.bytes, batch.texts.length)) && tokens > mostTokens)
      throw contextExceeded(this.#inputTokens, tokens, {
        input: "input",
        maxTokens: undefined,
        param: this.#nameOf(batch),
      });
    const estimated = Math.min(this.#estimates.tokensOf(this.#rules, size), mostTokens, leftTokens);
    this.#promptTokens += estimated;
    this.#estimatedTokens += estimated;
  }

  /** Names the parameter of the text that is too long. Only one text of a batch can be. */
  #nameOf({ first, texts }: Batch, windowTokens = this.#inputTokens): string {
    const long = texts.flatMap((text, index) => (Buffer.byteLength(text) > windowTokens ? [index] : []));
    const [only] = texts.length === 1 ? [0] : long.length === 1 ? long : [];
    return only === undefined ? "input" : textName(this.#request.isList, first + only);
  }
}

interface Batch {
  /** Position of the batch's first text among all texts. */
  readonly first: number;
  readonly texts: readonly string[];
  /** It has one text, with more bytes than `longBytes`. */
  readonly isLong: boolean;
}

/**
 * Splits the texts into batches. A text above `longBytes` gets its own batch, because only its own count shows whether
 * it is too long.
 */
function* batches(all: readonly string[], longBytes: number): Iterable<Batch> {
  let texts: string[] = [];
  let characters = 0;
  let wasLong = false;
  for (const [index, text] of all.entries()) {
    const isLong = Buffer.byteLength(text) > longBytes;
    const isFull = texts.length >= batchTextsMax || characters + text.length > batchCharactersMax || isLong || wasLong;
    if (isFull && texts.length > 0) {
      yield { first: index - texts.length, texts, isLong: wasLong };
      texts = [];
      characters = 0;
    }
    texts.push(text);
    characters += text.length;
    wasLong = isLong;
  }
  yield { first: all.length - texts.length, texts, isLong: wasLong };
}

/** Returns the vectors in the order of the texts. Engines may send them in any order, if they number them. */
function vectorsOf(data: unknown, texts: number): readonly Float32Array[] {
  const vectors = new Array<Float32Array | undefined>(texts).fill(undefined);
  for (const [at, item] of (Array.isArray(data) ? data : []).entries()) {
    const { index: given, embedding } = isObject(item) ? item : {};
    const index = given ?? at;
    const isVector = Array.isArray(embedding) && embedding.length > 0 && embedding.every(isFloat);
    if (!isVector || !isCount(index, texts - 1) || vectors[index])
      throw new EngineFault("malformed", "an embedding is not a list of numbers");
    vectors[index] = Float32Array.from(embedding as number[]);
  }
  if (vectors.includes(undefined)) throw new EngineFault("malformed", "embeddings are missing");
  return vectors as Float32Array[];
}

function isFloat(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(Math.fround(value));
}

/** Cuts a vector to its first components and normalises it, like engines that support `dimensions`. */
function cutTo(vector: Float32Array, dimensions: number): Float32Array {
  if (vector.length < dimensions)
    throw new EngineFault("malformed", "the vectors are shorter than the catalogue's `dimensions`");
  if (vector.length === dimensions) return vector;
  const cut = vector.subarray(0, dimensions);
  const length = Math.hypot(...cut) || 1;
  return cut.map((value) => value / length);
}
