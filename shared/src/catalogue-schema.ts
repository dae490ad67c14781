/** What the file of the model catalogue may say. Descriptions are shown in deploy/CONFIGURE.md. */
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
const inputTokens = Type.Integer({ minimum: 1, maximum: 2 ** 18, description: "tokens of one text" });

/** A token has at least one byte, and a template may write one byte of JSON as six. */
export const tokensPerByteMax = 6;
/** English text and source code have more with all usual vocabularies. */
export const tokensPerByteDefault = 0.2;
/** Images are tokenised by pixels, not by bytes. */
export const tokensPerImageMax = 16_384;
export const tokensPerImageDefault = 256;

function count(description: string) {
  return Type.Integer({ minimum: 1, description });
}

const factorSchema = Type.Object(
  {
    validFrom: Type.String({
      description:
        "from when it holds, with its offset, such as `2026-01-01T00:00:00+01:00`; the first one holds from the beginning",
    }),
    factor: Type.Union([Type.Number(), Type.String()], {
      description: "credits for each token; at most three decimal places, at most 1000",
    }),
    provisional: Type.Optional(
      Type.Boolean({ default: false, description: "the factor is not settled yet, which the portal says" }),
    ),
  },
  closed,
);

const reasoningSchema = Type.Object(
  {
    mode: Type.Enum(["unavailable", "optional", "default-on"], {
      description:
        "`optional`: off unless asked for. A model that cannot reason is told so, too, since many templates think unless they are told not to; only vLLM with `templateKwargs: rejected` is told nothing",
    }),
    efforts: Type.Optional(
      Type.Array(Type.String({ maxLength: effortCharactersMax }), {
        maxItems: effortsMax,
        default: [],
        description:
          "the only values of `reasoning_effort` that the model takes; none: it takes any, and each but `none` switches reasoning on",
      }),
    ),
    default: Type.Optional(
      Type.String({
        description: "the effort of a request that names none, one of `efforts`",
        absent: "the engine's own",
      }),
    ),
    templateKwargs: Type.Optional(
      Type.Enum(["accepted", "rejected"], {
        default: "accepted",
        description: "whether the engine takes `chat_template_kwargs`",
      }),
    ),
  },
  { ...closed, description: "whether the model reasons before it answers", absent: "`mode: unavailable`" },
);

const imagesSchema = Type.Object(
  {
    max: Type.Integer({ minimum: 1, description: "images in one request" }),
    tokensPerImage: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: tokensPerImageMax,
        default: tokensPerImageDefault,
        description:
          "tokens of one image, for prompts whose engine does not count them in time; usage shows them as estimated",
      }),
    ),
    formats: Type.Array(Type.Enum(["png", "jpeg", "webp", "gif"]), {
      minItems: 1,
      maxItems: formatsMax,
      description: "what an image may be: `png`, `jpeg`, `webp`, `gif`",
    }),
  },
  { ...closed, description: "images as input", absent: "text only" },
);

const embeddingsSchema = Type.Object(
  {
    dimensions: Type.Object(
      {
        min: count("the fewest that a request may ask for"),
        max: count("the most"),
        default: count("those of a request that names none"),
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
              description: "the instruction of a request that names none",
              absent: "none",
            }),
          ),
          template: Type.String({
            maxLength: instructionCharactersMax,
            description: "what the engine gets, with `{instruction}` and `{input}` in it",
          }),
        },
        { ...closed, description: "an instruction before each text", absent: "the model takes none" },
      ),
    ),
  },
  { ...closed, description: "needed by a model of category `embeddings`", absent: "for other models" },
);

export const entrySchema = Type.Object(
  {
    id: Type.String({
      pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
      description: "the name by which clients ask for the model",
    }),
    category: Type.Enum(["language", "coding", "embeddings"], { description: "what the model is for" }),
    status: Type.Enum(["Beta", "Verfügbar", "Auslaufend", "Demnächst"], {
      description: "what customers are told; a model that is `Demnächst` is neither listed nor callable",
    }),
    contextTokens,
    answersMax: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 128,
        default: 8,
        description:
          "the most answers (`n`) that one chat or completion may ask for; each takes a place of the engine, and all of them begin together",
      }),
    ),
    tokensPerByte: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: tokensPerByteMax,
        default: tokensPerByteDefault,
        description:
          "tokens for each byte (UTF-8) of a prompt whose engine does not count it in time: one of dialect `openai` that reports usage at its end or never, whose client has left. It holds until a node has seen 30 prompts of the model from at least five accounts, and then goes by these",
      }),
    ),
    nodes: Type.Optional(
      Type.Array(Type.String({ pattern: namePattern.source }), {
        minItems: 1,
        description:
          "the only nodes that are believed when they say that they host the model, by the name in their certificate and `node` in their `agent.yaml`. What another node says of it is ignored, logged (`models which the catalogue gives to others`) and counted in `weiche_router_hosting_ignored_total`, and the model's prompts go nowhere else",
        absent: "any node that says that it hosts the model gets its prompts",
      }),
    ),
    factors: Type.Array(factorSchema, { minItems: 1 }),
    reasoning: Type.Optional(reasoningSchema),
    tools: Type.Optional(
      Type.Object(
        {
          enforced: Type.Boolean({
            description: "`false`: `tool_choice` `required` and a forced function act as `auto`",
          }),
        },
        { ...closed, absent: "`enforced: true`", description: "calls of functions" },
      ),
    ),
    images: Type.Optional(imagesSchema),
    embeddings: Type.Optional(embeddingsSchema),
  },
  closed,
);

export const listSchema = Type.Array(entrySchema, { minItems: 1 });
export const catalogueSchema = Type.Object(
  { models: listSchema, packages: Type.Optional(packagesSchema), changes: Type.Optional(changesSchema) },
  closed,
);
