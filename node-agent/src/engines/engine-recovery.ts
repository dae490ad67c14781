/** Engines that an earlier agent left: those that may be taken over are named, all others of the slot are stopped. */
import type { SlotName } from "@weiche/shared/ids.ts";
import type { EngineHandle, EngineSpec } from "./engine.ts";
import type { EngineHost } from "./running-engine.ts";
import type { SlotEngineEvents } from "./slot-engine-events.ts";

export interface Recovered {
  readonly spec: EngineSpec;
  readonly handle: EngineHandle;
}

export type RecoveryEvents = Pick<SlotEngineEvents, "engineNotAdopted" | "engineSurprised">;

/**
 * The one that has slept longest comes first. Rejects, with nothing stopped, where it cannot be told now which may be
 * taken over, and where one that must go does not: it may be awake.
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

/** The spec that an engine is taken over with, or why it is not. */
async function judge(
  handle: EngineHandle,
  specs: readonly EngineSpec[],
  host: EngineHost,
): Promise<EngineSpec | string> {
  const spec = specs.find(({ model, launcher }) => model === handle.model && launcher.kind === handle.launcher);
  if (!spec) return "it is no longer configured";
  const mayNotBeAwake = handle.asleep || handle.heading !== undefined;
  if (mayNotBeAwake && spec.sleepLevel === undefined) return "it sleeps, but is not set up to";
  if (await host.launchers[handle.launcher].recover(handle, spec)) return spec;
  return "it is gone, or was started from another configuration";
}

/** A process that an engine has put in a session of its own carries that engine's mark. */
function isOfSameStart(stray: EngineHandle, { launcher, model, nonce }: EngineHandle): boolean {
  return stray.launcher === launcher && stray.model === model && stray.nonce === nonce;
}

/** Stops an engine of a stored handle that is not taken over, and forgets it. Rejects if it does not stop. */
export async function refuseEngine(
  handle: EngineHandle,
  reason: string,
  host: Pick<EngineHost, "handles" | "launchers">,
  events: RecoveryEvents,
): Promise<void> {
  await stopRefused(handle, reason, host, events);
  await host.handles.remove(handle.slot, handle.model);
}

/** What is stored under its name may be the handle of another engine, which stays. */
async function stopRefused(
  handle: EngineHandle,
  reason: string,
  { launchers }: Pick<EngineHost, "launchers">,
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
