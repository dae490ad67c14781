/** Measures switches by phase, from the first waiter's drain to the probe of the new engine. */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { SwitchPhase } from "../engines/engine.ts";
import { awakeEngine, currentEpoch, type SlotState } from "./slot-state.ts";

export interface SwitchReport {
  /** The model that was active before. */
  readonly from?: ModelId;
  readonly model: ModelId;
  readonly tookMs: number;
  readonly phasesMs: Readonly<Partial<Record<SwitchPhase, number>>>;
}

interface Measuring extends Pick<SwitchReport, "from"> {
  readonly beganMs: number;
  readonly phasesMs: Partial<Record<SwitchPhase, number>>;
  phase: SwitchPhase;
  sinceMs: number;
}

export class SwitchMeter {
  #measuring: Measuring | undefined;

  /** Call it at each change of state. Returns the report when the new engine is awake. */
  moved(before: SlotState, after: SlotState, nowMs: number): SwitchReport | undefined {
    if (after.kind === before.kind && currentEpoch(after) === currentEpoch(before)) return undefined;
    const engine = awakeEngine(after);
    const report =
      engine && before.kind === "starting" && !before.adopted ? this.#report(engine.model, nowMs) : undefined;
    if (after.kind === "draining") this.#begin("drain", nowMs, after.engine.model);
    else if (after.kind === "stopping" && this.#measuring) this.enter("stop", nowMs);
    else if (after.kind === "stopping") this.#begin("stop", nowMs, after.model);
    else if (after.kind === "starting" && before.kind === "stopping") this.enter("start", nowMs);
    else if (after.kind === "starting") this.#begin("start", after.beganMs);
    else this.#measuring = undefined;
    return report;
  }

  get phase(): SwitchPhase | undefined {
    return this.#measuring?.phase;
  }

  enter(phase: SwitchPhase, nowMs: number): void {
    const measuring = this.#measuring;
    if (!measuring) return;
    measuring.phasesMs[measuring.phase] = (measuring.phasesMs[measuring.phase] ?? 0) + nowMs - measuring.sinceMs;
    measuring.phase = phase;
    measuring.sinceMs = nowMs;
  }

  #begin(phase: SwitchPhase, nowMs: number, from?: ModelId): void {
    this.#measuring = { from, beganMs: nowMs, phasesMs: {}, phase, sinceMs: nowMs };
  }

  #report(model: ModelId, nowMs: number): SwitchReport | undefined {
    if (!this.#measuring) return undefined;
    this.enter(this.#measuring.phase, nowMs);
    const { from, beganMs, phasesMs } = this.#measuring;
    return { from, model, tookMs: nowMs - beganMs, phasesMs };
  }
}
