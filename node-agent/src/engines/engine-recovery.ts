/**
 * Finds the engines that an earlier agent left. Returns the engines that can be adopted, and stops all others of the
 * slot.
 */
import type { SlotName } from "@weiche/shared/ids.ts";
import type { EngineHandle, EngineSpec } from "./engine.ts";
import type { EngineHost } from "./running-engine.ts";
import type { SlotEngineEvents } from "./slot-engines-options.ts";

interface Recovered {
  readonly spec: EngineSpec;
  readonly handle: EngineHandle;
}

export type RecoveryEvents = Pick<SlotEngineEvents, "engineNotAdopted" | "engineSurprised">;

/**
 * Returns the engines to adopt, longest asleep first. Rejects, with nothing stopped, if they cannot be determined now.
 * Also rejects if an engine that must stop does not, because it may be awake.
 */
export async function recoverEngines(
  slot: SlotName,
  specs: readonly EngineSpec[],
  host: EngineHost,
  events: RecoveryEvents,
): Promise<readonly Recovered[]> {
  const stored = (await host.handles.read()).filter((handle) => handle.slot === slot);
  const running = await Promise.all(
    Object.values(host.launchers).map((launcher) => launcher.running?.(slot) ?? Promise.resolve([])),
  );
  const judged = await Promise.all(
    stored.map(async (handle) => ({ handle, verdict: await judge(handle, specs, host) })),
  );
  const recovered = judged.flatMap(({ handle, verdict }) =>
    typeof verdict === "string" ? [] : [{ handle, spec: verdict }],
  );
  const isKnown = (stray: EngineHandle) =>
    stored.some(({ pid }) => pid === stray.pid) || recovered.some(({ handle }) => isOfSameStart(stray, handle));
  const strays = running.flat().filter((stray) => !isKnown(stray));
  const stops = await Promise.allSettled([
    ...judged.map(async ({ handle, verdict }) => {
      if (typeof verdict === "string") await refuseEngine(handle, verdict, host, events);
    }),
    ...strays.map((stray) => stopRefused(stray, "it has no handle on disk", host, events)),
  ]);
  const failed = stops.find((stop) => stop.status === "rejected");
  if (failed) throw failed.reason;
  const slept = ({ handle }: Recovered) => handle.asleepSinceMs ?? 0;
  return recovered.toSorted((a, b) => slept(a) - slept(b));
}

/** Returns the spec for adopting the engine, or the reason against adoption. */
async function judge(
  handle: EngineHandle,
  specs: readonly EngineSpec[],
  host: EngineHost,
): Promise<EngineSpec | string> {
  const spec = specs.find(({ model, launcher }) => model === handle.model && launcher.kind === handle.launcher);
  if (!spec) return "it is no longer configured";
  const mayNotBeAwake = handle.asleep || handle.heading !== undefined;
  if (mayNotBeAwake && spec.sleepLevel === undefined) return "the engine is asleep, but sleep is not configured";
  if (await host.launchers[handle.launcher].recover(handle, spec)) return spec;
  return "it is gone, or was started from another configuration";
}

/**
 * Returns whether both handles have the same nonce. A process that an engine moved to another session is found as a
 * stray with that nonce.
 */
function isOfSameStart(stray: EngineHandle, { launcher, model, nonce }: EngineHandle): boolean {
  return stray.launcher === launcher && stray.model === model && stray.nonce === nonce;
}

/** Stops an engine that is not adopted and removes its stored handle. Rejects if it does not stop. */
export async function refuseEngine(
  handle: EngineHandle,
  reason: string,
  host: EngineHost,
  events: RecoveryEvents,
): Promise<void> {
  await stopRefused(handle, reason, host, events);
  await host.handles.remove(handle.slot, handle.model);
}

/** Stops the engine, but keeps the stored handle, which may belong to another engine of the same name. */
async function stopRefused(
  handle: EngineHandle,
  reason: string,
  { launchers }: EngineHost,
  events: RecoveryEvents,
): Promise<void> {
  events.engineNotAdopted(handle.slot, handle.model, reason);
  try {
    await launchers[handle.launcher].stop(handle);
  } catch (error) {
    events.engineSurprised(handle.slot, handle.model, "stop", (error as Error).message);
    throw error;
  }
}
