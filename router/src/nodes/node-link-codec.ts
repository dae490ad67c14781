/**
 * The border of the router's end of the gRPC link: the only file that knows the generated types. What an agent says is
 * checked here; inside, every enum is known and every name and number plausible.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { ServerDuplexStream } from "@grpc/grpc-js";
import {
  ModelCategory,
  NodeControlServiceService,
  ReasoningMode,
  RequestOutcome,
  SlotState,
  UsageSource,
  type GpuLoad,
  type Hello,
  type HostLoad,
  type LinkRequest,
  type LinkResponse,
  type LoadReport,
  type ModelRules as WireRules,
  type SlotLoad,
  type UsageRecord as WireRecord,
} from "@weiche/proto/weiche/node/v1/node_control.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, isUuidv7, namePattern } from "@weiche/shared/ids.ts";
import type { Attempt, UsageRecord } from "@weiche/shared/usage-record.ts";
import type { UnreadableRecord } from "../usage/usage-refused.ts";
import type { DesiredState } from "./desired-state.ts";
import type { SlotKind } from "./node-view.ts";
import type { GpuReport, HostReport, NodeHello, NodeReport, SlotReport } from "./registry.ts";

export const linkService = NodeControlServiceService;
export const linkServiceName = "weiche.node.v1.NodeControlService";
export type LinkCall = ServerDuplexStream<LinkRequest, LinkResponse>;

/** What an agent says. */
export type Uplink =
  | { readonly kind: "hello"; readonly hello: NodeHello }
  | { readonly kind: "report"; readonly report: NodeReport; readonly unreadableSlots: number }
  | {
      readonly kind: "usage";
      readonly batchId: bigint;
      readonly records: readonly UsageRecord[];
      readonly rejected: readonly UnreadableRecord[];
    }
  | { readonly kind: "invalid"; readonly reason: string };

/** What the router says. */
export type Downlink =
  | {
      readonly kind: "welcome";
      readonly routerId: string;
      readonly dataAddress: string;
      readonly rules: readonly ModelRules[];
      readonly desired: DesiredState | undefined;
    }
  | { readonly kind: "ack"; readonly batchId: bigint }
  | { readonly kind: "rules"; readonly rules: readonly ModelRules[] }
  | { readonly kind: "desired"; readonly desired: DesiredState }
  | { readonly kind: "settled"; readonly attempts: readonly Attempt[] }
  | { readonly kind: "goodbye" }
  | { readonly kind: "heartbeat" };

/** Buf's own description of the service, for reflection: a `FileDescriptorSet`. */
export function readLinkDescriptors(): Buffer {
  return readFileSync(fileURLToPath(import.meta.resolve("@weiche/proto/descriptors.binpb")));
}

export function decodeUplink({ message }: LinkRequest): Uplink {
  switch (message?.$case) {
    case "hello":
      return decodeHello(message.value);
    case "loadReport":
      return decodeReport(message.value);
    case "usageBatch":
      return { kind: "usage", batchId: message.value.batchId, ...decodeRecords(message.value.records) };
    case undefined:
      return { kind: "invalid", reason: "the message says nothing" };
  }
}

export function encodeDownlink(message: Downlink): LinkResponse {
  return { message: toWire(message) };
}

/** Models are the operator's to name; anything printable. */
const modelPattern = /^[\x21-\x7e]{1,200}$/;
const idPattern = /^[\x21-\x7e]{1,64}$/;
const countMax = 1_000;

function decodeHello(hello: Hello): Uplink {
  if (!namePattern.test(hello.node)) return { kind: "invalid", reason: "hello.node is not the name of a node" };
  if (!isUuidv7(hello.bootId)) return { kind: "invalid", reason: "hello.boot_id is not a UUIDv7" };
  const slotsGood =
    hello.slots.length <= countMax &&
    hello.slots.every(
      ({ name, models }) =>
        namePattern.test(name) && models.length <= countMax && models.every((model) => modelPattern.test(model)),
    );
  if (!slotsGood) return { kind: "invalid", reason: "hello.slots has too many or malformed names" };
  return {
    kind: "hello",
    hello: {
      node: asId(hello.node),
      bootId: hello.bootId,
      agentVersion: hello.agentVersion.slice(0, 64),
      slots: hello.slots.map(({ name, models }) => ({ name: asId(name), models: models.map((model) => asId(model)) })),
    },
  };
}

