import type { EngineDeath } from "@weiche/shared/node-protocol.ts";
import { TransientMap } from "@weiche/shared/transient-map.ts";
import type { Ticket } from "./slot-state.ts";

/** `death` is undefined if the engine did not die during this request. */
export type LossListener = (death: EngineDeath | undefined) => void;

/**
 * Notifies the requests on an engine that it is lost. Not an `AbortSignal`, which searches all listeners to remove one.
 */
export class EngineLoss {
  readonly #listeners = new TransientMap<Ticket, LossListener>();
  #isLost = false;

  /** Calls `listener` at most once, and at once if the engine is already lost. */
  listen(ticket: Ticket, listener: LossListener): void {
    if (this.#isLost) listener(undefined);
    else this.#listeners.set(ticket, listener);
  }

  forget(ticket: Ticket): void {
    this.#listeners.delete(ticket);
  }

  /** `byUs`: this agent stopped the engine. */
  tell({ byUs = false } = {}): void {
    this.#isLost = true;
    const listeners = [...this.#listeners.values()];
    this.#listeners.clear();
    const death = listeners.length === 1 ? "alone" : "shared";
    for (const listener of listeners) listener(byUs ? undefined : death);
  }
}
