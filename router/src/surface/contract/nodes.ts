/** Routes of nodes, slots and the catalogue, for the operator. A missing measurement is left out, not 0. */
import { Type } from "typebox";
import { count, credits, modelStatus, object, type RouteTable } from "./route.ts";

const seconds = Type.Optional(Type.Number());
const bytes = Type.Optional(Type.Number());
const share = Type.Optional(Type.Number({ description: "0 to 1." }));

const nodeState = Type.Enum(["live", "maintenance", "not-admitting", "silent", "gone"], {
  description: "`silent`: linked, but without a recent report or a data connection. `gone`: not linked.",
});

const troubles = [
  "gone",
  "silent",
  "slot-failed",
  "engine-failed",
  "failing",
  "not-admitting",
  "slow",
  "outbox-old",
  "gpu-hot",
] as const;

export const engineFailure = object({
  model: Type.Optional(Type.String({ description: "Left out if it is unknown which engine failed." })),
  kind: Type.Enum(["start", "stop", "exit", "suspected", "search"], {
    description:
      "The engine did not start or stop, ended by itself (`exit`), or is suspected to hang or fail. `search`: the search for engines of an earlier agent failed.",
  }),
  reason: Type.String(),
  lines: Type.Array(Type.String(), {
    description: "Last output lines of an engine that did not start, the oldest first.",
  }),
  seconds: Type.Number({ description: "How long ago it failed." }),
});

const slot = object({
  name: Type.String(),
  state: Type.Enum(["empty", "starting", "active", "draining-open", "draining-closed", "stopping", "failed"]),
  active: Type.Optional(Type.String()),
  activeModels: Type.Array(Type.String(), {
    description: "All models that the active engine serves at the same time, `active` among them.",
  }),
  failed: Type.Optional(Type.String({ description: "The model that failed." })),
  next: Type.Optional(Type.String()),
  running: count,
  waiting: count,
  inFlight: Type.Integer({ minimum: 0, description: "This router's requests whose answers have not ended." }),
  waitingByModel: Type.Record(Type.String(), count),
  estimates: Type.Array(object({ model: Type.String(), nextSeconds: Type.Number(), lastSeconds: Type.Number() }), {
    description: "In how long the next waiter of each model is served, and the last, as the node estimates.",
  }),
  models: Type.Array(Type.String()),
  oldestRunningSeconds: seconds,
  closesInSeconds: seconds,
  retryInSeconds: seconds,
  oldestWaitingSeconds: seconds,
  troubles: Type.Array(
    object({
      model: Type.String(),
      kind: Type.Enum(["failing", "slow"]),
      share: Type.Number({ description: "Share of bad outcomes among recent requests, 0 to 1." }),
      seconds: Type.Number({ description: "How long this router has avoided the slot for this model." }),
    }),
    { description: "Models whose requests from this router fail or are slow in this slot." },
  ),
  failures: Type.Array(engineFailure, {
    description:
      "The last failure of each model, the oldest first, until it is acknowledged or its engine has run well for ten minutes.",
  }),
  stateSeconds: Type.Number({ description: "How long the slot has been in this state." }),
  switching: Type.Optional(
    object(
      {
        seconds: Type.Number(),
        phase: Type.Optional(Type.Enum(["drain", "stop", "memory", "start", "probe"])),
        usualSeconds: seconds,
      },
      { description: "A start or stop in progress, and the usual duration of a switch to the next model." },
    ),
  ),
});

const host = object({
  cpuUse: share,
  memoryTotalBytes: bytes,
  memoryAvailableBytes: bytes,
  gpus: Type.Array(
    object({
      index: count,
      memoryTotalBytes: bytes,
      memoryUsedBytes: bytes,
      utilisation: share,
      temperatureCelsius: Type.Optional(Type.Number()),
      powerWatts: Type.Optional(Type.Number()),
    }),
  ),
});

const word = Type.Optional(Type.String());
const number = Type.Optional(Type.Number());

