/** The last failure of each slot, for `weiche-agent status` only. It is in no metric and does not leave the host. */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import { tellingLine } from "../engines/log/telling-line.ts";

export class SlotFailures {
  readonly #reasons = new Map<SlotName, string>();
  readonly #said = new Map<SlotName, string>();

  /** Stores the last output lines of an engine whose start failed. Call it before `failed`. */
  said(slot: SlotName, lastLines: readonly string[]): void {
    this.#said.set(slot, tellingLine(lastLines));
  }

  failed(slot: SlotName, model: ModelId | undefined, reason: string): void {
    const parts = [model, reason, this.#said.get(slot)].filter(Boolean);
    this.#said.delete(slot);
    this.#reasons.set(slot, parts.join(": "));
  }

  /** Call this when an engine of the slot is ready. */
  recovered(slot: SlotName): void {
    this.#said.delete(slot);
    this.#reasons.delete(slot);
  }

  /** Returns undefined if nothing has failed since an engine was last ready. */
  of(slot: SlotName): string | undefined {
    return this.#reasons.get(slot);
  }
}
