/**
 * Finds out whether a connection broke because the engine died. The connection breaks slightly before the exit is
 * known.
 */
import { within, type Clock } from "@weiche/shared/time/clock.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import { EngineFault, type EngineFaultReason } from "../engines/dialects/engine-fault.ts";

/** Faults that may be the first sign of an engine's death. */
const mayBeDeath: readonly EngineFaultReason[] = ["connection lost", "unfinished", "gave up", "core died"];
/** The longest wait for the exit. Exits of adopted engines are polled every 250 ms. */
export const engineNewsMsMax = 400;

/** Returns the fault that `signal` aborts with if the engine died, otherwise `fault`. */
export async function afterNews(
  fault: EngineFault,
  signal: EndSignal,
  clock: Clock,
  msMax: number,
): Promise<EngineFault> {
  if (!mayBeDeath.includes(fault.reason)) return fault;
  const { promise: told, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve(), { once: true });
  if (!signal.aborted) await within(clock, msMax, told);
  const reason: unknown = signal.reason;
  return reason instanceof EngineFault ? reason : fault;
}
