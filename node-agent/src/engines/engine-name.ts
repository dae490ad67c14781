/** The name of an engine in file names and systemd unit instances. */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";

/** `<slot>-<model>`. Characters that systemd forbids are escaped in its way: `qwen/3` becomes `qwen\x2f3`. */
export function engineName(slot: SlotName, model: ModelId): string {
  return `${slot}-${model}`.replace(/[^A-Za-z0-9:_.-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join(""),
  );
}
