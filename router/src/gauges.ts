/** Sets the gauges to the present state at each scrape. */
import { publishCertificates, type CertificatesInUse } from "@weiche/shared/program/certificate-expiry.ts";
import type { LiveCatalogue } from "./config/live-catalogue.ts";
import type { Database } from "./db/database.ts";
import type { OpenKeyCache } from "./callers/key-cache.ts";
import { cataloguesOf, routerStates, type KnownRouter } from "./db/live-routers.ts";
import type { LimitStoreView } from "./limits/limit-store.ts";
import type { Mail } from "./mail/mail.ts";
import type { Metrics } from "./metrics.ts";
import { nodeState, nodeStates } from "./nodes/node-state.ts";
import type { NodeDetail } from "./nodes/registry.ts";
import { shareAt } from "./nodes/outcomes/standing.ts";

export interface GaugedParts {
  readonly nodes: { readonly details: () => readonly NodeDetail[]; readonly nowMs: () => number };
  readonly database: Pick<Database, "poolUses">;
  readonly keys: Pick<OpenKeyCache, "ageMs">;
  readonly catalogue: Pick<LiveCatalogue, "readAtMs" | "isNewest">;
  readonly certificates: CertificatesInUse<"api" | "nodes" | "ops">;
  readonly routers: { readonly all: () => readonly KnownRouter[]; readonly own: string };
  /** Undefined if no mail server is configured. */
  readonly mail: Pick<Mail, "pending"> | undefined;
  /** If undefined, each router counts the limits of accounts alone. */
  readonly limitStore: LimitStoreView | undefined;
}

export function publishGauges(metrics: Metrics, parts: GaugedParts): void {
  const { nodes, database, keys, catalogue, certificates, mail, routers, limitStore } = parts;
  publishRouters(metrics, routers);
  publishNodes(metrics, nodes.details(), nodes.nowMs());
  for (const { pool, used, idle, max, waiting } of database.poolUses()) {
    metrics.databaseConnections.set({ pool, state: "used" }, used);
    metrics.databaseConnections.set({ pool, state: "idle" }, idle);
    metrics.databaseConnectionsMax.set({ pool }, max);
    metrics.databaseWaiting.set({ pool }, waiting);
  }
  metrics.keyCacheAge.set(keys.ageMs / 1000);
  metrics.catalogueReloaded.set(catalogue.isNewest ? 1 : 0);
  metrics.catalogueReadAt.set(catalogue.readAtMs / 1000);
  publishCertificates(metrics.certificateExpiry, certificates);
  if (mail) metrics.mailsPending.set(mail.pending);
  else metrics.mailsPending.remove();
  if (limitStore) metrics.limitStoreUp.set(limitStore.down() ? 0 : 1);
  else metrics.limitStoreUp.remove();
}

function publishRouters(metrics: Metrics, { all, own }: GaugedParts["routers"]): void {
  const known = all();
  for (const each of routerStates)
    metrics.routers.set({ state: each }, known.filter(({ state }) => state === each).length);
  metrics.catalogues.set(cataloguesOf(known).length);
  metrics.clockAhead.set((known.find(({ id }) => id === own)?.clockAheadMs ?? 0) / 1_000);
}

function publishNodes(metrics: Metrics, nodes: readonly NodeDetail[], nowMs: number): void {
  const { nodeState: states, nodeLinks, nodeMaintenance, reportAge, dataConnections, troubles } = metrics;
  // Removes the series of forgotten nodes and of nodes that have not reported since their agent started.
  for (const gauge of [states, nodeLinks, nodeMaintenance, reportAge, dataConnections, troubles]) gauge.reset();
  for (const detail of nodes) {
    const { node, reportedAtMs, maintenance } = detail.view;
    nodeLinks.set({ node }, detail.linked ? 1 : 0);
    nodeMaintenance.set({ node }, maintenance ? 1 : 0);
    dataConnections.set({ node }, detail.dataConnections);
    const is = nodeState(detail);
    for (const state of nodeStates) states.set({ node, state }, state === is ? 1 : 0);
    for (const { name: slot, troubles: ofSlot } of detail.view.slots)
      for (const [model, trouble] of ofSlot ?? [])
        troubles.set({ node, slot, model, kind: trouble.kind }, shareAt(trouble, nowMs));
    if (Number.isFinite(reportedAtMs)) reportAge.set({ node }, (nowMs - reportedAtMs) / 1000);
  }
}
