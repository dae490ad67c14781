/**
 * Estimates the tokens of a prompt whose engine reported no count that can be believed: because the client left before
 * the engine's only report, or because the engine reports none. Knows sizes and counts, never text.
 */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { tokensPerByteDefault, tokensPerImageDefault } from "@weiche/shared/catalogue-schema.ts";
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";
import type { PromptSize } from "../intake/prompt-size.ts";

/** Finished prompts of a model from which it learns, the youngest ones. */
const samplesMax = 128;
const samplesMin = 30;
/** Fewer than a quarter of `samplesMin`: no account alone moves the quartile that counts, whatever it sends. */
const accountSamplesMax = 7;
/** In shorter prompts the chat template counts for more than the text. */
const sampleBytesMin = 256;

interface Sample {
  readonly account: AccountId;
  readonly tokensPerByte: number;
}

export class PromptEstimates {
  /** By the models that this node serves. The oldest samples come first. */
  readonly #samples = new Map<ModelId, Sample[]>();

  /** `account`: whose prompt had so many tokens. */
  learn(model: ModelId, account: AccountId, { bytes, images }: PromptSize, tokens: number): void {
    if (images > 0 || bytes < sampleBytesMin || tokens === 0) return;
    const samples = this.#samples.getOrInsertComputed(model, () => []);
    const own = samples.filter((sample) => sample.account === account);
    if (own.length === accountSamplesMax) samples.splice(samples.indexOf(own[0]!), 1);
    else if (samples.length === samplesMax) samples.shift();
    samples.push({ account, tokensPerByte: tokens / bytes });
  }

  /**
   * Three of four finished prompts of the model had at least so many tokens per byte: in doubt the smaller number. Until
   * there are enough of them, the catalogue's ratio counts.
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
