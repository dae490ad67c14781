/** Serves the requests of routers, with the rules of models that routers send. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import { returnMemory } from "@weiche/shared/program/memory-return.ts";
import type { Core } from "./core.ts";
import { dialects } from "./engines/dialects/all.ts";
import type { EngineLife } from "./engines/engine-life.ts";
import { EngineWindows } from "./engines/engine-windows.ts";
import { Ingress } from "./exchange/ingress.ts";
import { createIngressEvents } from "./metrics/link-events.ts";
import type { OpenedUsage } from "./open-usage.ts";
import type { OpenedSlots } from "./open-slots.ts";

export type OpenedRequests = ReturnType<typeof openRequests>;

export function openRequests(
  { config, clock, log, metrics, models, opened }: Core,
  { outbox, unsettled }: OpenedUsage,
  { slots, events }: OpenedSlots,
  life: EngineLife,
) {
  let rules: ReadonlyMap<ModelId, ModelRules> = new Map();
  const windows = new EngineWindows(events);
  const compareWindows = () => windows.compare(slots.awake(), rules);
  slots.onMove(compareWindows);
  const ingress = opened.use(
    new Ingress({
      ...{ outbox, unsettled, dialects, clock, life },
      admissions: slots,
      rules: (model) => rules.get(model),
      requestMsMax: config.requestMsMax,
      events: createIngressEvents(log, metrics, models),
    }),
  );
  opened.use(returnMemory(clock, () => ingress.running));
  return {
    ingress,
    /** Replaces the rules of all models of the node. */
    takeRules(known: readonly ModelRules[]): void {
      rules = new Map(known.map((model) => [model.id, model]));
      compareWindows();
    },
  };
}
