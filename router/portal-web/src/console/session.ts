/** Holds whether the session has ended. Streams and calls notice it; the application shows it. */
import { useSyncExternalStore } from "react";

class SessionState {
  #hasEnded = false;
  readonly #listeners = new Set<() => void>();

  readonly ended = (): void => this.#set(true);
  readonly began = (): void => this.#set(false);
  readonly hasEnded = (): boolean => this.#hasEnded;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #set(hasEnded: boolean): void {
    this.#hasEnded = hasEnded;
    for (const listener of this.#listeners) listener();
  }
}

export const session = new SessionState();

export function useHasEnded(): boolean {
  return useSyncExternalStore(session.subscribe, session.hasEnded);
}
