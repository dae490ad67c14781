/**
 * Finds texts that an engine for embeddings has cut silently. Such an engine reports the tokens of the part that it
 * kept. The two halves of a cut text have more tokens together, so the agent asks for them. It does so only for a
 * count that no whole text of this engine has reached: an engine that cuts reports its limit, the largest of all counts.
 */
import { edgeTokensMax } from "@weiche/shared/convention/prompt-tokens.ts";
import type { EngineEndpoint } from "../../engines/engine.ts";

interface Found {
  /** The most tokens of a text that the engine has read whole. */
  wholeTokens: number;
  /** The least tokens at which the engine has cut a text. */
  cutTokens: number;
}

export class CutTexts {
  /** By endpoint, because a restarted engine has another endpoint. */
  readonly #found = new WeakMap<EngineEndpoint, Found>();

  /** `engine`: an engine that may cut texts. */
  of(engine: EngineEndpoint): EngineCuts {
    return new EngineCuts(this.#found.getOrInsertComputed(engine, () => ({ wholeTokens: 0, cutTokens: Infinity })));
  }
}

export class EngineCuts {
  readonly #found: Found;

  constructor(found: Found) {
    this.#found = found;
  }

  /** The tokens at which the engine cuts texts. Infinity while none was found. */
  get atTokens(): number {
    return this.#found.cutTokens;
  }

  /**
   * Returns whether the engine cut the text of which it reports `tokens`. `count` returns the tokens that it reports for
   * these texts, or undefined if it reports none.
   */
  async hasCut(
    text: string,
    tokens: number,
    count: (texts: readonly string[]) => Promise<number | undefined>,
  ): Promise<boolean> {
    if (tokens < this.#found.wholeTokens || text.length < 2) return false;
    const ofHalves = await count(halvesOf(text));
    if (ofHalves === undefined) return false;
    const isCut = ofHalves > tokens + edgeTokensMax;
    if (isCut) this.#found.cutTokens = Math.min(tokens, this.#found.cutTokens);
    else this.#found.wholeTokens = tokens;
    return isCut;
  }
}

function halvesOf(text: string): readonly [string, string] {
  const half = text.length >> 1;
  const middle = text.codePointAt(half - 1)! > 0xffff ? half + 1 : half;
  return [text.slice(0, middle), text.slice(middle)];
}
