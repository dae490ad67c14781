/**
 * Estimates the tokens of a prompt whose engine reported no count that can be believed: because the client left before
 * the engine's only report, or because the engine reports none. Knows sizes and counts, never text.
 */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { PromptSize } from "../intake/prompt-size.ts";

/** Finished prompts of a model from which it learns, the youngest ones. */
const samplesMax = 128;
const samplesMin = 30;
/** In shorter prompts the chat template counts for more than the text. */
const sampleBytesMin = 256;
/** Until a model has enough samples: English text and source code have more tokens per byte with all usual vocabularies. */
const tokensPerByteDefault = 0.2;
/** The service promises about 280 for a model with images. */
const imageTokens = 256;

export class PromptEstimates {
  /** By the models that this node serves. */
  readonly #ratios = new Map<ModelId, number[]>();

  learn(model: ModelId, { bytes, images }: PromptSize, tokens: number): void {
    if (images > 0 || bytes < sampleBytesMin || tokens === 0) return;
    const ratios = this.#ratios.getOrInsertComputed(model, () => []);
    ratios.push(tokens / bytes);
    if (ratios.length > samplesMax) ratios.shift();
  }

  /** Three of four finished prompts of the model had at least so many tokens per byte: in doubt the smaller number. */
  tokensPerByte(model: ModelId): number {
    const ratios = this.#ratios.get(model) ?? [];
    if (ratios.length < samplesMin) return tokensPerByteDefault;
    return ratios.toSorted((a, b) => a - b)[Math.floor(ratios.length / 4)]!;
  }

  tokensOf(model: ModelId, { bytes, images }: PromptSize): number {
    return Math.max(1, Math.floor(bytes * this.tokensPerByte(model))) + images * imageTokens;
  }
}
