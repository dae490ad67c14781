/** Handlers of nodes and the catalogue. */
import { factorAt } from "@weiche/shared/catalogue.ts";
import { formatCredits } from "@weiche/shared/credits.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { sleep } from "@weiche/shared/time/clock.ts";
import { asId, type ModelId, type NodeId } from "@weiche/shared/ids.ts";
import { RequestError } from "../../rights/request-error.ts";
import { serves } from "../../nodes/model-state.ts";
import { nodeState } from "../../nodes/node-state.ts";
import {
  isServedBy,
  servedWith,
  SlotState,
  stateWords,
  type EngineFailure,
  type SlotView,
} from "../../nodes/node-view.ts";
import type { NodeDetail } from "../../nodes/registry.ts";
import type { nodesContract } from "../contract/nodes.ts";
import type { Reply } from "../contract/route.ts";
import type { Handlers } from "../server/add-routes.ts";
import { noSuch } from "../server/error-answers.ts";
import type { Fleet, HandlerDeps } from "./handler-deps.ts";
import { numbers, viewMachine } from "./node-machine.ts";

type Node = Reply<typeof nodesContract.listNodes>[number];

/** How long to wait until the node reports the change. */
const agreedMsMax = 1_500;
const lookEveryMs = 20;

export function nodesHandlers(deps: HandlerDeps): Handlers<typeof nodesContract> {
  const { fleet, clock, catalogue, reloadCatalogue } = deps;
  const { details, nowMs } = fleet;
  return {
    listNodes: () => details().map((detail) => viewNode(detail, nowMs())),
    showNode: ({ params: { id } }) => {
      const detail = requireNode(nodeMeant(id, fleet), details());
      return { ...viewNode(detail, nowMs()), ...viewMachine(detail.report) };
    },

    setMaintenance: ({ body: { node, on } }) => setMaintenance(nodeMeant(node, fleet), on, deps),

    async acknowledgeFailures({ body: { node: named } }) {
      const { view, failures } = requireNode(nodeMeant(named, fleet), details());
      const numbers = [...failures.values()].flat().map(({ number }) => number);
      const last = numbers.reduce((most, one) => (one > most ? one : most), 0n);
      if (numbers.length > 0) await fleet.wishes.acknowledge(view.node, last);
      return { node: view.node, acknowledged: numbers.length };
    },

    async prewarm({ body: { model: name, node } }) {
      requireKnown("model", name, [...catalogue().keys()]);
      const model = asId<ModelId>(name);
      const detail = node === undefined ? chooseNode(model, fleet) : findNode(nodeMeant(node, fleet), model, fleet);
      return prewarmOn(detail, model, fleet);
    },

    listCatalogue: () =>
      Array.from(catalogue().values(), (entry) => ({
        id: entry.id,
        status: entry.status,
        category: entry.category,
        contextTokens: entry.contextTokens,
        factor: formatCredits(factorAt(entry, clock.now())),
        nodes: details()
          .filter((detail) => hasModel(detail, entry.id))
          .map((detail) => ({
            name: detail.view.node,
            state: nodeState(detail),
            active: detail.view.slots.some((slot) => serves(slot, entry.id)),
            failure: failuresOf(detail, entry.id, nowMs()).at(-1)?.failure,
          })),
      })),

    async reloadCatalogue() {
      try {
        await reloadCatalogue();
      } catch (error) {
        throw error instanceof StartError ? new RequestError("conflict", error.message) : error;
      }
      return { models: catalogue().size };
    },
  };
}

export function viewNode(detail: NodeDetail, nowMs: number): Node {
  const { view, hello, dataConnections, report, linkedAtMs } = detail;
  const { outbox } = report ?? {};
  const reportAgeMs = nowMs - view.reportedAtMs;
  return {
    name: view.node,
    state: nodeState(detail),
    maintenanceReported: report?.maintenance ?? false,
    agentVersion: hello.agentVersion,
    dataSessions: dataConnections,
    reportAgeSeconds: Number.isFinite(reportAgeMs) ? seconds(reportAgeMs) : undefined,
    linkAgeSeconds: linkedAtMs === undefined ? undefined : seconds(nowMs - linkedAtMs),
    outbox: outbox && { records: Number(outbox.records), oldestSeconds: seconds(outbox.oldestMs) },
    troubles: troublesOf(detail),
    slots: view.slots.map((slot) => ({
      ...viewSlot(slot, reportAgeMs, nowMs),
      failures: (detail.failures.get(slot.name) ?? []).map((failure) => viewFailure(failure, nowMs)),
    })),
    host: report?.host && numbers(report.host),
  };
}

