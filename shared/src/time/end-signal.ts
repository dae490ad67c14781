/**
 * Notifies the parts of a request when it ends early. It replaces `AbortController`, which costs 2 µs per request and
 * part.
 */

/** The part of `AbortSignal` that the parts of a request need. */
export interface EndSignal {
  readonly aborted: boolean;
  /** An `Error` after the abort. */
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: () => void, options?: { readonly once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * Calls each listener once, because only the first abort counts. A listener that throws prevents the calls of later
 * ones.
 */
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
