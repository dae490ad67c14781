/** Whether a broken connection was the end of the engine: its connections break a moment before its exit is known. */
import { within, type Clock } from "@weiche/shared/time/clock.ts";
import { EngineFault, type EngineFaultReason } from "../engines/dialects/engine-fault.ts";

/** How the end of its process shows first. */
const mayBeDeath: ReadonlySet<EngineFaultReason> = new Set<EngineFaultReason>([
  "connection lost",
  "unfinished",
  "core died",
]);
/** An engine that was found again after a restart of the agent is looked at each 250 ms. */
export const engineNewsMsMax = 400;

/** `signal` aborts with another fault if the engine is gone. */
export async function afterNews(
  fault: EngineFault,
  signal: AbortSignal,
  clock: Clock,
  msMax: number,
): Promise<EngineFault> {
  if (!mayBeDeath.has(fault.reason)) return fault;
  const { promise: told, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve(), { once: true });
  if (!signal.aborted) await within(clock, msMax, told);
  const reason: unknown = signal.reason;
  return reason instanceof EngineFault ? reason : fault;
}