type Slot = Node["slots"][number];

function viewSlot(slot: SlotView, reportAgeMs: number, nowMs: number): Omit<Slot, "failures"> {
  const { name, activeModel, nextModel, running, waiting, inFlight, unread, waiters, models } = slot;
  // In a failed slot, `activeModel` is the model that failed.
  const hasFailed = slot.state === SlotState.FAILED;
  return {
    name,
    state: stateWords[slot.state],
    active: hasFailed ? undefined : activeModel,
    activeModels: hasFailed || activeModel === undefined ? [] : servedWith(slot, activeModel),
    failed: hasFailed ? activeModel : undefined,
    next: nextModel,
    running,
    waiting,
    inFlight: inFlight + unread,
    waitingByModel: Object.fromEntries(waiters.map((each) => [each.model, each.waiting])),
    estimates: estimatesOf(slot, reportAgeMs),
    models,
    oldestRunningSeconds: seconds(slot.oldestRunningMs),
    closesInSeconds: seconds(slot.closesInMs),
    retryInSeconds: seconds(slot.retryInMs && Math.max(0, slot.retryInMs - reportAgeMs)),
    oldestWaitingSeconds: seconds(slot.oldestWaitingMs),
    troubles: Array.from(slot.troubles ?? [], ([model, { kind, share, sinceMs }]) => {
      return { model, kind, share: Math.round(share * 100) / 100, seconds: seconds(nowMs - sinceMs)! };
    }),
    stateSeconds: seconds(slot.stateAgeMs)!,
    switching: viewSwitching(slot.switching),
  };
}

function viewFailure({ model, kind, reason, lines, atMs }: EngineFailure, nowMs: number): Slot["failures"][number] {
  return { model, kind, reason, lines, seconds: seconds(nowMs - atMs)! };
}

/** Returns the failures of the model's engines on the node, the oldest first. */
export function failuresOf({ view, failures }: NodeDetail, model: ModelId, nowMs: number) {
  const ofModel = view.slots.flatMap((slot) =>
    (failures.get(slot.name) ?? [])
      .filter((failure) => isServedBy(slot, failure.model, model))
      .map((failure) => ({ slot: slot.name, failure: viewFailure(failure, nowMs) })),
  );
  return ofModel.toSorted((a, b) => b.failure.seconds - a.failure.seconds);
}

/** Returns the estimated waits, reduced by the report's age. */
function estimatesOf({ waiters }: SlotView, reportAgeMs: number): Slot["estimates"] {
  const left = (ms: number) => seconds(Math.max(0, ms - reportAgeMs))!;
  return waiters.flatMap(({ model, nextServedMs: next, lastServedMs: last }) =>
    next === undefined || last === undefined ? [] : [{ model, nextSeconds: left(next), lastSeconds: left(last) }],
  );
}

const phases = ["drain", "stop", "memory", "start", "probe"] as const;

function viewSwitching(switching: SlotView["switching"]): Slot["switching"] {
  if (!switching) return undefined;
  const { ageMs, phase, usualMs } = switching;
  return { seconds: seconds(ageMs)!, phase: phases.find((one) => one === phase), usualSeconds: seconds(usualMs) };
}

/** The thresholds of the alerts WeicheOutboxOld and WeicheGpuHot. */
const outboxOldMs = 300_000;
const gpuHotCelsius = 85;