/** A state that a later version may know is no reason to lose the whole node: only that slot is left out. */
function decodeReport(load: LoadReport): Uplink {
  if (load.slots.length > countMax) return { kind: "invalid", reason: "load_report.slots has too many slots" };
  const slots = load.slots.map(decodeSlot).filter((slot) => slot !== undefined);
  const { maintenance, admitting } = load;
  const report = { slots, maintenance, admitting, ...(load.host ? { host: decodeHost(load.host) } : {}) };
  return { kind: "report", report, unreadableSlots: load.slots.length - slots.length };
}

const slotKinds: Readonly<Record<number, SlotKind>> = {
  [SlotState.EMPTY]: "empty",
  [SlotState.STARTING]: "starting",
  [SlotState.ACTIVE]: "active",
  [SlotState.DRAINING_OPEN]: "draining-open",
  [SlotState.DRAINING_CLOSED]: "draining-closed",
  [SlotState.STOPPING]: "stopping",
  [SlotState.FAILED]: "failed",
};

function decodeSlot(load: SlotLoad): SlotReport | undefined {
  const kind = slotKinds[load.state];
  if (!kind) return undefined;
  const waiters = load.waiters.filter(({ waiting }) => waiting > 0);
  return {
    name: asId(load.name),
    kind,
    ...(load.activeModel === undefined ? {} : { active: asId(load.activeModel) }),
    ...(load.nextModel === undefined ? {} : { next: asId(load.nextModel) }),
    running: load.running,
    runningOfRouter: load.runningOfRouter,
    waitingByModel: new Map(waiters.map(({ model, waiting }) => [asId(model), waiting])),
    oldestRunningMs: load.oldestRunningMs,
    closesInMs: load.closesInMs,
    stateAgeMs: load.stateAgeMs,
    maxConcurrent: load.maxConcurrent,
    retryInMs: load.retryInMs,
    ...(load.engine ? { engine: load.engine } : {}),
  };
}

function decodeHost(load: HostLoad): HostReport {
  return {
    cpuUse: load.cpuUse,
    memoryTotalBytes: optionalNumber(load.memoryTotalBytes),
    memoryAvailableBytes: optionalNumber(load.memoryAvailableBytes),
    gpus: load.gpus.map(decodeGpu),
  };
}

function decodeGpu(load: GpuLoad): GpuReport {
  return {
    ...load,
    memoryTotalBytes: optionalNumber(load.memoryTotalBytes),
    memoryUsedBytes: optionalNumber(load.memoryUsedBytes),
  };
}

function optionalNumber(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}

const sources: Readonly<Record<number, UsageRecord["source"]>> = {
  [UsageSource.ENGINE]: "engine",
  [UsageSource.COUNTED]: "counted",
};
const outcomes: Readonly<Record<number, UsageRecord["outcome"]>> = {
  [RequestOutcome.FINISHED]: "finished",
  [RequestOutcome.CLIENT_ENDED]: "client-ended",
  [RequestOutcome.LIMIT_ENDED]: "limit-ended",
  [RequestOutcome.BROKEN]: "broken",
  [RequestOutcome.VOID]: "void",
};
/** Far beyond any context window times 128 answers. */
const tokensMax = 1_000_000_000;
/** A factor has at most nine digits before its three places. */
const factorMax = 10n ** 12n;

function decodeRecords(wires: readonly WireRecord[]) {
  const records: UsageRecord[] = [];
  const rejected: UnreadableRecord[] = [];
  for (const wire of wires) {
    const record = decodeRecord(wire);
    if (typeof record !== "string") records.push(record);
    else {
      const numbers = { factorMillicredits: `${wire.factorMillicredits}`, tokensMax: `${wire.tokensMax}` };
      rejected.push({ reason: record, record: { ...wire, ...numbers, grant: undefined } });
    }
  }
  return { records, rejected };
}

