/**
 * Translates between the gRPC link and the agent's own types: rules of models, whose enums are checked here, and usage
 * records.
 */
import { makeGenericClientConstructor, type Client, type ClientDuplexStream } from "@grpc/grpc-js";
import {
  NodeControlServiceService,
  type Hello,
  type LinkRequest,
  type LinkResponse,
  type ModelRules as WireRules,
  type SlotDescription,
  type UsageRecord as WireRecord,
} from "@weiche/proto/weiche/node/v1/node_control.ts";
import { categories, outcomes, reasoningModes, sources, wordOf } from "@weiche/proto/words.ts";
import type { SlotConfig } from "../config/config.ts";
import { servedBy } from "../engines/engine.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { linkResponseBounds } from "@weiche/shared/wire/link-bounds.ts";
import { boundedDecoder, type Received } from "@weiche/shared/wire/message-bounds.ts";
import { optionalUint32, uint32 } from "./whole-numbers.ts";

const { link } = NodeControlServiceService;
const responseDeserialize = boundedDecoder(link.responseDeserialize, linkResponseBounds);
/** The client is made of this. Its messages are limited before they are decoded. */
export const LinkClient = makeGenericClientConstructor(
  { link: { ...link, responseDeserialize } },
  "weiche.node.v1.NodeControlService",
) as unknown as new (...of: ConstructorParameters<typeof Client>) => Client & { link(): LinkCall };
export type LinkCall = ClientDuplexStream<LinkRequest, Received<LinkResponse>>;

/** The first message of an agent. */
export interface NodeHello extends Hello {
  readonly node: NodeId;
  readonly slots: readonly (SlotDescription & { readonly name: SlotName; readonly models: readonly ModelId[] })[];
}

/** Describes a slot for the agent's hello. */
export function describeSlot({ name, engines }: Pick<SlotConfig, "name" | "engines">): NodeHello["slots"][number] {
  const all = engines.flatMap((engine) => servedBy(engine).map((model) => ({ model, engine: engine.model })));
  const isShared = all.some(({ model, engine }) => model !== engine);
  return { name, models: all.map(({ model }) => model), engines: isShared ? all.map(({ engine }) => engine) : [] };
}

export type Uplink = NonNullable<LinkRequest["message"]>;
export type Downlink = NonNullable<LinkResponse["message"]>;

export function encodeRecord({
  factor,
  tokensMax,
  grant,
  source,
  outcome,
  durationMs,
  firstTokenMs,
  ...record
}: UsageRecord): WireRecord {
  return {
    ...record,
    tokensMax: BigInt(tokensMax),
    grant: Buffer.from(grant, "base64url"),
    factorMillicredits: factor,
    source: sources[source],
    outcome: outcomes[outcome],
    durationMs: uint32(durationMs),
    firstTokenMs: optionalUint32(firstTokenMs),
  };
}

/** Reads the rules of models. A model with unreadable rules gets none. */
export function readRules(wires: readonly WireRules[]) {
  const rules: ModelRules[] = [];
  const unreadable: { readonly model: string; readonly reason: string }[] = [];
  for (const wire of wires) {
    const read = readRulesOf(wire);
    if (typeof read === "string") unreadable.push({ model: wire.id, reason: read });
    else rules.push(read);
  }
  return { rules, unreadable };
}

/** Returns the rules, or the reason why they cannot be applied. */
function readRulesOf({
  id,
  category: wireCategory,
  contextTokens,
  reasoning,
  ...wire
}: WireRules): ModelRules | string {
  const category = wordOf(categories, wireCategory);
  const mode = reasoning && wordOf(reasoningModes, reasoning.mode);
  if (!category) return `category ${wireCategory} is unknown`;
  if (!mode) return `reasoning mode ${reasoning?.mode ?? "(absent)"} is unknown`;
  if (contextTokens === 0) return "the context window is absent";
  return {
    id: asId(id),
    category,
    contextTokens,
    reasoning: {
      mode,
      efforts: reasoning.efforts,
      default: reasoning.defaultEffort,
      templateKwargsAccepted: reasoning.templateKwargsAccepted,
    },
    toolsEnforced: wire.toolsEnforced,
    tokensPerByte: wire.tokensPerByte,
    images: wire.images,
    embeddings: wire.embeddings && readEmbeddings(wire.embeddings),
  };
}

function readEmbeddings(wire: NonNullable<WireRules["embeddings"]>): NonNullable<ModelRules["embeddings"]> {
  const { dimensionsMin: min, dimensionsMax: max, dimensionsDefault, inputTokens } = wire;
  const { instructionDefault, instructionTemplate: template } = wire;
  return {
    dimensions: { min, max, default: dimensionsDefault },
    inputTokens,
    instruction: template === undefined ? undefined : { default: instructionDefault, template },
  };
}
