/**
 * Checks whether a model accepts a request. The router answers with the thrown error, and the agent checks again before
 * it asks its engine.
 */
import type { CatalogueEntry, ModelRules } from "../catalogue.ts";
import { ApiError, invalid } from "../errors.ts";
import { contextExceeded } from "./context-exceeded.ts";
import type { ImageFacts } from "./images.ts";

/** Facts about a body, of any endpoint, to which a model's rules apply. */
export interface RequestFacts {
  readonly model: string;
  readonly embeds: boolean;
  /** Whether a chat asks for events. */
  readonly isStreamed?: boolean;
  /** Number of answers: choices, or texts to embed. */
  readonly answers: number;
  readonly maxTokens?: number;
  /** The parameter by which the client set it. */
  readonly maxTokensParam?: string;
  readonly reasoningEffort?: string;
  readonly templateKwargs?: boolean;
  readonly images?: readonly ImageFacts[];
  readonly dimensions?: number;
  /** Size of the instruction before each text to embed. Infinity if it is longer than the router reads. */
  readonly instructionBytes?: number;
}

/** Throws a 400 if the model does not accept the request. */
export function checkModelRules(facts: RequestFacts, rules: ModelRules): void {
  const { embeds, maxTokens, reasoningEffort } = facts;
  if ((rules.category === "embeddings") !== embeds)
    throw invalid("model", embeds ? "is no embedding model" : "is an embedding model, for /v1/embeddings only");
  const { efforts, templateKwargsAccepted } = rules.reasoning;
  if (facts.templateKwargs && !templateKwargsAccepted)
    throw invalid("chat_template_kwargs", "is not accepted by this model");
  if (reasoningEffort !== undefined && efforts.length > 0 && !efforts.includes(reasoningEffort))
    throw invalid("reasoning_effort", `must be one of ${efforts.join(", ")} for this model`);
  checkImages(facts.images ?? [], rules.images);
  checkDimensions(facts.dimensions, rules.embeddings?.dimensions);
  if (maxTokens !== undefined && maxTokens > rules.contextTokens)
    throw contextExceeded(
      rules.contextTokens,
      { atLeast: 1 },
      { input: "input", maxTokens, param: facts.maxTokensParam ?? "max_tokens" },
    );
}

/** Throws a 400 for more answers (`n`) than the model gives per request. Embeddings have no `n`. */
export function checkAnswers({ embeds, answers }: RequestFacts, { answersMax }: CatalogueEntry): void {
  if (embeds || answers <= answersMax) return;
  const must = `must be at most ${answersMax} for this model, not ${answers}; send several requests for more answers`;
  throw new ApiError("invalid_request", `Invalid 'n': ${must}.`, { param: "n", reason: "too_many_answers" });
}

export function checkImages(images: readonly ImageFacts[], rules: ModelRules["images"]): void {
  if (images.length === 0) return;
  if (!rules) throw invalid(images[0]!.param, "this model accepts no images");
  if (images.length > rules.max) throw invalid("messages", `at most ${rules.max} images are accepted per request`);
  const wrong = images.find(({ format }) => format === undefined || !rules.formats.includes(format));
  if (wrong) throw invalid(wrong.param, `images must be one of ${rules.formats.join(", ")}`);
}

/** Throws a 400 for vectors of a wrong length. If `range` is undefined, the model has no vectors. */
export function checkDimensions(
  dimensions: number | null | undefined,
  range: { readonly min: number; readonly max: number } | undefined,
): void {
  if (dimensions != null && range && (dimensions < range.min || dimensions > range.max))
    throw invalid("dimensions", `must be from ${range.min} to ${range.max} for this model`);
}
