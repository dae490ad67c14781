/**
 * The border of the agent's end of the gRPC link: the only file that knows the generated types. What a router says is
 * checked here; inside, every enum is known.
 */
import type { ClientDuplexStream } from "@grpc/grpc-js";
import {
  ModelCategory,
  NodeControlServiceClient,
  ReasoningMode,
  RequestOutcome,
  SlotState,
  UsageSource,
  type HostLoad as WireHost,
  type LinkRequest,
  type LinkResponse,
  type ModelRules as WireRules,
  type SlotLoad as WireSlot,
  type UsageRecord as WireRecord,
} from "@weiche/proto/weiche/node/v1/node_control.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import type { Attempt, UsageRecord } from "@weiche/shared/usage-record.ts";
import type { DesiredState } from "./desired-state.ts";
import type { HostLoad, LoadReport, SlotLoad } from "./load.ts";

export const LinkClient = NodeControlServiceClient;
export type LinkCall = ClientDuplexStream<LinkRequest, LinkResponse>;

/** What an agent says first. */
export interface Hello {
  readonly node: NodeId;
  /** UUIDv7, new for every start of the process: of two the greater is the later start. */
  readonly bootId: string;
  readonly agentVersion: string;
  readonly slots: readonly { readonly name: SlotName; readonly models: readonly ModelId[] }[];
}

export type Uplink =
  | { readonly kind: "hello"; readonly hello: Hello }
  | { readonly kind: "report"; readonly sequence: bigint; readonly report: LoadReport }
  | { readonly kind: "usage"; readonly batchId: bigint; readonly records: readonly UsageRecord[] };

export type Downlink =
  | {
      readonly kind: "welcome";
      readonly routerId: string;
      readonly dataAddress: string;
      readonly rules: readonly ModelRules[];
      readonly unreadable: readonly UnreadableRules[];
      readonly desired?: DesiredState;
    }
  | { readonly kind: "ack"; readonly batchId: bigint }
  | { readonly kind: "rules"; readonly rules: readonly ModelRules[]; readonly unreadable: readonly UnreadableRules[] }
  | { readonly kind: "desired"; readonly desired: DesiredState }
  | { readonly kind: "settled"; readonly attempts: readonly Attempt[] }
  | { readonly kind: "goodbye" }
  | { readonly kind: "heartbeat" }
  /** Something that a later version may say. */
  | { readonly kind: "unknown" };

/** Rules of a model that this agent does not understand; the model stays without. */
export interface UnreadableRules {
  readonly model: string;
  readonly reason: string;
}

export function encodeUplink(message: Uplink): LinkRequest {
  switch (message.kind) {
    case "hello":
      return { message: { $case: "hello", value: message.hello } };
    case "report": {
      const { host, slots, maintenance, admitting } = message.report;
      const value = { sequence: message.sequence, slots: slots.map(encodeSlot), maintenance, admitting };
      return { message: { $case: "loadReport", value: host ? { ...value, host: encodeHost(host) } : value } };
    }
    case "usage": {
      const { batchId, records } = message;
      return { message: { $case: "usageBatch", value: { batchId, records: records.map(encodeRecord) } } };
    }
  }
}

export function decodeDownlink({ message }: LinkResponse): Downlink {
  switch (message?.$case) {
    case "welcome": {
      const { routerId, dataAddress, models, desiredState } = message.value;
      const desired = desiredState && decodeDesired(desiredState);
      return { kind: "welcome", routerId, dataAddress, ...decodeAllRules(models), ...(desired ? { desired } : {}) };
    }
    case "usageAck":
      return { kind: "ack", batchId: message.value.batchId };
    case "modelRulesChanged":
      return { kind: "rules", ...decodeAllRules(message.value.models) };
    case "desiredState":
      return { kind: "desired", desired: decodeDesired(message.value) };
    case "settled":
      return { kind: "settled", attempts: message.value.attempts.map(decodeAttempt) };
    case "goodbye":
      return { kind: "goodbye" };
    case "heartbeat":
      return { kind: "heartbeat" };
    case undefined:
      return { kind: "unknown" };
  }
}

const slotStates = {
  empty: SlotState.EMPTY,
  starting: SlotState.STARTING,
  active: SlotState.ACTIVE,
  "draining-open": SlotState.DRAINING_OPEN,
  "draining-closed": SlotState.DRAINING_CLOSED,
  stopping: SlotState.STOPPING,
  failed: SlotState.FAILED,
} as const;

