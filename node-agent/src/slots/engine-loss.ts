import type { Ticket } from "./slot-state.ts";

/** Tells the requests on an engine that it is gone. Not an `AbortSignal`: those search all their listeners for each one. */
export class EngineLoss {
  readonly #listeners = new Map<Ticket, () => void>();
  #isLost = false;

  /** `listener` is called at most once: at once if the engine is gone already. */
  listen(ticket: Ticket, listener: () => void): void {
    if (this.#isLost) listener();
    else this.#listeners.set(ticket, listener);
  }

  forget(ticket: Ticket): void {
    this.#listeners.delete(ticket);
  }

  tell(): void {
    this.#isLost = true;
    const listeners = [...this.#listeners.values()];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}
