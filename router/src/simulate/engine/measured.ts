/** What one run or several runs of the same fleet have measured. */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { Simulation } from "./simulation.ts";
import { ModelTally, Tally } from "./tally.ts";

interface MeasuredSlot {
  readonly name: string;
  readonly node: string;
  totalMs: number;
  drainMs: number;
  switchMs: number;
  switches: number;
  readonly activeMs: Map<ModelId, number>;
}

export class Measured extends Tally {
  /** The number of runs. */
  runs = 0;
  readonly slots: MeasuredSlot[] = [];
  /** Switches to each model. */
  readonly switches = new Map<string, number>();
  totalMs = 0;

  add({ tally, nodes, clock }: Simulation): void {
    this.runs++;
    const nowMs = clock.monotonicMs();
    this.totalMs += nowMs;
    this.addAll(tally);
    const slots = nodes.flatMap((node) => node.slots.map((slot) => ({ node: node.name, slot })));
    for (const [index, { node, slot }] of slots.entries()) {
      const { times } = slot;
      const all = (this.slots[index] ??= {
        ...{ name: slot.name, node, totalMs: 0, drainMs: 0, switchMs: 0, switches: 0 },
        activeMs: new Map(),
      });
      all.totalMs += nowMs;
      all.drainMs += times.drainMs;
      all.switchMs += times.switchMs;
      for (const [model, ms] of times.activeMs) all.activeMs.set(model, (all.activeMs.get(model) ?? 0) + ms);
      for (const [model, count] of times.switches) {
        all.switches += count;
        this.switches.set(model, (this.switches.get(model) ?? 0) + count);
      }
    }
  }

  /** Adds what other slots have measured in as many runs. */
  addAllOf(other: Measured): void {
    this.runs = other.runs;
    this.totalMs = other.totalMs;
    this.addAll(other);
    this.slots.push(...other.slots);
    for (const [model, count] of other.switches) this.switches.set(model, (this.switches.get(model) ?? 0) + count);
  }

  /** All models together. */
  get all(): ModelTally {
    const all = new ModelTally();
    for (const tally of this.models.values()) all.addAll(tally);
    return all;
  }
}
