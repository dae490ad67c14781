/**
 * The model catalogue: models, their costs and rules. Rules are data: a new model needs no code. The router owns the
 * catalogue; an agent gets the rules of its own models over the link.
 */
import { Type, type Static } from "typebox";
import { isSeq, parseDocument } from "yaml";
import { changesSchema, judgeChanges, readChanges, type ServiceChange } from "./changelog.ts";
import { checkYaml, type Finding, type Mistake } from "./files/config-file.ts";
import { parseFactor, type Millicredits } from "./credits.ts";
import { asId, namePattern, type ModelId, type NodeId } from "./ids.ts";
import { judgePackages, packagesSchema, readPackageEntries, servicePackages, type PackageEntry } from "./packages.ts";

export type ReasoningMode = "unavailable" | "optional" | "default-on";
export type ModelCategory = "language" | "coding" | "embeddings";
export type ModelStatus = "Beta" | "Verfügbar" | "Auslaufend" | "Demnächst";

/** The part of a model's entry that an agent needs to apply the rules. */
export interface ModelRules {
  readonly id: ModelId;
  readonly category: ModelCategory;
  readonly contextTokens: number;
  readonly reasoning: {
    readonly mode: ReasoningMode;
    /** Accepted values of `reasoning_effort`. Empty: any, and all but `none` switch reasoning on if there is any. */
    readonly efforts: readonly string[];
    readonly default?: string;
    readonly templateKwargsAccepted: boolean;
  };
  readonly toolsEnforced: boolean;
  readonly images?: { readonly max: number; readonly formats: readonly string[] };
  readonly embeddings?: {
    readonly dimensions: { readonly min: number; readonly max: number; readonly default: number };
    readonly inputTokens: number;
    readonly instruction?: { readonly default?: string; readonly template: string };
  };
}

export interface CatalogueEntry extends ModelRules {
  readonly status: ModelStatus;
  /** The only nodes that may host the model. Absent: any node. */
  readonly nodes?: readonly NodeId[];
  /** Oldest first; the first one is valid from the beginning. */
  readonly factors: readonly ModelFactor[];
}

export interface ModelFactor {
  readonly validFromMs: number;
  readonly factor: Millicredits;
  /** Not settled yet, which customers are told. Absent: it is. */
  readonly isProvisional?: true;
}

export type Catalogue = ReadonlyMap<ModelId, CatalogueEntry>;

/** The factor valid at `atMs`. */
export function factorAt(entry: Pick<CatalogueEntry, "factors">, atMs: number): Millicredits {
  return factorEntryAt(entry, atMs).factor;
}

export function factorEntryAt({ factors }: Pick<CatalogueEntry, "factors">, atMs: number): ModelFactor {
  return factors.findLast((f) => f.validFromMs <= atMs) ?? factors[0]!;
}

/**
 * The most tokens, input and output together, that a request for this many answers (choices, or texts to embed) may
 * cost: each answer fits the model's context window, input included.
 */
export function requestTokensMax({ contextTokens, embeddings }: ModelRules, answers: number): number {
  return (embeddings?.inputTokens ?? contextTokens) * answers;
}

/** Whether the public API serves and lists the model. */
export function isCallable(entry: CatalogueEntry): boolean {
  return entry.status !== "Demnächst";
}

/** Whether the node may host the model, and so get its prompts. */
export function mayHost(catalogue: Catalogue, node: NodeId, model: ModelId): boolean {
  return catalogue.get(model)?.nodes?.includes(node) ?? true;
}

/** The part of the entry that an agent may know, field by field: a new one is not sent by accident. */
export function rulesOf(entry: CatalogueEntry): ModelRules {
  const { id, category, contextTokens, reasoning, toolsEnforced, images, embeddings } = entry;
  const some = { id, category, contextTokens, reasoning, toolsEnforced };
  return { ...some, ...(images && { images }), ...(embeddings && { embeddings }) };
}

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
      Type.Array(Type.String(), {
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
    formats: Type.Array(Type.Enum(["png", "jpeg", "webp", "gif"]), {
      minItems: 1,
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
            Type.String({ description: "the instruction of a request that names none", absent: "none" }),
          ),
          template: Type.String({ description: "what the engine gets, with `{instruction}` and `{input}` in it" }),
        },
        { ...closed, description: "an instruction before each text", absent: "the model takes none" },
      ),
    ),
  },
  { ...closed, description: "needed by a model of category `embeddings`", absent: "for other models" },
);

