/**
 * Checks the messages of agents on the gRPC link. After this check, every enum value is known, and every name and
 * number is plausible. Also translates usage records and model rules between the protocol's types and ours.
 */
import type { ServerDuplexStream } from "@grpc/grpc-js";
import {
  NodeControlServiceService,
  type EngineFailure,
  type Hello,
  type LinkRequest,
  type LinkResponse,
  type LoadReport,
  type ModelRules as WireRules,
  type PastSwitch,
  type SlotLoad,
  type UsageRecord as WireRecord,
} from "@weiche/proto/weiche/node/v1/node_control.ts";
import { categories, engineFailureKinds, outcomes, reasoningModes, sources, wordOf } from "@weiche/proto/words.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { isUuidv7, namePattern } from "@weiche/shared/ids.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { cutMachine } from "@weiche/shared/wire/cut-machine.ts";
import { linkRequestBounds } from "@weiche/shared/wire/link-bounds.ts";
import { boundedDecoder, type Received } from "@weiche/shared/wire/message-bounds.ts";
import type { UnreadableRecord } from "../usage/records-set-aside.ts";
import { stateWords, type NodeHello, type NodeReport, type SlotReport } from "./node-view.ts";

const { link } = NodeControlServiceService;
export const linkService = {
  link: {
    ...link,
    requestDeserialize: boundedDecoder(link.requestDeserialize, linkRequestBounds),
    responseSerialize: encodingNewsOnce(link.responseSerialize),
  },
};
export type LinkCall = ServerDuplexStream<Received<LinkRequest>, LinkResponse>;

/** A message of an agent. Undefined if only a later version knows its kind. */
export type Uplink = LinkRequest["message"];
export type Downlink = NonNullable<LinkResponse["message"]>;

/** A message to a thousand nodes is the same object each time, so that the router encodes it once. */
export function encodingNewsOnce(encode: (response: LinkResponse) => Buffer): (response: LinkResponse) => Buffer {
  let last: { readonly message: Downlink; readonly bytes: Buffer } | undefined;
  return (response) => {
    const { message } = response;
    if (!message) return encode(response);
    if (last?.message !== message) last = { message, bytes: encode(response) };
    return last.bytes;
  };
}

/** Operators choose the names of models. Any printable ASCII is allowed. */
const modelPattern = /^[\x21-\x7e]{1,200}$/;
const idPattern = /^[\x21-\x7e]{1,64}$/;
/** The largest attempt number of a request. */
const attemptMax = 1_000;

/** Returns the hello, or a description of its mistake. */
export function readHello(hello: Hello): NodeHello | string {
  if (!namePattern.test(hello.node)) return "hello.node is not the name of a node";
  if (!isUuidv7(hello.bootId)) return "hello.boot_id is not a UUIDv7";
  const slotsGood = hello.slots.every(
    ({ name, models, engines }) =>
      namePattern.test(name) && [...models, ...engines].every((model) => modelPattern.test(model)),
  );
  if (!slotsGood) return "hello.slots has malformed names";
  const slots = hello.slots.map(({ name, models, engines }) => ({ name, models, engines: shared(models, engines) }));
  return { ...hello, slots, agentVersion: hello.agentVersion.slice(0, 64) } as unknown as NodeHello;
}

/**
 * Returns the engines that serve several models. `engines` names the engine of each model, and is empty if there is no
 * such engine.
 */
function shared(
  models: readonly string[],
  engines: readonly string[],
): readonly { models: readonly string[] }[] | undefined {
  if (engines.length !== models.length) return undefined;
  const all = Map.groupBy(models.entries(), ([index]) => engines[index]!);
  const several = all.values().map((entries) => ({ models: entries.map(([, model]) => model) }));
  return several.filter((engine) => engine.models.length > 1).toArray();
}

/** Leaves out slots whose state only a later version knows. The rest of the node stays usable. */
export function readReport(load: LoadReport): NodeReport {
  const slots = load.slots.filter(isKnown);
  return {
    ...load,
    slots: slots.map((slot) => ({
      ...slot,
      waiters: slot.waiters.filter(({ waiting }) => waiting > 0),
      history: slot.history && { switches: slot.history.switches.filter(isPlausible) },
      failures: slot.failures && { failures: slot.failures.failures.filter(isKnownFailure) },
    })),
    machine: load.machine && cutMachine(load.machine),
    machineReading: load.machineReading && cutMachine(load.machineReading),
  };
}

function isKnown(load: SlotLoad): load is SlotReport {
  return load.state in stateWords;
}

function isPlausible({ model, fromModel = model }: PastSwitch): boolean {
  return modelPattern.test(model) && modelPattern.test(fromModel);
}

/** Leaves out failures of a kind that only a later version knows. */
function isKnownFailure({ kind, model }: EngineFailure): boolean {
  const kinds: readonly string[] = engineFailureKinds;
  return kinds.includes(kind) && (model === undefined || modelPattern.test(model));
}

/** Far more than any context window times 128 answers. */
const tokensMax = 1_000_000_000;
/** A factor has at most nine digits before its three decimal places. */
const factorMax = 10n ** 12n;

export function readRecords(wires: readonly WireRecord[]) {
  const records: UsageRecord[] = [];
  const rejected: UnreadableRecord[] = [];
  for (const wire of wires) {
    const record = readRecord(wire);
    if (typeof record !== "string") records.push(record);
    else {
      const numbers = { factorMillicredits: `${wire.factorMillicredits}`, tokensMax: `${wire.tokensMax}` };
      rejected.push({ reason: record, record: { ...wire, ...numbers, grant: undefined } });
    }
  }
  return { records, rejected };
}

/** Returns the record, or a description of its mistake. */
function readRecord(wire: WireRecord): UsageRecord | string {
  const source = wordOf(sources, wire.source);
  const outcome = wordOf(outcomes, wire.outcome);
  const tokens = wire.promptTokens + wire.completionTokens;
  if (!isUuidv7(wire.requestId)) return "request_id is not a UUIDv7";
  if (wire.attempt < 1 || wire.attempt > attemptMax) return "attempt is out of range";
  if (![wire.accountId, wire.userId, wire.keyId].every((id) => idPattern.test(id))) return "an id is malformed";
  if (!modelPattern.test(wire.model)) return "model is malformed";
  if (wire.factorMillicredits > factorMax) return "factor is out of range";
  if (Math.max(tokens, wire.reasoningTokens ?? 0, wire.cachedTokens ?? 0) > tokensMax) return "tokens are out of range";
  if (!source) return `source ${wire.source} is unknown`;
  if (!outcome) return `outcome ${wire.outcome} is unknown`;
  if ((outcome === "broken" || outcome === "void") && tokens > 0) return `a record that is ${outcome} has tokens`;
  const { factorMillicredits, grant, ...same } = wire;
  const translated = { factor: millicredits(factorMillicredits), grant: grant.toString("base64url"), source, outcome };
  return { ...same, ...translated, tokensMax: Number(wire.tokensMax) } as UsageRecord;
}

export function encodeRules(rules: ModelRules): WireRules {
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
    tokensPerByte: rules.tokensPerByte,
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
