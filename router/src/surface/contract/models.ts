/** The models as an account sees them. */
import { Type } from "typebox";
import { count, credits, everybody, instant, modelStatus, object, orNull, type RouteTable } from "./route.ts";

export const modelsContract = {
  listModels: {
    summary: "Every model with what it can do, what it costs, whether it is awake and why this user cannot use it",
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
            description: "Most answers (`n`) of one chat or completion. null: an embedding model.",
          }),
          factor: credits,
          factorIsProvisional: Type.Boolean(),
          comingFactors: Type.Array(object({ validFrom: instant, factor: credits })),
          tools: orNull(
            Type.Enum(["enforced", "auto"], {
              description: "auto: `required` and a forced function act as auto. null: no tools.",
            }),
          ),
          images: orNull(object({ max: count, formats: Type.Array(Type.String()) })),
          embeddings: orNull(
            object({ minDimensions: count, maxDimensions: count, defaultDimensions: count, inputTokens: count }),
          ),
          reasoning: object({
            mode: Type.Enum(["unavailable", "optional", "default-on"]),
            efforts: Type.Array(Type.String(), { description: "Accepted levels. None: any is accepted." }),
            default: orNull(Type.String()),
          }),
          state: Type.Enum(["active", "switching", "asleep", "unavailable"], {
            description: "asleep: wakes on the first request, usually within seconds.",
          }),
          unusable: orNull(
            Type.Enum(["announced", "not-allowed", "no-package", "maintenance", "no-node"], {
              description: "Why a request of this user would be refused. null: it would not.",
            }),
          ),
        }),
      ),
    }),
  },
  listChanges: {
    summary: "The changelog of models and factors, the youngest change first; a change may lie ahead",
    may: everybody,
    reply: object({
      items: Type.Array(
        object({
          at: instant,
          text: object({ de: Type.String(), en: Type.String() }),
          models: Type.Array(Type.String(), { description: "None: the service as a whole." }),
        }),
      ),
    }),
  },
} as const satisfies RouteTable;