function troublesOf(detail: NodeDetail): Node["troubles"] {
  const { report, view } = detail;
  const state = nodeState(detail);
  const found = new Set(
    view.slots.flatMap(({ troubles = new Map() }) => [...troubles.values()].map(({ kind }) => kind)),
  );
  const kinds = (["failing", "slow"] as const).filter((kind) => found.has(kind));
  const isHot = (gpu: { readonly temperatureCelsius?: number }) => (gpu.temperatureCelsius ?? 0) > gpuHotCelsius;
  return [
    ...(state === "gone" || state === "silent" || state === "not-admitting" ? [state] : []),
    ...(view.slots.some((slot) => slot.state === SlotState.FAILED) ? (["slot-failed"] as const) : []),
    ...([...detail.failures.values()].flat().length > 0 ? (["engine-failed"] as const) : []),
    ...kinds,
    ...((report?.outbox?.oldestMs ?? 0) > outboxOldMs ? (["outbox-old"] as const) : []),
    ...(report?.host?.gpus.some(isHot) ? (["gpu-hot"] as const) : []),
  ];
}

export function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms / 100) / 10;
}

function hasModel({ hello }: NodeDetail, model: ModelId): boolean {
  return hello.slots.some(({ models }) => models.includes(model));
}

/** Returns the node's state afterwards. The node stays in maintenance if its agent's own maintenance is on. */
async function setMaintenance(node: NodeId, on: boolean, { fleet, clock }: HandlerDeps) {
  const { wishes, details } = fleet;
  const detail = () => details().find(({ view }) => view.node === node);
  if (!wishes.of(node)) requireNode(node, details());
  await wishes.setMaintenance(node, on);
  const untilMs = clock.monotonicMs() + agreedMsMax;
  const agrees = () => !detail()?.linked || detail()?.report?.maintenance === on;
  while (!agrees() && clock.monotonicMs() < untilMs) await sleep(clock, lookEveryMs);
  const seen = detail();
  const heldByNode = !on && seen?.linked === true && seen.report?.maintenance === true;
  return { node, maintenance: on, state: seen ? nodeState(seen) : ("gone" as const), heldByNode };
}

async function prewarmOn({ view: { node, slots } }: NodeDetail, model: ModelId, { wishes }: Fleet) {
  const active = slots.find(
    (slot) => isServedBy(slot, slot.activeModel, model) && slot.state === SlotState.ACTIVE && slot.waiting === 0,
  );
  if (active) return { model, node, slot: active.name, state: "active" } as const;
  await wishes.prewarm(node, model);
  return { model, node, state: "asked" } as const;
}

/** Chooses the node to which a request for the model would go. */
function chooseNode(model: ModelId, { details, place }: Fleet): NodeDetail {
  const placed = place({ model });
  if ("node" in placed) return details().find(({ view }) => view.node === placed.node)!;
  if (placed.refused === "maintenance") throw new RequestError("conflict", `every node of ${model} is in maintenance`);
  throw new RequestError("conflict", `no node with ${model} can be reached`);
}

function findNode(node: NodeId, model: ModelId, { details }: Fleet): NodeDetail {
  const detail = requireNode(node, details());
  if (!hasModel(detail, model)) throw new RequestError("invalid", `${node} does not have ${model}`);
  if (!detail.view.reachable) throw new RequestError("conflict", `${node} cannot be reached`);
  return detail;
}

/**
 * Finds the node with this name, or the only one whose name starts with it. Returns an unknown name unchanged, because the
 * node may be gone. Throws `RequestError` if several names start with it.
 */
export function nodeMeant(named: string, { details, wishes }: Pick<Fleet, "details" | "wishes">): NodeId {
  const whole = asId<NodeId>(named);
  const names = details().map(({ view }) => view.node);
  if (names.includes(whole) || wishes.of(whole)) return whole;
  const meant = names.filter((name) => name.startsWith(named));
  if (meant.length > 1) throw new RequestError("conflict", `several nodes are meant by ${named}: ${meant.join(", ")}`);
  return meant[0] ?? whole;
}

function requireNode(node: NodeId, nodes: readonly NodeDetail[]): NodeDetail {
  const names = nodes.map(({ view }) => view.node);
  requireKnown("node", node, names);
  return nodes[names.indexOf(node)]!;
}

function requireKnown(what: string, name: string, known: readonly string[]): void {
  if (!known.includes(name)) throw new RequestError("not_found", noSuch(what, name, known));
}
