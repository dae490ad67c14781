/** Everything between text and tokens: prompts in, pieces of text out. */
import { setImmediate } from "node:timers/promises";
import type { LlamaModel, Token } from "node-llama-cpp";
import { toolCallTags } from "../output/output-parser.ts";
import { contextExceeded, invalid } from "../request/request-error.ts";

/** A noncharacter of Unicode, which no text has. It parts the letters of a control token that a client wrote as text. */
const divider = "\u{FDD0}";
/** A longer text is counted in slices first, so that tokenising it never holds up the other answers for long. */
const sliceLength = 1 << 16;
/** Nesting of a value for the template, which is rendered recursively. */
const depthMax = 200;
/** A code point has at most four bytes, so text that is still incomplete after as many tokens never becomes complete. */
const tokensPerCodePointMax = 4;

export class Vocabulary {
  readonly #model: LlamaModel;
  /** Control tokens that are shown all the same, since the parser of the output looks for them. */
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

  /** Changes the text so that the model reads as letters what is spelt like a control token. */
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

  /** Checks numbers of a client and returns them as tokens of this model. */
  tokens(ids: readonly number[], param: string): Token[] {
    const size = this.#model.fileInfo.metadata.tokenizer.ggml.tokens.length;
    if (ids.some((id) => id >= size)) throw invalid(`'${param}' has a token that does not exist`, param);
    return [...ids] as Token[];
  }

  /** The tokens of a text of which nothing is a control token. Throws if it is far over the context. */
  async encodeText(text: string, contextTokens: number, signal: AbortSignal): Promise<Token[]> {
    if (text.length > sliceLength) await this.#refuseIfHuge(text, contextTokens, signal);
    return this.#model.tokenize(text, false);
  }

  /** The tokens of a prompt, control tokens and the beginning of a text included. Throws if it is over the context. */
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
    // Cutting adds few tokens; a text that near the limit is counted as a whole.
    if (tokens > contextTokens * 2) throw contextExceeded(tokens, contextTokens);
  }

  /** Turns the tokens of an answer into text. `before` are the last ones of the prompt. */
  decoder(before: readonly Token[]): Decoder {
    return new Decoder(this.#model, this.#tags, before);
  }

  /** The text of one token by itself, control tokens included. */
  textOf(token: Token): string {
    return this.#model.detokenize([token], true);
  }
}

/** Text comes out with the token that completes it: a code point may be spread over several. */
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
