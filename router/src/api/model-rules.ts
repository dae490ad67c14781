/** What the catalogue says of the model that a request names: whether it exists, may be used, and takes such a request. */
import { isCallable, type Catalogue, type CatalogueEntry } from "@weiche/shared/catalogue.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import type { Caller } from "../keys/caller.ts";
import { invalid, type ImageFacts, type RequestFacts } from "./request-schema.ts";

/** The models that a key may use, in the order of the catalogue. */
export function modelsOf(caller: Caller, catalogue: Catalogue): CatalogueEntry[] {
  return [...catalogue.values()].filter((entry) => isCallable(entry) && mayUse(caller, entry.id));
}

/** Throws 400 for a model that is not there, 403 for one that this key may not use. */
export function findModel(name: string, caller: Caller, catalogue: Catalogue): CatalogueEntry {
  const entry = catalogue.get(asId<ModelId>(name));
  if (!entry || !isCallable(entry))
    throw new ApiError("invalid_request", "The model does not exist. GET /v1/models lists the models of this key.", {
      param: "model",
    });
  if (!mayUse(caller, entry.id)) {
    const allowed = modelsOf(caller, catalogue).map(({ id }) => id);
    throw new ApiError(
      "key_model_access_denied",
      `This key may not use the model. It may use: ${allowed.length > 0 ? allowed.join(", ") : "none"}.`,
      { param: "model" },
    );
  }
  return entry;
}

function mayUse(caller: Caller, model: ModelId): boolean {
  return caller.allowedModels?.has(model) ?? true;
}

/** Throws 400 for what the model does not take. `embeds`: whether the endpoint is the one for embeddings. */
export function checkModelRules(facts: RequestFacts, entry: CatalogueEntry, embeds: boolean): void {
  if ((entry.category === "embeddings") !== embeds)
    throw invalid("model", embeds ? "is no embedding model" : "is an embedding model, for /v1/embeddings only");
  if (facts.templateKwargs && !entry.reasoning.templateKwargsAccepted)
    throw invalid("chat_template_kwargs", "is not accepted by this model");
  const { efforts } = entry.reasoning;
  if (facts.reasoningEffort !== undefined && efforts.length > 0 && !efforts.includes(facts.reasoningEffort))
    throw invalid("reasoning_effort", `must be one of ${efforts.join(", ")} for this model`);
  checkImages(facts.images, entry.images);
  if (facts.dimensions !== undefined && entry.embeddings) {
    const { min, max } = entry.embeddings.dimensions;
    if (facts.dimensions < min || facts.dimensions > max)
      throw invalid("dimensions", `must be from ${min} to ${max} for this model`);
  }
  if (facts.maxTokens !== undefined && facts.maxTokens > entry.contextTokens)
    throw new ApiError(
      "context_window_exceeded",
      // "exceeds the context window" is what client libraries know an overflow by.
      `The request exceeds the context window of this model, which is ${entry.contextTokens} tokens, input and output ` +
        `together: ${facts.maxTokens} tokens were requested for the output alone.`,
      { param: facts.maxTokensParam ?? "max_tokens" },
    );
}

function checkImages(images: readonly ImageFacts[], rules: CatalogueEntry["images"]): void {
  if (images.length === 0) return;
  if (!rules) throw invalid(images[0]!.param, "this model takes no images");
  if (images.length > rules.max) throw invalid("messages", `at most ${rules.max} images are taken per request`);
  const wrong = images.find(({ format }) => format === undefined || !rules.formats.includes(format));
  if (wrong) throw invalid(wrong.param, `images must be one of ${rules.formats.join(", ")}`);
}
