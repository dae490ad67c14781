/** All slots of a node. Chooses the slot for a request, and passes calls that concern all slots to each of them. */
import { ApiError } from "@weiche/shared/errors.ts";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import type { SlotConfig } from "../config/config.ts";
import { servedBy, type AwakeEngine, type EngineSpec, type SlotEngines } from "../engines/engine.ts";
import type { Admission, AdmissionRequest } from "./admission.ts";
import type { CloseOptions, SlotOptions } from "./slot-options.ts";
import { SlotRunner } from "./slot-runner.ts";
import { WireState, type SlotView } from "./slot-view.ts";

interface NodeSlotsOptions extends Omit<SlotOptions, "config" | "engines"> {
  readonly slots: readonly SlotConfig[];
  readonly engines: (slot: SlotConfig) => SlotEngines;
}

export type Slots = ReturnType<typeof createSlots>;

export function createSlots({ slots, engines, ...shared }: NodeSlotsOptions) {
  const runners = slots.map((config) => new SlotRunner({ config, engines: engines(config), ...shared }));
  const specs = slots.flatMap((slot) => slot.engines);
  const models = new Set(specs.flatMap(servedBy));
  const dialectsOf = (model: ModelId) =>
    new Set(specs.filter((spec) => servedBy(spec).includes(model)).map(({ dialect }) => dialect));
  const dialects = new Map(Array.from(models, (model) => [model, [...dialectsOf(model)]]));
  return {
    dialectsOf: (model: ModelId) => dialects.get(model) ?? [],
    admit: (request: AdmissionRequest) => admit(runners, request),
    /** The standing of each waiting request, by the argument of its `admit` call. */
    waiting: () => new Map(runners.flatMap((runner) => [...runner.waiting()])),
    views: (): readonly SlotView[] => runners.map((runner) => runner.view()),
    /** The engines that are awake and have answered their probe. */
    awake: (): readonly AwakeEngine[] => runners.flatMap((runner) => runner.awake() ?? []),
    /** Calls back when a slot changes its state or its next model. Changes of the load alone do not count. */
    onMove(listener: (slot: SlotName) => void): () => void {
      const forget = runners.map((runner) => runner.onChange((change) => change === "state" && listener(runner.name)));
      return () => forget.forEach((one) => one());
    },
    /**
     * Finds the engines of an earlier agent. Call it first. A slot where this fails refuses requests and tries again by
     * itself.
     */
    async readopt(): Promise<void> {
      await Promise.all(runners.map((runner) => runner.readopt()));
    },
    /**
     * Starts the model once, when no request is in the way. Does nothing if a slot serves it already or no slot may
     * serve it. `slot`: the slot that serves the model, whatever others serve.
     */
    prewarm(model: ModelId, slot?: SlotName): void {
      const named = runners.find(({ name, models: its }) => name === slot && its.has(model));
      if (named) named.prewarm(model);
      else if (!runners.some((runner) => has(runner, model))) choose(runners, model)?.prewarm(model);
    },
    setMaintenance: (on: boolean): void => runners.forEach((runner) => runner.setMaintenance(on)),
    async close(options: CloseOptions): Promise<void> {
      await Promise.all(runners.map((runner) => runner.close(options)));
    },
  };
}

async function admit(runners: readonly SlotRunner[], request: AdmissionRequest): Promise<Admission> {
  const hinted = runners.find((runner) => runner.name === request.slot && runner.models.has(request.model));
  const runner = hinted ?? choose(runners, request.model);
  if (!runner) throw new ApiError("model_unavailable", "This node does not serve the model.", { retryAfterSeconds: 1 });
  return runner.admit(request);
}

function choose(runners: readonly SlotRunner[], model: ModelId): SlotRunner | undefined {
  const able = runners.filter((runner) => runner.models.has(model));
  if (able.length <= 1) return able[0];
  const ranked = able.map((runner) => {
    const view = runner.view();
    return { runner, view, rank: rank(view, runner.models.get(model)!) };
  });
  ranked.sort((a, b) => a.rank - b.rank || tie(a.view, b.view));
  return ranked[0]!.runner;
}

/**
 * Returns the rank of a slot, lower is better, as in the router's placement: active with a free place, starting, empty,
 * idle, then slots that would hold or refuse the request.
 */
function rank(view: SlotView, spec: EngineSpec): number {
  const { model } = spec;
  const same = view.activeModel === model;
  switch (view.state) {
    case WireState.ACTIVE:
    case WireState.DRAINING_OPEN:
      if (same) return view.running + waitingFor(view, servedBy(spec)) < (view.maxConcurrent ?? 0) ? 0 : 4;
      return view.running + view.waiting === 0 ? 3 : 5;
    case WireState.STARTING:
      return same ? 1 : 5;
    case WireState.STOPPING:
      return view.nextModel === model ? 1 : 5;
    case WireState.EMPTY:
      return 2;
    case WireState.DRAINING_CLOSED:
      return same ? 6 : 5;
    case WireState.FAILED:
      return same ? 7 : 5;
  }
}

function tie(a: SlotView, b: SlotView): number {
  return a.running + a.waiting - (b.running + b.waiting) || b.stateAgeMs - a.stateAgeMs;
}

function has(runner: SlotRunner, model: ModelId): boolean {
  const spec = runner.models.get(model);
  if (!spec) return false;
  const view = runner.view();
  return rank(view, spec) <= 1 || (view.activeModel === spec.model && view.maxConcurrent !== undefined);
}

function waitingFor({ waiters }: SlotView, models: readonly ModelId[]): number {
  return waiters.reduce((sum, { model, waiting }) => (models.includes(asId(model)) ? sum + waiting : sum), 0);
}