function encodeSlot(load: SlotLoad): WireSlot {
  const waiters = [...load.waitingByModel].map(([model, waiting]) => ({ model, waiting }));
  return {
    name: load.name,
    state: slotStates[load.kind],
    activeModel: load.active,
    nextModel: load.next,
    running: load.running,
    runningOfRouter: load.runningOfRouter,
    waiters,
    oldestRunningMs: optionalUint32(load.oldestRunningMs),
    closesInMs: optionalUint32(load.closesInMs),
    stateAgeMs: uint32(load.stateAgeMs),
    maxConcurrent: load.maxConcurrent,
    engine: load.engine && {
      ...load.engine,
      running: optionalUint32(load.engine.running),
      waiting: optionalUint32(load.engine.waiting),
    },
    retryInMs: optionalUint32(load.retryInMs),
  };
}

function encodeHost(host: HostLoad): WireHost {
  return {
    cpuUse: host.cpuUse,
    memoryTotalBytes: optionalUint64(host.memoryTotalBytes),
    memoryAvailableBytes: optionalUint64(host.memoryAvailableBytes),
    gpus: host.gpus.map((gpu) => ({
      index: gpu.index,
      memoryTotalBytes: optionalUint64(gpu.memoryTotalBytes),
      memoryUsedBytes: optionalUint64(gpu.memoryUsedBytes),
      utilisation: gpu.utilisation,
      temperatureCelsius: gpu.temperatureCelsius,
      powerWatts: gpu.powerWatts,
    })),
  };
}

/** The wire knows whole numbers only; times have fractions, and those of a clock that was set may be negative. */
function uint32(value: number): number {
  return Math.min(0xffff_ffff, Math.max(0, Math.round(value)));
}

function optionalUint32(value: number | undefined): number | undefined {
  return value === undefined ? undefined : uint32(value);
}

function optionalUint64(value: number | undefined): bigint | undefined {
  return value === undefined ? undefined : BigInt(Math.max(0, Math.round(value)));
}

const sources = { engine: UsageSource.ENGINE, counted: UsageSource.COUNTED } as const;
const outcomes = {
  finished: RequestOutcome.FINISHED,
  "client-ended": RequestOutcome.CLIENT_ENDED,
  "limit-ended": RequestOutcome.LIMIT_ENDED,
  broken: RequestOutcome.BROKEN,
  void: RequestOutcome.VOID,
} as const;

function encodeRecord({
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

function decodeAttempt({ requestId, attempt }: { requestId: string; attempt: number }): Attempt {
  return { requestId: asId(requestId), attempt };
}

function decodeDesired(wire: { generation: bigint; maintenance: boolean; prewarmModels: readonly string[] }) {
  return { ...wire, prewarmModels: wire.prewarmModels.map((model) => asId<ModelId>(model)) };
}

function decodeAllRules(wires: readonly WireRules[]) {
  const rules: ModelRules[] = [];
  const unreadable: UnreadableRules[] = [];
  for (const wire of wires) {
    const read = decodeRules(wire);
    if (typeof read === "string") unreadable.push({ model: wire.id, reason: read });
    else rules.push(read);
  }
  return { rules, unreadable };
}

const categories: Readonly<Record<number, ModelRules["category"]>> = {
  [ModelCategory.LANGUAGE]: "language",
  [ModelCategory.CODING]: "coding",
  [ModelCategory.EMBEDDINGS]: "embeddings",
};
const reasoningModes: Readonly<Record<number, ModelRules["reasoning"]["mode"]>> = {
  [ReasoningMode.UNAVAILABLE]: "unavailable",
  [ReasoningMode.OPTIONAL]: "optional",
  [ReasoningMode.DEFAULT_ON]: "default-on",
};

/** The rules, or why they cannot be applied. */
function decodeRules({
  id,
  category: wireCategory,
  contextTokens,
  reasoning,
  ...wire
}: WireRules): ModelRules | string {
  const category = categories[wireCategory];
  const mode = reasoning && reasoningModes[reasoning.mode];
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
      ...(reasoning.defaultEffort === undefined ? {} : { default: reasoning.defaultEffort }),
      templateKwargsAccepted: reasoning.templateKwargsAccepted,
    },
    toolsEnforced: wire.toolsEnforced,
    ...(wire.images ? { images: wire.images } : {}),
    ...(wire.embeddings ? { embeddings: decodeEmbeddings(wire.embeddings) } : {}),
  };
}

function decodeEmbeddings(wire: NonNullable<WireRules["embeddings"]>): NonNullable<ModelRules["embeddings"]> {
  const { dimensionsMin: min, dimensionsMax: max, dimensionsDefault, inputTokens } = wire;
  const { instructionDefault, instructionTemplate: template } = wire;
  const withDefault = instructionDefault === undefined ? {} : { default: instructionDefault };
  return {
    dimensions: { min, max, default: dimensionsDefault },
    inputTokens,
    ...(template === undefined ? {} : { instruction: { ...withDefault, template } }),
  };
}