const entrySchema = Type.Object(
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

const listSchema = Type.Array(entrySchema, { minItems: 1 });
export const catalogueSchema = Type.Object(
  { models: listSchema, packages: Type.Optional(packagesSchema), changes: Type.Optional(changesSchema) },
  closed,
);

export type CatalogueResult =
  | {
      readonly catalogue: Catalogue;
      readonly packages: readonly PackageEntry[];
      readonly changes: readonly ServiceChange[];
      readonly mistakes: [];
    }
  | {
      readonly catalogue?: undefined;
      readonly packages?: undefined;
      readonly changes?: undefined;
      readonly mistakes: Mistake[];
    };

/**
 * Reads a catalogue file: a list of entries, alone or under `models`, where `packages` and `changes` may stand beside it. A mistake
 * anywhere refuses the whole file.
 */
export function parseCatalogue(text: string): CatalogueResult {
  const isList = isSeq(parseDocument(text).contents);
  const { value, mistakes } = isList ? checkYaml(text, listSchema) : checkYaml(text, catalogueSchema, judgeCatalogue);
  if (!value) return { mistakes };
  const catalogue = new Map<ModelId, CatalogueEntry>();
  const wrong: Mistake[] = [];
  const { models, packages: raw, changes = [] } = Array.isArray(value) ? { models: value } : value;
  for (const entry of models) {
    const read = toEntry(entry);
    if (typeof read === "string") wrong.push({ line: 0, message: `model ${entry.id}: ${read}` });
    else if (catalogue.has(read.id)) wrong.push({ line: 0, message: `model ${entry.id} is listed twice` });
    else catalogue.set(read.id, read);
  }
  if (wrong.length > 0) return { mistakes: wrong };
  const packages = raw ? readPackageEntries(raw) : servicePackages;
  return { catalogue, packages, changes: readChanges(changes), mistakes: [] };
}

function* judgeCatalogue({ changes = [], packages = [] }: Static<typeof catalogueSchema>): Generator<Finding> {
  for (const [path, message] of judgePackages(packages)) yield [["packages", ...path], message];
  for (const [path, message] of judgeChanges(changes)) yield [["changes", ...path], message];
}

/** Largest factor, in thousandths. */
const factorMax = 1_000_000n;

function toEntry(raw: Static<typeof entrySchema>): CatalogueEntry | string {
  const factors: ModelFactor[] = [];
  for (const { validFrom, factor, provisional } of raw.factors) {
    const validFromMs = Date.parse(validFrom);
    const parsed = parseFactor(factor);
    if (Number.isNaN(validFromMs))
      return `validFrom "${validFrom}" is not an instant such as 2026-01-01T00:00:00+01:00`;
    if (parsed === undefined) return `factor ${factor} must have at most three places`;
    if (parsed > factorMax) return `factor ${factor} is larger than 1000`;
    factors.push({ validFromMs, factor: parsed, ...(provisional && { isProvisional: true }) });
  }
  if (raw.category === "embeddings" && !raw.embeddings) return "an embedding model needs `embeddings`";
  const reasoning = raw.reasoning ?? { mode: "unavailable" as const };
  if (reasoning.default !== undefined && !reasoning.efforts?.includes(reasoning.default))
    return `reasoning.default is not among reasoning.efforts`;
  return {
    id: asId<ModelId>(raw.id),
    category: raw.category,
    status: raw.status,
    contextTokens: raw.contextTokens,
    nodes: raw.nodes?.map((node) => asId<NodeId>(node)),
    factors: factors.sort((a, b) => a.validFromMs - b.validFromMs),
    reasoning: {
      mode: reasoning.mode,
      efforts: reasoning.efforts ?? [],
      default: reasoning.default,
      templateKwargsAccepted: reasoning.templateKwargs !== "rejected",
    },
    toolsEnforced: raw.tools?.enforced ?? true,
    images: raw.images,
    embeddings: raw.embeddings,
  };
}
