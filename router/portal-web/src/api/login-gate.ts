/**
 * Holds requests whose login has ended. The page shows a dialog while requests wait. After the person has signed in
 * again, all of them are repeated, so that no form is lost.
 */
class LoginGate {
  /** Set after the first sign-in. Before it, a missing login is normal. */
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
