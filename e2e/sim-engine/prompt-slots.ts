/**
 * Simulates the prompts that llama-server keeps. Each slot keeps its last prompt, and a cache in the host's memory
 * keeps earlier ones (`server-context.cpp`, `get_available_slot`). Both reuse prompts for every client.
 */

/** A slot that holds less than this share of a prompt is not preferred (`--slot-prompt-similarity`). */
const similarityMin = 0.1;
/** A slot that would lose more than this share of what it holds saves it first. */
const keptShareMin = 0.5;

interface Slot {
  text: string;
  isBusy: boolean;
  usedAt: number;
}

export interface TakenSlot {
  /** The share of the prompt that is not read again, 0 to 1. */
  readonly share: number;
  /** Whether a prompt was restored from the host's memory, which takes time. */
  readonly isRestored: boolean;
  release(): void;
}

export class PromptSlots {
  readonly #slots: readonly Slot[];
  /** Undefined with `--cache-ram 0`. */
  readonly #saved: Set<string> | undefined;
  #uses = 0;

  constructor(slots: number, savesInMemory: boolean) {
    this.#slots = Array.from({ length: slots }, () => ({ text: "", isBusy: false, usedAt: 0 }));
    this.#saved = savesInMemory ? new Set() : undefined;
  }

  /** `reuse`: the request's `cache_prompt`. */
  take(text: string, reuse: boolean): TakenSlot {
    const free = this.#slots.filter(({ isBusy }) => !isBusy);
    const alike = free.toSorted((a, b) => alikeLength(b.text, text) - alikeLength(a.text, text))[0];
    const isSimilar = alike !== undefined && alikeLength(alike.text, text) / text.length > similarityMin;
    const slot = isSimilar ? alike : (free.toSorted((a, b) => a.usedAt - b.usedAt)[0] ?? this.#slots[0]!);
    const keptShare = isSimilar ? alikeLength(slot.text, text) / slot.text.length : 0;
    const isRestored = keptShare < keptShareMin && this.#swap(slot, text);
    const share = reuse ? alikeLength(slot.text, text) / text.length : 0;
    Object.assign(slot, { text, isBusy: true, usedAt: ++this.#uses });
    return { share, isRestored, release: () => void (slot.isBusy = false) };
  }

  /** Saves the slot's prompt and restores a saved one that is more similar. */
  #swap(slot: Slot, text: string): boolean {
    if (!this.#saved) return false;
    if (slot.text !== "") this.#saved.add(slot.text);
    const best = [...this.#saved].toSorted((a, b) => alikeLength(b, text) - alikeLength(a, text))[0];
    if (best === undefined || alikeLength(best, text) <= alikeLength(slot.text, text)) return false;
    slot.text = best;
    return true;
  }
}

function alikeLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}
