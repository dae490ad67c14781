/**
 * Where requests wait whose login has ended. The page shows a dialog while somebody waits; once the person has signed in
 * again, every waiting request is repeated, so that no form is lost.
 */
class LoginGate {
  /** Set once somebody is signed in: before that, a missing login is no surprise. */
  isArmed = false;
  #waiting: PromiseWithResolvers<void> | undefined;
  readonly #listeners = new Set<() => void>();

  wait(): Promise<void> {
    this.#waiting ??= Promise.withResolvers<void>();
    this.#tell();
    return this.#waiting.promise;
  }

  open(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
    this.#tell();
  }

  readonly isWaitedAt = (): boolean => this.#waiting !== undefined;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}

export const loginGate = new LoginGate();
