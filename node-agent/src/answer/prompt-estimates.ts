/**
 * Estimates the tokens of a prompt without a plausible count from its engine. Either the client left before the
 * engine's only report, or the engine reports no count. Stores sizes and counts, never text.
 */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { tokensPerByteDefault, tokensPerImageDefault } from "@weiche/shared/catalogue-schema.ts";
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";
import type { PromptSize } from "../intake/prompt-size.ts";

/** The newest finished prompts of a model from which the estimate is learned. */
const samplesMax = 128;
const samplesMin = 30;
/** Less than a quarter of `samplesMin`, so that no single account can move the quartile, whatever it sends. */
const accountSamplesMax = 7;
/** In shorter prompts the chat template outweighs the text. */
const sampleBytesMin = 256;

interface Sample {
  readonly account: AccountId;
  readonly tokensPerByte: number;
}

export class PromptEstimates {
  /** Samples of each model that this node serves, the oldest first. */
  readonly #samples = new Map<ModelId, Sample[]>();

  /** Learns from a finished prompt of the account. */
  learn(model: ModelId, account: AccountId, { bytes, images }: PromptSize, tokens: number): void {
    if (images > 0 || bytes < sampleBytesMin || tokens === 0) return;
    const samples = this.#samples.getOrInsertComputed(model, () => []);
    const own = samples.filter((sample) => sample.account === account);
    if (own.length === accountSamplesMax) samples.splice(samples.indexOf(own[0]!), 1);
    else if (samples.length === samplesMax) samples.shift();
    samples.push({ account, tokensPerByte: tokens / bytes });
  }

  /**
   * Returns a ratio that three of four finished prompts of the model reached or exceeded, so that the estimate is low
   * in doubt. Until there are enough samples, the catalogue's ratio applies.
   */
  tokensPerByte({ id, tokensPerByte = tokensPerByteDefault }: ModelRules): number {
    const samples = this.#samples.get(id) ?? [];
    if (samples.length < samplesMin) return tokensPerByte;
    const ratios = samples.map((sample) => sample.tokensPerByte).toSorted((a, b) => a - b);
    return ratios[Math.floor(ratios.length / 4)]!;
  }

  tokensOf(rules: ModelRules, { bytes, images }: PromptSize): number {
    const { tokensPerImage = tokensPerImageDefault } = rules.images ?? {};
    return Math.max(1, Math.floor(bytes * this.tokensPerByte(rules))) + images * tokensPerImage;
  }
}
