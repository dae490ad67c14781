/**
 * Limits the memory for answers that clients have not read yet. Below the limits an engine works at its own speed, and
 * its place is free once it is done. Above them it works no faster than its client reads.
 */
import type { AccountId } from "@weiche/shared/ids.ts";
import { TransientMap } from "@weiche/shared/transient-map.ts";

/** An answer of 32,768 tokens has about 8 MB of events, or about 12 MB with log probabilities. */
const answerBytesMax = 16 << 20;
const bytesMax = 256 << 20;
/**
 * An account may hold a third of the free memory. A single account then gets a quarter of all, and several accounts
 * leave room for another one.
 */
const shareOfFree = 1 / 3;

export class UnreadAnswers {
  /** The bytes of all answers. */
  bytes = 0;
  readonly #accounts = new TransientMap<AccountId, number>();

  open(accountId: AccountId): UnreadAnswer {
    return new UnreadAnswer(this, accountId);
  }

  /** @internal Adds bytes of an answer. */
  add(accountId: AccountId, bytes: number): void {
    this.bytes += bytes;
    const held = (this.#accounts.get(accountId) ?? 0) + bytes;
    if (held > 0) this.#accounts.set(accountId, held);
    else this.#accounts.delete(accountId);
  }

  /** @internal Returns whether the account may add no more to an answer. */
  isFull(accountId: AccountId): boolean {
    return (this.#accounts.get(accountId) ?? 0) > (bytesMax - this.bytes) * shareOfFree;
  }
}

export class UnreadAnswer {
  readonly #all: UnreadAnswers;
  readonly #accountId: AccountId;
  #bytes = 0;

  constructor(all: UnreadAnswers, accountId: AccountId) {
    this.#all = all;
    this.#accountId = accountId;
  }

  /** Sets the number of unread bytes. */
  is(bytes: number): void {
    if (bytes === this.#bytes) return;
    this.#all.add(this.#accountId, bytes - this.#bytes);
    this.#bytes = bytes;
  }

  /** Whether the client must read before more may be added. An empty answer is never full. */
  get isFull(): boolean {
    return this.#bytes > 0 && (this.#bytes > answerBytesMax || this.#all.isFull(this.#accountId));
  }
}
