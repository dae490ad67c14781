/** Routes of the models, as an account sees them. */
import { Type } from "typebox";
import { count, credits, everybody, instant, modelStatus, object, orNull, type RouteTable } from "./route.ts";

export const modelsContract = {
  listModels: {
    summary: "List all models with their features, price and state, and why this user cannot use them",
    may: everybody,
    reply: object({
      items: Type.Array(
        object({
          id: Type.String(),
          category: Type.Enum(["language", "coding", "embeddings"]),
          status: modelStatus,
          contextTokens: count,
          answersMax: orNull({
            ...count,
            description: "Maximum number of answers (`n`) of one chat or completion. null for an embedding model.",
          }),
          factor: credits,
          factorIsProvisional: Type.Boolean(),
          comingFactors: Type.Array(object({ validFrom: instant, factor: credits })),
          tools: orNull(
            Type.Enum(["enforced", "auto"], {
              description:
                "`auto`: the engine treats `required` and a forced function as `auto`. null if the model has no tools.",
            }),
          ),
          images: orNull(object({ max: count, formats: Type.Array(Type.String()) })),
          embeddings: orNull(
            object({ minDimensions: count, maxDimensions: count, defaultDimensions: count, inputTokens: count }),
          ),
          reasoning: object({
            mode: Type.Enum(["unavailable", "optional", "default-on"]),
            efforts: Type.Array(Type.String(), { description: "Accepted levels. If empty, any level is accepted." }),
            default: orNull(Type.String()),
          }),
          state: Type.Enum(["active", "switching", "asleep", "unavailable"], {
            description: "`asleep`: the first request wakes the model, usually within seconds.",
          }),
          unusable: orNull(
            Type.Enum(
              ["announced", "not-allowed", "no-package", "quota-exhausted", "user-limit", "maintenance", "no-node"],
              {
                description: "Why a request of this user would be refused, or null.",
              },
            ),
          ),
        }),
      ),
    }),
  },
  listChanges: {
    summary: "List changes of models and factors, newest first, including announced ones",
    may: everybody,
    reply: object({
      items: Type.Array(
        object({
          at: instant,
          text: object({ de: Type.String(), en: Type.String() }),
          models: Type.Array(Type.String(), { description: "If empty, the change is about the whole service." }),
        }),
      ),
    }),
  },
} as const satisfies RouteTable;
