/**
 * Engines that another operator runs. The agent neither starts nor stops them. The operator must plan GPU memory for
 * external engines that cannot sleep.
 */
import { assert } from "@weiche/shared/assert.ts";
import type { SlotName } from "@weiche/shared/ids.ts";
import type { EngineHandle, EngineSpec, Launcher } from "../engine.ts";

export function createExternalLauncher(): Launcher {
  return {
    start: (spec, slot) => Promise.resolve(handleOf(spec, slot)),
    recover: (handle, spec) =>
      Promise.resolve(spec.launcher.kind === "external" && originOf(spec.launcher.url) === handle.endpoint.origin),
    stop: () => Promise.resolve(),
    onExit: () => () => {},
    lastLines: () => Promise.resolve([]),
    processes: () => Promise.resolve([]),
  };
}

function handleOf(spec: EngineSpec, slot: SlotName): EngineHandle {
  assert(spec.launcher.kind === "external", "the external launcher accepts only URLs");
  const endpoint = { origin: originOf(spec.launcher.url) };
  return { slot, model: spec.model, launcher: "external", endpoint, asleep: false };
}

function originOf(url: string): string {
  return new URL(url).origin;
}