const machine = object({
  manufacturer: word,
  model: word,
  hypervisor: word,
  processor: word,
  processorSockets: number,
  processorCores: number,
  processorThreads: number,
  operatingSystem: word,
  kernel: word,
  memoryModules: Type.Array(object({ sizeBytes: Type.Number(), type: word, megatransfers: number })),
  disks: Type.Array(object({ name: Type.String(), sizeBytes: bytes, kind: word, model: word })),
  networkInterfaces: Type.Array(
    object({ name: Type.String(), up: Type.Boolean(), bitsPerSecond: number, mtu: number }),
  ),
  gpus: Type.Array(
    object({
      busAddress: Type.String(),
      index: Type.Optional(count),
      vendor: word,
      name: word,
      driver: word,
      memoryTotalBytes: bytes,
    }),
  ),
});

const reading = object({
  loadAverage1: number,
  loadAverage5: number,
  loadAverage15: number,
  swapTotalBytes: bytes,
  swapUsedBytes: bytes,
  fileSystems: Type.Array(
    object({
      mount: Type.String(),
      holds: Type.Array(Type.String()),
      sizeBytes: Type.Number(),
      availableBytes: Type.Number(),
      inodes: number,
      inodesFree: number,
    }),
  ),
  diskReadBytesPerSecond: number,
  diskWrittenBytesPerSecond: number,
  networkReceivedBytesPerSecond: number,
  networkSentBytesPerSecond: number,
  temperatures: Type.Array(object({ part: Type.String(), celsius: Type.Number() })),
  cpuFrequencyLimitHertz: number,
  cpuFrequencyMaxHertz: number,
});

export const nodeFields = {
  name: Type.String(),
  state: nodeState,
  maintenanceReported: Type.Boolean({ description: "Whether the node has confirmed its maintenance." }),
  agentVersion: Type.String(),
  dataSessions: count,
  linkAgeSeconds: seconds,
  reportAgeSeconds: seconds,
  outbox: Type.Optional(
    object(
      { records: count, oldestSeconds: seconds },
      { description: "Usage records that no router has acknowledged." },
    ),
  ),
  troubles: Type.Array(Type.Enum(troubles), { description: "The node's problems, the worst first." }),
  slots: Type.Array(slot),
  host: Type.Optional(host),
};

export const nodesContract = {
  listNodes: {
    summary: "List nodes with their slots and active models",
    may: ["operator"],
    reply: Type.Array(object(nodeFields)),
  },
  showNode: {
    summary: "Show a node's slots, hardware and load",
    may: ["operator"],
    params: object({ id: Type.String({ minLength: 1, maxLength: 200 }) }),
    reply: object({ ...nodeFields, machine: Type.Optional(machine), reading: Type.Optional(reading) }),
  },
  setMaintenance: {
    summary: "Turn a node's maintenance on or off, and return its state afterwards",
    may: ["operator"],
    body: object({ node: Type.String(), on: Type.Boolean() }),
    reply: object({
      node: Type.String(),
      maintenance: Type.Boolean(),
      state: nodeState,
      heldByNode: Type.Boolean({
        description: "Whether the node stays in maintenance, because its own operator turned it on there.",
      }),
    }),
  },
  acknowledgeFailures: {
    summary: "Acknowledge the known failures of a node's engines, so that they are no longer shown",
    may: ["operator"],
    body: object({ node: Type.String() }),
    reply: object({ node: Type.String(), acknowledged: count }),
  },
  prewarm: {
    summary:
      "Activate a model as soon as no request for another model is in its way, on the given node or one that the router chooses",
    may: ["operator"],
    body: object({ model: Type.String(), node: Type.Optional(Type.String()) }),
    reply: object({
      model: Type.String(),
      node: Type.String(),
      slot: Type.Optional(Type.String()),
      state: Type.Enum(["active", "asked"]),
    }),
  },
  listCatalogue: {
    summary: "List the catalogue's models and the nodes that offer them",
    may: ["operator"],
    reply: Type.Array(
      object({
        id: Type.String(),
        status: modelStatus,
        category: Type.Enum(["language", "coding", "embeddings"]),
        contextTokens: count,
        factor: credits,
        nodes: Type.Array(
          object({
            name: Type.String(),
            state: nodeState,
            active: Type.Boolean(),
            failure: Type.Optional(engineFailure),
          }),
        ),
      }),
    ),
  },
  reloadCatalogue: {
    summary: "Load the changed catalogue file. If it has mistakes, the current catalogue stays",
    may: ["operator"],
    reply: object({ models: count }),
  },
} as const satisfies RouteTable;
