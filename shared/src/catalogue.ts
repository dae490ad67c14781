/**
 * The model catalogue: models, their costs and rules. Rules are data: a new model needs no code. The router owns the
 * catalogue; an agent gets the rules of its own models over the link.
 */
import type { Static } from "typebox";
import { isSeq, parseDocument } from "yaml";
import { catalogueSchema, listSchema, type entrySchema } from "./catalogue-schema.ts";
import { judgeChanges, readChanges, type ServiceChange } from "./changelog.ts";
import { checkYaml, type Finding, type Mistake } from "./files/config-file.ts";
import { parseFactor, type Millicredits } from "./credits.ts";
import { asId, type ModelId, type NodeId } from "./ids.ts";
import { judgePackages, readPackageEntries, servicePackages, type PackageEntry } from "./packages.ts";

type ReasoningMode = "unavailable" | "optional" | "default-on";
type ModelCategory = "language" | "coding" | "embeddings";
export type ModelStatus = "Beta" | "Verfügbar" | "Auslaufend" | "Demnächst";

/** The part of a model's entry that an agent needs to apply the rules. */
export interface ModelRules {
  readonly id: ModelId;
  readonly category: ModelCategory;
  readonly contextTokens: number;
  readonly reasoning: {
    readonly mode: ReasoningMode;
    /**
     * Accepted values of `reasoning_effort`. If empty, every value is accepted, and all except `none` switch reasoning
     * on.
     */
    readonly efforts: readonly string[];
    readonly default?: string;
    readonly templateKwargsAccepted: boolean;
  };
  readonly toolsEnforced: boolean;
  /** Estimate for prompts that no engine counts. Undefined if an earlier router sent none. */
  readonly tokensPerByte?: number;
  readonly images?: {
    readonly max: number;
    readonly formats: readonly string[];
    /** Estimate for prompts that no engine counts. Undefined if an earlier router sent none. */
    readonly tokensPerImage?: number;
  };
  readonly embeddings?: {
    readonly dimensions: { readonly min: number; readonly max: number; readonly default: number };
    readonly inputTokens: number;
    readonly instruction?: { readonly default?: string; readonly template: string };
  };
}

export interface CatalogueEntry extends ModelRules {
  readonly status: ModelStatus;
  /** The only nodes that may host the model. If undefined, every node may. */
  readonly nodes?: readonly NodeId[];
  /** Maximum number of answers (`n`) of one chat or completion. */
  readonly answersMax: number;
  /** Oldest first; the first one is valid from the beginning. */
  readonly factors: readonly ModelFactor[];
}

interface ModelFactor {
  readonly validFromMs: number;
  readonly factor: Millicredits;
  /** Whether the portal marks the factor as provisional. */
  readonly isProvisional?: true;
}

export type Catalogue = ReadonlyMap<ModelId, CatalogueEntry>;

/** Returns the factor valid at `atMs`. */
export function factorAt(entry: Pick<CatalogueEntry, "factors">, atMs: number): Millicredits {
  return factorEntryAt(entry, atMs).factor;
}

export function factorEntryAt({ factors }: Pick<CatalogueEntry, "factors">, atMs: number): ModelFactor {
  return factors.findLast((f) => f.validFromMs <= atMs) ?? factors[0]!;
}

/** Returns whether the public API serves and lists the model. */
export function isCallable(entry: CatalogueEntry): boolean {
  return entry.status !== "Demnächst";
}

/** Returns whether the node may host the model, and so get its prompts. */
export function mayHost(catalogue: Catalogue, node: NodeId, model: ModelId): boolean {
  return catalogue.get(model)?.nodes?.includes(node) ?? true;
}

/** Returns the part of an entry that agents get. Fields are listed, so that a new one is not sent by accident. */
export function rulesOf(entry: CatalogueEntry): ModelRules {
  const { id, category, contextTokens, reasoning, toolsEnforced, tokensPerByte, images, embeddings } = entry;
  const some = { id, category, contextTokens, reasoning, toolsEnforced, ...(tokensPerByte && { tokensPerByte }) };
  return { ...some, ...(images && { images }), ...(embeddings && { embeddings }) };
}

type CatalogueResult =
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
 * Reads a catalogue file. The list of entries is the whole file, or is under `models` beside `packages` and `changes`.
 * A mistake anywhere refuses the whole file.
 */
export function parseCatalogue(text: string): CatalogueResult {
  const isList = isSeq(parseDocument(text).contents);
  const { value, mistakes } = isList ? checkYaml(text, listSchema) : checkYaml(text, catalogueSchema, judgeCatalogue);
  if (!value) return { mistakes };
  const catalogue = new Map<ModelId, CatalogueEntry>();
  const wrong: Mistake[] = [];
  const { models, packages: raw, changes } = Array.isArray(value) ? { models: value, changes: [] } : value;
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

function* judgeCatalogue({ changes, packages = [] }: Static<typeof catalogueSchema>): Generator<Finding> {
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
    if (parsed === undefined) return `factor ${factor} must have at most three decimal places`;
    if (parsed > factorMax) return `factor ${factor} is larger than 1000`;
    factors.push({ validFromMs, factor: parsed, ...(provisional && { isProvisional: true }) });
  }
  if (raw.category === "embeddings" && !raw.embeddings) return "an embedding model needs `embeddings`";
  const { mode, efforts, default: usual, templateKwargs } = raw.reasoning;
  if (usual !== undefined && !efforts.includes(usual)) return `reasoning.default is not among reasoning.efforts`;
  return {
    id: asId<ModelId>(raw.id),
    category: raw.category,
    status: raw.status,
    contextTokens: raw.contextTokens,
    answersMax: raw.answersMax,
    nodes: raw.nodes?.map((node) => asId<NodeId>(node)),
    factors: factors.sort((a, b) => a.validFromMs - b.validFromMs),
    reasoning: { mode, efforts, default: usual, templateKwargsAccepted: templateKwargs === "accepted" },
    toolsEnforced: raw.tools.enforced,
    tokensPerByte: raw.tokensPerByte,
    images: raw.images,
    embeddings: raw.embeddings,
  };
}
