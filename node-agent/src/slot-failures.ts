/** Why each slot failed last, for `weiche-agent status`: never a metric, and nothing of it leaves the host. */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";

export class SlotFailures {
  readonly #reasons = new Map<SlotName, string>();
  readonly #said = new Map<SlotName, string>();

  /** The last line of an engine whose start fails. Told before that. */
  said(slot: SlotName, lastLines: readonly string[]): void {
    this.#said.set(slot, lastLines.at(-1) ?? "");
  }

  failed(slot: SlotName, model: ModelId | undefined, reason: string): void {
    const parts = [model, reason, this.#said.get(slot)].filter(Boolean);
    this.#said.delete(slot);
    this.#reasons.set(slot, parts.join(": "));
  }

  of(slot: SlotName): string | undefined {
    return this.#reasons.get(slot);
  }
}
