/**
 * A node on which simulated routers place requests. It has the production slot with an engine that takes time to start,
 * and sends the production report each second and after each change of the slot's state.
 */
import { every, type Clock } from "@weiche/shared/time/clock.ts";
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import type { SlotConfig } from "@weiche/node-agent/src/config/config.ts";
import type { SlotEngines } from "@weiche/node-agent/src/engines/engine.ts";
import { loadReport, reportEveryMs, reportSpacingMs } from "@weiche/node-agent/src/links/load.ts";
import type { SlotEvents } from "@weiche/node-agent/src/slots/slot-events.ts";
import { createSlots, type Slots } from "@weiche/node-agent/src/slots/slots.ts";
import { readReport } from "@weiche/router/src/nodes/node-link-codec.ts";
import type { NodeLinkEntry, NodeRegistry } from "@weiche/router/src/nodes/registry.ts";
import { usualLimits } from "./slot-world.ts";

interface PlacementNodeOptions {
  readonly name: NodeId;
  readonly clock: Clock;
  /** Each model has its own slot. */
  readonly models: readonly ModelId[];
  readonly places: number;
  /** Whether the engine runs from the beginning. */
  readonly awake: boolean;
  readonly startMs: number;
  /** The time that a report takes to reach a router. */
  readonly newsMs: number;
}

const endpoint = { origin: "http://engine" };
const silent = new Proxy({} as SlotEvents, { get: () => () => {} });

export class PlacementNode {
  readonly slots: Slots;
  /** Number of engine starts. */
  starts = 0;
  readonly #options: PlacementNodeOptions;
  readonly #links = new Map<string, NodeLinkEntry>();
  #reportedAtMs = -Infinity;
  #isReporting = false;

  constructor(options: PlacementNodeOptions) {
    this.#options = options;
    const { clock } = options;
    const slots = options.models.map((model) => slotOf(model, options.places));
    const engines = (slot: SlotConfig) => this.#engines(slot.engines[0]!.model);
    this.slots = createSlots({ slots, engines, clock, events: silent });
    this.slots.onMove(() => this.#reportSoon());
    void this.slots.readopt();
  }

  /**
   * Links to the router and reports now, then each second from `afterMs` on, because real links are not made at the
   * same moment.
   */
  linkTo(routerId: string, registry: NodeRegistry, afterMs: number): void {
    const { name, clock, models } = this.#options;
    const slots = models.map((model) => ({ name: slotOf(model, 0).name, models: [model] }));
    const hello = { node: name, bootId: "1", agentVersion: "", slots };
    const link = registry.linkUp(hello, clock.monotonicMs());
    registry.connectionUp(name);
    this.#links.set(routerId, link);
    this.#report(routerId, link);
    clock.after(afterMs, () => {
      this.#report(routerId, link);
      every(clock, reportEveryMs, () => this.#report(routerId, link));
    });
  }

  #reportSoon(): void {
    const { clock } = this.#options;
    if (this.#isReporting) return;
    this.#isReporting = true;
    clock.after(Math.max(0, this.#reportedAtMs + reportSpacingMs - clock.monotonicMs()), () => {
      this.#isReporting = false;
      this.#reportedAtMs = clock.monotonicMs();
      for (const [routerId, link] of this.#links) this.#report(routerId, link);
    });
  }

  #report(routerId: string, link: NodeLinkEntry): void {
    const { clock, newsMs } = this.#options;
    const load = { slots: this.slots.views(), engines: new Map(), maintenance: false, admitting: true };
    const report = readReport(loadReport(load, routerId, 0n));
    if (typeof report === "string") throw new Error(report);
    clock.after(newsMs, () => link.report(report, clock.monotonicMs()));
  }

  #engines(model: ModelId): SlotEngines {
    const { clock, awake, startMs } = this.#options;
    return {
      activate: () => {
        this.starts++;
        return new Promise((resolve) => clock.after(startMs, () => resolve(endpoint)));
      },
      retire: () => Promise.resolve(),
      readopt: () => Promise.resolve(awake ? { model, endpoint } : undefined),
      onExit: () => {},
      stopAll: () => Promise.resolve(),
      sleepers: () => [],
    };
  }
}

function slotOf(model: ModelId, places: number): SlotConfig {
  return {
    name: asId<SlotName>(`of-${model}`),
    memory: { roomMsMax: 0, makeRoomAfterMs: 0, returnMsMax: 0, returnShareMin: 0 },
    gpus: [0],
    limits: usualLimits,
    engines: [
      { model, dialect: "openai", launcher: { kind: "external", url: "http://engine" }, maxConcurrent: places },
    ],
  };
}
