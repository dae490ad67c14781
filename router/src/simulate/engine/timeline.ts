/** What happens over the time of one run, in equal parts: the waits of each model, and the use of each slot. */
import { activeOf } from "@weiche/node-agent/src/slots/slot-view.ts";
import type { SlotState } from "@weiche/node-agent/src/slots/slot-state.ts";
import { Histogram } from "./histogram.ts";
import type { TimedNode } from "./timed-node.ts";

interface SlotLine {
  readonly name: string;
  /** The milliseconds of each part with each use: a model, or `switching`. */
  readonly uses: Map<string, Float64Array>;
}

/** The name of a use that is no model. Names of models have no blanks. */
export const switching = " switching";

const parts = 144;

export class Timeline {
  readonly partMs: number;
  readonly waits = new Map<string, (Histogram | undefined)[]>();
  readonly slots: SlotLine[] = [];

  constructor(durationMs: number) {
    this.partMs = durationMs / parts;
  }

  /** Adds the wait of a request that came at this time. */
  waited(model: string, atMs: number, waitMs: number): void {
    const ofModel = this.waits.getOrInsertComputed(model, () => Array.from({ length: parts }, () => undefined));
    const index = Math.min(parts - 1, Math.floor(atMs / this.partMs));
    (ofModel[index] ??= new Histogram()).add(waitMs);
  }

  watch(nodes: readonly TimedNode[]): void {
    for (const node of nodes)
      for (const slot of node.slots) {
        const line: SlotLine = { name: `${slot.name} of ${node.name}`, uses: new Map() };
        this.slots.push(line);
        slot.times.onSpan = (state, fromMs, untilMs) => this.#used(line, state, fromMs, untilMs);
      }
  }

  #used({ uses }: SlotLine, state: SlotState, fromMs: number, untilMs: number): void {
    const use = useOf(state);
    if (use === undefined) return;
    const times = uses.getOrInsertComputed(use, () => new Float64Array(parts));
    const endMs = Math.min(untilMs, parts * this.partMs);
    for (let index = Math.floor(fromMs / this.partMs); index * this.partMs < endMs; index++)
      times[index]! += Math.min(endMs, (index + 1) * this.partMs) - Math.max(fromMs, index * this.partMs);
  }
}

function useOf(state: SlotState): string | undefined {
  if (state.kind === "active" || state.kind === "draining") return activeOf(state);
  return state.kind === "starting" || state.kind === "stopping" ? switching : undefined;
}
