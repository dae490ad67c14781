/** Decides which models of the catalogue a key may use. */
import { isCallable, type Catalogue, type CatalogueEntry } from "@weiche/shared/catalogue.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import type { Caller } from "../callers/caller.ts";

/** Lists the models that a key may use, in the order of the catalogue. */
export function modelsOf(caller: Caller, catalogue: Catalogue): CatalogueEntry[] {
  return [...catalogue.values()].filter((entry) => isCallable(entry) && mayUse(caller, entry.id));
}

/** Finds a model. Throws 400 for an unknown model, and 403 for a model that the key may not use. */
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
