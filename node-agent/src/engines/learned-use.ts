/** Remembers on disk how much GPU memory each engine held: its need at the next start, also under the next agent. */
import type { EngineSpec } from "./engine.ts";
import { commandHash } from "./launchers/engine-command.ts";
import type { SlotEnginesOptions } from "./slot-engines-options.ts";

type Parts = Pick<SlotEnginesOptions, "host" | "memory" | "slot">;

/** Ignores a failed write: no switch depends on it. */
export async function learnUse({ host, memory, slot }: Parts, spec: EngineSpec, heldBytes: number): Promise<void> {
  memory.learn(spec.model, heldBytes);
  await host.handles.writeUse(slot, spec.model, commandHash(spec.launcher), heldBytes).catch(() => {});
}

/** Loads what is stored for all engines of the slot, running or not. */
export async function recallUse({ host, memory, slot, engines }: SlotEnginesOptions): Promise<void> {
  for (const { model, launcher } of engines) {
    const usedBytes = await host.handles.readUse(slot, model, commandHash(launcher));
    if (usedBytes !== undefined) memory.learn(model, usedBytes);
  }
}
