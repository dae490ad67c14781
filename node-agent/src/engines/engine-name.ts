/** How an engine is called in file names and unit instances. */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";

/** `<slot>-<model>`; other characters than systemd allows are written its way: `qwen/3` is `qwen\x2f3`. */
export function engineName(slot: SlotName, model: ModelId): string {
  return `${slot}-${model}`.replace(/[^A-Za-z0-9:_.-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join(""),
  );
}