/** The record, or what is wrong with it. */
function decodeRecord(wire: WireRecord): UsageRecord | string {
  const source = sources[wire.source];
  const outcome = outcomes[wire.outcome];
  const tokens = wire.promptTokens + wire.completionTokens;
  if (!isUuidv7(wire.requestId)) return "request_id is not a UUIDv7";
  if (wire.attempt < 1 || wire.attempt > countMax) return "attempt is out of range";
  if (![wire.accountId, wire.userId, wire.keyId].every((id) => idPattern.test(id))) return "an id is malformed";
  if (!modelPattern.test(wire.model)) return "model is malformed";
  if (wire.factorMillicredits > factorMax) return "factor is out of range";
  if (Math.max(tokens, wire.reasoningTokens ?? 0, wire.cachedTokens ?? 0) > tokensMax) return "tokens are out of range";
  if (!source) return `source ${wire.source} is unknown`;
  if (!outcome) return `outcome ${wire.outcome} is unknown`;
  if ((outcome === "broken" || outcome === "void") && tokens > 0) return `what is ${outcome} has tokens`;
  return {
    requestId: asId(wire.requestId),
    attempt: wire.attempt,
    accountId: asId(wire.accountId),
    userId: asId(wire.userId),
    keyId: asId(wire.keyId),
    model: asId(wire.model),
    factor: millicredits(wire.factorMillicredits),
    tokensMax: Number(wire.tokensMax),
    grant: wire.grant.toString("base64url"),
    promptTokens: wire.promptTokens,
    completionTokens: wire.completionTokens,
    ...(wire.reasoningTokens === undefined ? {} : { reasoningTokens: wire.reasoningTokens }),
    ...(wire.cachedTokens === undefined ? {} : { cachedTokens: wire.cachedTokens }),
    source,
    outcome,
    durationMs: wire.durationMs,
    ...(wire.firstTokenMs === undefined ? {} : { firstTokenMs: wire.firstTokenMs }),
  };
}

function toWire(message: Downlink): LinkResponse["message"] {
  switch (message.kind) {
    case "welcome": {
      const { routerId, dataAddress, rules, desired } = message;
      return {
        $case: "welcome",
        value: { routerId, dataAddress, models: rules.map(encodeRules), desiredState: desired },
      };
    }
    case "ack":
      return { $case: "usageAck", value: { batchId: message.batchId } };
    case "rules":
      return { $case: "modelRulesChanged", value: { models: message.rules.map(encodeRules) } };
    case "desired":
      return { $case: "desiredState", value: message.desired };
    case "settled":
      return { $case: "settled", value: { attempts: message.attempts } };
    case "goodbye":
      return { $case: "goodbye", value: {} };
    case "heartbeat":
      return { $case: "heartbeat", value: {} };
  }
}

const categories = {
  language: ModelCategory.LANGUAGE,
  coding: ModelCategory.CODING,
  embeddings: ModelCategory.EMBEDDINGS,
} as const;
const reasoningModes = {
  unavailable: ReasoningMode.UNAVAILABLE,
  optional: ReasoningMode.OPTIONAL,
  "default-on": ReasoningMode.DEFAULT_ON,
} as const;

function encodeRules(rules: ModelRules): WireRules {
  const { embeddings } = rules;
  return {
    id: rules.id,
    category: categories[rules.category],
    contextTokens: rules.contextTokens,
    reasoning: {
      mode: reasoningModes[rules.reasoning.mode],
      efforts: rules.reasoning.efforts,
      defaultEffort: rules.reasoning.default,
      templateKwargsAccepted: rules.reasoning.templateKwargsAccepted,
    },
    toolsEnforced: rules.toolsEnforced,
    images: rules.images,
    embeddings: embeddings && {
      dimensionsMin: embeddings.dimensions.min,
      dimensionsMax: embeddings.dimensions.max,
      dimensionsDefault: embeddings.dimensions.default,
      inputTokens: embeddings.inputTokens,
      instructionDefault: embeddings.instruction?.default,
      instructionTemplate: embeddings.instruction?.template,
    },
  };
}
