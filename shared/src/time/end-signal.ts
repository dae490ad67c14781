/** Tells the parts of a request that it ends early. Does what an `AbortController` does, which costs 2 µs per request and part. */

/** What a part needs of a signal. Every `AbortSignal` has it. */
export interface EndSignal {
  readonly aborted: boolean;
  /** An `Error` once it is aborted. */
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: () => void, options?: { readonly once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** Each listener is told once, since only the first abort counts. One that throws keeps those after it from being told. */
export class EndController implements EndSignal {
  aborted = false;
  reason: Error | undefined;
  readonly #listeners = new Set<() => void>();

  get signal(): EndSignal {
    return this;
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }

  throwIfAborted(): void {
    if (this.reason) throw this.reason;
  }

  addEventListener(_type: "abort", listener: () => void): void {
    if (!this.aborted) this.#listeners.add(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    this.#listeners.delete(listener);
  }
}
