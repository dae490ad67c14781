/** Engines of a slot that do what a test requests, when it requests it. */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { EngineEndpoint, ExitReport, FoundEngine, Sleeper, SlotEngines } from "../../src/engines/engine.ts";
import type { SwitchPhase } from "../../src/engines/engine.ts";

type Found = FoundEngine | undefined;
type Call<T> = PromiseWithResolvers<T> & { readonly onPhase: (phase: SwitchPhase) => void };

export class ScriptedEngines implements SlotEngines {
  /** The calls, in words and in order. */
  readonly asked: string[] = [];
  /** The call that waits for its answer. */
  activation: Call<EngineEndpoint> | undefined;
  retirement: Call<void> | undefined;
  adoption: PromiseWithResolvers<Found> | undefined;
  exit: (model: ModelId, report: ExitReport) => void = () => {};

  activate(model: ModelId, signal: AbortSignal, onPhase: (phase: SwitchPhase) => void): Promise<EngineEndpoint> {
    this.asked.push(`activate ${model}`);
    const call = { ...Promise.withResolvers<EngineEndpoint>(), onPhase };
    signal.addEventListener("abort", () => call.reject(signal.reason));
    this.activation = call;
    return call.promise;
  }

  retire(model: ModelId, onPhase: (phase: SwitchPhase) => void, forGood = false): Promise<void> {
    this.asked.push(`retire ${model}${forGood ? " for good" : ""}`);
    this.retirement = { ...Promise.withResolvers<void>(), onPhase };
    return this.retirement.promise;
  }

  readopt(): Promise<Found> {
    this.asked.push("readopt");
    this.adoption = Promise.withResolvers<Found>();
    return this.adoption.promise;
  }

  onExit(callback: (model: ModelId, report: ExitReport) => void): void {
    this.exit = callback;
  }

  stopAll(): Promise<void> {
    this.asked.push("stop all");
    return Promise.resolve();
  }

  sleepers(): readonly Sleeper[] {
    return [];
  }
}
