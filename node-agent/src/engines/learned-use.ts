/** What engines were seen to hold of the GPU's memory: their need the next time, also for the next agent. */
import type { EngineSpec } from "./engine.ts";
import { commandHash } from "./launchers/engine-command.ts";
import type { SlotEnginesOptions } from "./slot-engines-options.ts";

type Parts = Pick<SlotEnginesOptions, "host" | "memory" | "slot">;

/** No switch fails for want of that note. */
export async function learnUse({ host, memory, slot }: Parts, spec: EngineSpec, heldBytes: number): Promise<void> {
  memory.learn(spec.model, heldBytes);
  await host.handles.writeUse(slot, spec.model, commandHash(spec.launcher), heldBytes).catch(() => {});
}

/** Also of engines that do not run now. */
export async function recallUse({ host, memory, slot, engines }: SlotEnginesOptions): Promise<void> {
  for (const { model, launcher } of engines) {
    const usedBytes = await host.handles.readUse(slot, model, commandHash(launcher));
    if (usedBytes !== undefined) memory.learn(model, usedBytes);
  }
}
