/** Converts between text and tokens: prompts in, pieces of text out. */
import { setImmediate } from "node:timers/promises";
import type { LlamaModel, Token } from "node-llama-cpp";
import { toolCallTags } from "../output/output-parser.ts";
import { contextExceeded, invalid } from "../request/request-error.ts";

/**
 * A Unicode noncharacter, which no text contains. It separates the letters of a control token that a client wrote as
 * text.
 */
const divider = "\u{FDD0}";
/** A longer text is first counted in slices, so that tokenising it does not delay other answers for long. */
const sliceLength = 1 << 16;
/** The nesting limit of a value for the template, which is rendered recursively. */
const depthMax = 200;
/**
 * A code point has at most four bytes. A text that is still incomplete after that many tokens never becomes complete.
 */
const tokensPerCodePointMax = 4;

export class Vocabulary {
  readonly #model: LlamaModel;
  /** Control tokens that the output contains nevertheless, because the parser of the output looks for them. */
  readonly #tags = new Map<Token, string>();
  readonly #controlText: RegExp | undefined;

  constructor(model: LlamaModel, thinkingTags: readonly string[]) {
    this.#model = model;
    const shown = new Set([...thinkingTags, ...Object.values(toolCallTags)]);
    const controlTexts: string[] = [];
    for (const token of model.iterateAllTokens()) {
      if (!model.getTokenAttributes(token).control) continue;
      const text = model.detokenize([token], true);
      if (shown.has(text)) this.#tags.set(token, text);
      if (text.length > 1) controlTexts.push(text);
    }
    if (controlTexts.length > 0)
      this.#controlText = new RegExp(`(?=${controlTexts.map((text) => RegExp.escape(text)).join("|")}).`, "gsu");
  }

  /** Changes the text so that the model reads the spelling of a control token as letters. */
  guard(text: string): string {
    const clean = text.includes(divider) ? text.replaceAll(divider, "") : text;
    return this.#controlText ? clean.replace(this.#controlText, `$&${divider}`) : clean;
  }

  /** Applies `guard` to every string inside a JSON value. */
  guardAll(value: unknown, depth = 0): unknown {
    if (depth > depthMax) throw invalid("the request is nested too deeply");
    if (typeof value === "string") return this.guard(value);
    if (Array.isArray(value)) return value.map((item) => this.guardAll(item, depth + 1));
    if (typeof value !== "object" || value === null) return value;
    const guarded = (item: unknown) => this.guardAll(item, depth + 1);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [this.guard(key), guarded(item)]));
  }

  /** Checks a client's token ids and returns them as tokens of this model. */
  tokens(ids: readonly number[], param: string): Token[] {
    const size = this.#model.fileInfo.metadata.tokenizer.ggml.tokens.length;
    if (ids.some((id) => id >= size)) throw invalid(`'${param}' has a token that does not exist`, param);
    return [...ids] as Token[];
  }

  /** Returns the tokens of a text without control tokens. Throws if it far exceeds the context. */
  async encodeText(text: string, contextTokens: number, signal: AbortSignal): Promise<Token[]> {
    if (text.length > sliceLength) await this.#refuseIfHuge(text, contextTokens, signal);
    return this.#model.tokenize(text, false);
  }

  /**
   * Returns the tokens of a prompt, including control tokens and the token that begins a text. Throws if it exceeds the
   * context.
   */
  async encodePrompt(text: string, contextTokens: number, signal: AbortSignal): Promise<Token[]> {
    if (text.length > sliceLength) await this.#refuseIfHuge(text, contextTokens, signal);
    const tokens = text.split(divider).flatMap((part) => this.#model.tokenize(part, true));
    const { bos, shouldPrependBosToken } = this.#model.tokens;
    if (shouldPrependBosToken && bos !== null && tokens[0] !== bos) tokens.unshift(bos);
    if (tokens.length === 0) throw invalid("the prompt is empty");
    // One token is always left for the answer.
    if (tokens.length >= contextTokens) throw contextExceeded(tokens.length, contextTokens);
    return tokens;
  }

  async #refuseIfHuge(text: string, contextTokens: number, signal: AbortSignal): Promise<void> {
    let tokens = 0;
    for (let start = 0; start < text.length; start += sliceLength) {
      tokens += this.#model.tokenize(text.slice(start, start + sliceLength), true).length;
      await setImmediate(undefined, { signal });
    }
    // Splitting adds few tokens. A text near the limit is therefore counted as a whole.
    if (tokens > contextTokens * 2) throw contextExceeded(tokens, contextTokens);
  }

  /** Returns a decoder for the tokens of an answer. `before`: the last tokens of the prompt. */
  decoder(before: readonly Token[]): Decoder {
    return new Decoder(this.#model, this.#tags, before);
  }

  /** Returns the text of a single token, including control tokens. */
  textOf(token: Token): string {
    return this.#model.detokenize([token], true);
  }
}

/** Returns text with the token that completes it, because a code point may be spread over several tokens. */
class Decoder {
  readonly #model: LlamaModel;
  readonly #tags: ReadonlyMap<Token, string>;
  #before: readonly Token[];
  #pending: Token[] = [];

  constructor(model: LlamaModel, tags: ReadonlyMap<Token, string>, before: readonly Token[]) {
    this.#model = model;
    this.#tags = tags;
    this.#before = before.slice(-tokensPerCodePointMax);
  }

  push(token: Token): string {
    const tag = this.#tags.get(token);
    this.#pending.push(token);
    const text = this.#model.detokenize(this.#pending, false, this.#before);
    if (tag === undefined && text.endsWith("\u{FFFD}") && this.#pending.length < tokensPerCodePointMax) return "";
    this.#before = this.#pending;
    this.#pending = [];
    return tag === undefined ? text : text + tag;
  }
}
