/** Nodes and models as operators see them: plain data for `weiche nodes` and `weiche models`. */
import { factorAt, type Catalogue } from "@weiche/shared/catalogue.ts";
import { formatCredits } from "@weiche/shared/credits.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import type { NodeDetail } from "../nodes/registry.ts";
import type { SlotView } from "../nodes/node-view.ts";

/** `live`: may be sent requests. `silent`: linked, but no report or no data session of late. `gone`: not linked. */
export type NodeState = "live" | "maintenance" | "not-admitting" | "silent" | "gone";

export function nodesForOperators(details: readonly NodeDetail[], nowMs: number) {
  return details.map(({ view, hello, linked, dataSessions, report }) => ({
    name: view.node,
    state: nodeState(view, linked),
    agentVersion: hello.agentVersion,
    dataSessions,
    ...(Number.isFinite(view.reportedAtMs)
      ? { reportAgeSeconds: Math.round((nowMs - view.reportedAtMs) / 100) / 10 }
      : {}),
    slots: view.slots.map(slotForOperators),
    ...(report?.host ? { host: report.host } : {}),
  }));
}

export function modelsForOperators(catalogue: Catalogue, details: readonly NodeDetail[], nowMs: number) {
  return [...catalogue.values()].map((entry) => ({
    id: entry.id,
    status: entry.status,
    category: entry.category,
    contextTokens: entry.contextTokens,
    factor: formatCredits(factorAt(entry, nowMs)),
    nodes: details
      .filter(({ hello }) => hello.slots.some((slot) => slot.models.includes(entry.id)))
      .map(({ view, linked }) => ({
        name: view.node,
        state: nodeState(view, linked),
        active: isActive(view.slots, entry.id),
      })),
  }));
}

export type NodeForOperators = ReturnType<typeof nodesForOperators>[number];
export type ModelForOperators = ReturnType<typeof modelsForOperators>[number];

export function nodeState(view: NodeDetail["view"], linked: boolean): NodeState {
  if (!linked) return "gone";
  if (!view.reachable) return "silent";
  if (view.maintenance) return "maintenance";
  return view.admitting ? "live" : "not-admitting";
}

function slotForOperators(slot: SlotView) {
  const { name, kind, active, next, running, waiting, models, waitingByModel, closesInMs, retryInMs, oldestRunningMs } =
    slot;
  return {
    name,
    state: kind,
    ...(active ? { active } : {}),
    ...(next ? { next } : {}),
    running,
    waiting,
    waitingByModel: Object.fromEntries(waitingByModel),
    models,
    ...seconds({ oldestRunningSeconds: oldestRunningMs, closesInSeconds: closesInMs, retryInSeconds: retryInMs }),
  };
}

function seconds(ms: Readonly<Record<string, number | undefined>>): Record<string, number> {
  const known = Object.entries(ms).filter((entry): entry is [string, number] => entry[1] !== undefined);
  return Object.fromEntries(known.map(([name, value]) => [name, Math.round(value / 100) / 10]));
}

function isActive(slots: readonly SlotView[], model: ModelId): boolean {
  return slots.some((slot) => slot.active === model && (slot.kind === "active" || slot.kind === "draining-open"));
}
