/** Nodes and models as operators see them: plain data for `weiche nodes` and `weiche models`. */
import { factorAt, type Catalogue } from "@weiche/shared/catalogue.ts";
import { formatCredits } from "@weiche/shared/credits.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import type { NodeDetail } from "../../nodes/registry.ts";
import type { SlotView } from "../../nodes/node-view.ts";

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
    slots: view.slots.map((slot) => slotForOperators(slot, nowMs - view.reportedAtMs)),
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

function slotForOperators(slot: SlotView, reportAgeMs: number) {
  const { name, kind, active, next, running, waiting, models, waitingByModel, closesInMs, retryInMs, oldestRunningMs } =
    slot;
  return {
    name,
    state: kind,
    ...(active && kind !== "failed" ? { active } : {}),
    // Of a failed slot the node names the model that failed: none is active.
    ...(active && kind === "failed" ? { failed: active } : {}),
    ...(next ? { next } : {}),
    running,
    waiting,
    waitingByModel: Object.fromEntries(waitingByModel),
    models,
    ...seconds("oldestRunningSeconds", oldestRunningMs),
    ...seconds("closesInSeconds", closesInMs),
    ...seconds("retryInSeconds", retryInMs && Math.max(0, retryInMs - reportAgeMs)),
  };
}

function seconds<Name extends string>(name: Name, ms: number | undefined): { readonly [N in Name]?: number } {
  return ms === undefined ? {} : ({ [name]: Math.round(ms / 100) / 10 } as { [N in Name]: number });
}

function isActive(slots: readonly SlotView[], model: ModelId): boolean {
  return slots.some((slot) => slot.active === model && (slot.kind === "active" || slot.kind === "draining-open"));
}
