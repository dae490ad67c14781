/** Sets the gauges, the metrics of the present state. */
import { publishCertificates, type CertificatesInUse } from "@weiche/shared/program/certificate-expiry.ts";
import type { MachineSource } from "../host/machine-telemetry.ts";
import type { Ingress } from "../exchange/ingress.ts";
import { publishHost } from "./host-metrics.ts";
import type { RouterLinks } from "../links/router-links.ts";
import { publishMachine } from "./machine-metrics.ts";
import type { Maintenance } from "../slots/maintenance.ts";
import type { Metrics } from "./metrics.ts";
import type { Outbox } from "../outbox/outbox.ts";
import { publishSlot } from "./slot-metrics.ts";
import type { Slots } from "../slots/slots.ts";
import type { MeasuredEngine, Telemetry } from "./telemetry.ts";

interface GaugedParts {
  readonly outbox: Pick<Outbox, "oldestMs" | "depth" | "admitting" | "freeBytes">;
  readonly slots: Pick<Slots, "views">;
  readonly ingress: Pick<Ingress, "unreadBytes">;
  readonly links: Pick<RouterLinks, "states">;
  readonly telemetry: Telemetry;
  readonly machine: MachineSource;
  readonly maintenance: Pick<Maintenance, "on">;
  readonly certificates: CertificatesInUse<"links" | "ops">;
}

export async function publishGauges(metrics: Metrics, parts: GaugedParts): Promise<void> {
  const { outbox, slots, ingress, links, telemetry, machine, maintenance, certificates } = parts;
  const oldestMs = await outbox.oldestMs().catch(() => undefined);
  const { routerLink, dataConnections, kvCacheUse, prefixCacheHits, sleeperMemory } = metrics;
  // Removes series of things that no longer exist or are no longer measured.
  for (const gauge of [routerLink, dataConnections, kvCacheUse, prefixCacheHits, sleeperMemory]) gauge.reset();
  for (const view of slots.views()) publishSlot(metrics, view);
  for (const { address, state, dataSessions: connections } of links.states()) {
    routerLink.set({ router: address }, state === "connecting" ? 0 : 1);
    dataConnections.set({ router: address }, connections);
  }
  publishOutbox(metrics, outbox, oldestMs);
  metrics.unreadBytes.set(ingress.unreadBytes);
  metrics.maintenance.set(maintenance.on ? 1 : 0);
  publishCertificates(metrics.certificateExpiry, certificates);
  for (const engine of telemetry.measured) publishEngine(metrics, engine);
  publishHost(metrics, telemetry.host, telemetry.gpus ?? []);
  publishMachine(metrics.machine, machine.reading);
}

function publishOutbox(metrics: Metrics, outbox: GaugedParts["outbox"], oldestMs: number | undefined): void {
  metrics.outboxRecords.set(outbox.depth);
  metrics.outboxOldest.set((oldestMs ?? 0) / 1000);
  metrics.outboxAdmitting.set(outbox.admitting ? 1 : 0);
  const { freeBytes } = outbox;
  if (freeBytes === undefined) metrics.outboxFree.remove();
  else metrics.outboxFree.set(freeBytes);
}

function publishEngine(metrics: Metrics, { slot, model, metrics: measured }: MeasuredEngine): void {
  const { kvCacheUse, prefixCacheHitRate } = measured;
  if (kvCacheUse !== undefined) metrics.kvCacheUse.set({ slot, model }, kvCacheUse);
  if (prefixCacheHitRate !== undefined) metrics.prefixCacheHits.set({ slot, model }, prefixCacheHitRate);
}
