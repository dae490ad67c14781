/** The schema of the model catalogue's file. Its descriptions are shown in docs/configuration.md. */
import { Type } from "typebox";
import { changesSchema } from "./changelog.ts";
import { namePattern } from "./ids.ts";
import { packagesSchema } from "./packages.ts";
import { effortCharactersMax, effortsMax, formatsMax, instructionCharactersMax } from "./wire/link-bounds.ts";

const closed = { additionalProperties: false } as const;
/**
 * With 128 choices, or 2,048 texts, a request costs at most 2^29 tokens, which fits a usage record; the totals of a
 * billing period hold 17,000 such requests (9 trillion tokens) at the highest factor.
 */
const contextTokens = Type.Integer({
  minimum: 1,
  maximum: 2 ** 22,
  description: "the model's context window: input and output together",
});
const inputTokens = Type.Integer({
  minimum: 1,
  maximum: 2 ** 18,
  description: "tokens of one text. Longer texts are refused, even if the engine would cut them",
});

/** A token has at least one byte, and a template may write one byte of JSON as six. */
export const tokensPerByteMax = 6;
/** English text and source code have more tokens per byte with all usual vocabularies. */
export const tokensPerByteDefault = 0.2;
/** Limits of the tokens of an image, which depend on its pixels, not on its bytes. */
export const tokensPerImageMax = 16_384;
export const tokensPerImageDefault = 256;

function count(description: string) {
  return Type.Integer({ minimum: 1, description });
}

const factorSchema = Type.Object(
  {
    validFrom: Type.String({
      description:
        "when the factor starts to apply, with an offset, such as `2026-01-01T00:00:00+01:00`. The first factor applies from the beginning",
    }),
    factor: Type.Union([Type.Number(), Type.String()], {
      description: "credits for each token; at most three decimal places, at most 1000",
    }),
    provisional: Type.Boolean({ default: false, description: "whether the portal marks the factor as provisional" }),
  },
  closed,
);

const reasoningSchema = Type.Object(
  {
    mode: Type.Enum(["unavailable", "optional", "default-on"], {
      description:
        "`optional`: off unless requested. Reasoning is also switched off explicitly for `unavailable`, because many templates reason by default. Only vLLM with `templateKwargs: rejected` gets no switch",
    }),
    efforts: Type.Array(Type.String({ maxLength: effortCharactersMax }), {
      maxItems: effortsMax,
      default: [],
      description:
        "the accepted values of `reasoning_effort`. If empty, every value is accepted, and all except `none` switch reasoning on",
    }),
    default: Type.Optional(
      Type.String({
        description: "the effort of requests without `reasoning_effort`, one of `efforts`",
        absent: "the engine's default",
      }),
    ),
    templateKwargs: Type.Enum(["accepted", "rejected"], {
      default: "accepted",
      description: "whether the engine accepts `chat_template_kwargs`",
    }),
  },
  {
    ...closed,
    description: "whether the model reasons before it answers",
    absent: "`mode: unavailable`",
    default: { mode: "unavailable" },
  },
);

const imagesSchema = Type.Object(
  {
    max: Type.Integer({ minimum: 1, description: "maximum number of images in one request" }),
    tokensPerImage: Type.Integer({
      minimum: 1,
      maximum: tokensPerImageMax,
      default: tokensPerImageDefault,
      description:
        "estimated tokens of one image, for prompts that their engine does not count in time. Usage shows them as estimated",
    }),
    formats: Type.Array(Type.Enum(["png", "jpeg", "webp", "gif"]), {
      minItems: 1,
      maxItems: formatsMax,
      description: "accepted formats: `png`, `jpeg`, `webp`, `gif`",
    }),
  },
  { ...closed, description: "images as input", absent: "text only" },
);

const embeddingsSchema = Type.Object(
  {
    dimensions: Type.Object(
      {
        min: count("the smallest number that a request may ask for"),
        max: count("the largest number"),
        default: count("the number for requests without `dimensions`"),
      },
      { ...closed, description: "length of a vector" },
    ),
    inputTokens,
    instruction: Type.Optional(
      Type.Object(
        {
          default: Type.Optional(
            Type.String({
              maxLength: instructionCharactersMax,
              description: "the instruction of requests without one",
              absent: "none",
            }),
          ),
          template: Type.String({
            maxLength: instructionCharactersMax,
            description: "the text for the engine, with the placeholders `{instruction}` and `{input}`",
          }),
        },
        { ...closed, description: "an instruction before each text", absent: "the model accepts none" },
      ),
    ),
  },
  { ...closed, description: "required for a model of category `embeddings`", absent: "none" },
);

export const entrySchema = Type.Object(
  {
    id: Type.String({
      pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
      description: "the model's name in requests",
    }),
    category: Type.Enum(["language", "coding", "embeddings"], { description: "the purpose of the model" }),
    status: Type.Enum(["Beta", "Verfügbar", "Auslaufend", "Demnächst"], {
      description: "the status that customers see. A `Demnächst` model is neither listed nor callable",
    }),
    contextTokens,
    answersMax: Type.Integer({
      minimum: 1,
      maximum: 128,
      default: 8,
      description:
        "the maximum number of answers (`n`) of one chat or completion. Each takes a place of the engine, and all begin together",
    }),
    tokensPerByte: Type.Number({
      exclusiveMinimum: 0,
      maximum: tokensPerByteMax,
      default: tokensPerByteDefault,
      description:
        "estimated tokens per byte (UTF-8), for prompts that their engine does not count before the client leaves (dialect `openai` without early usage). Once a node has seen 30 prompts of the model from at least five accounts, it uses their average instead",
    }),
    nodes: Type.Optional(
      Type.Array(Type.String({ pattern: namePattern.source }), {
        minItems: 1,
        description:
          "the only nodes that may host the model, by the name in their certificate and `node` in their `agent.yaml`. If another node offers the model, the router ignores the offer, logs it (`models which the catalogue gives to others`) and counts it in `weiche_router_hosting_ignored_total`",
        absent: "every node may host the model",
      }),
    ),
    factors: Type.Array(factorSchema, { minItems: 1 }),
    reasoning: reasoningSchema,
    tools: Type.Object(
      {
        enforced: Type.Boolean({
          description: "if `false`, `tool_choice: required` and a forced function act as `auto`",
        }),
      },
      { ...closed, default: { enforced: true }, absent: "`enforced: true`", description: "function calls" },
    ),
    images: Type.Optional(imagesSchema),
    embeddings: Type.Optional(embeddingsSchema),
  },
  closed,
);

export const listSchema = Type.Array(entrySchema, { minItems: 1 });
export const catalogueSchema = Type.Object(
  { models: listSchema, packages: Type.Optional(packagesSchema), changes: changesSchema },
  closed,
);
