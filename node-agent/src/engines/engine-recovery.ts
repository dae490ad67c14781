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

/** The one that has slept longest comes first. */
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
  const strays = running.flat().filter((stray) => !stored.some((handle) => handle.pid === stray.pid));
  const [recovered] = await Promise.all([
    Promise.all(stored.map((handle) => recover(handle, specs, host, events))),
    ...strays.map((stray) => refuseEngine(stray, "it has no handle on disk", host, events)),
  ]);
  const slept = ({ handle }: Recovered) => handle.asleepSinceMs ?? 0;
  return recovered.filter((one) => one !== undefined).toSorted((a, b) => slept(a) - slept(b));
}

async function recover(
  handle: EngineHandle,
  specs: readonly EngineSpec[],
  host: EngineHost,
  events: RecoveryEvents,
): Promise<Recovered | undefined> {
  const spec = specs.find(({ model, launcher }) => model === handle.model && launcher.kind === handle.launcher);
  const refused = async (reason: string) => {
    await refuseEngine(handle, reason, host, events);
    return undefined;
  };
  if (!spec) return refused("it is no longer configured");
  const mayNotBeAwake = handle.asleep || handle.heading !== undefined;
  if (mayNotBeAwake && spec.sleepLevel === undefined) return refused("it sleeps, but is not set up to");
  if (await host.launchers[handle.launcher].recover(handle, spec)) return { spec, handle };
  return refused("it is gone, or was started from another configuration");
}

/** Stops an engine that is not taken over, and forgets it. */
export async function refuseEngine(
  handle: EngineHandle,
  reason: string,
  { handles, launchers }: Pick<EngineHost, "handles" | "launchers">,
  events: RecoveryEvents,
): Promise<void> {
  events.engineNotAdopted(handle.slot, handle.model, reason);
  try {
    await launchers[handle.launcher].stop(handle);
    await handles.remove(handle.slot, handle.model);
  } catch (error) {
    events.engineSurprised(handle.slot, handle.model, "stop", (error as Error).message);
  }
}
