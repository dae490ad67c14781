/** A request's body in memory, and its room in the budget of large bodies: no longer than it may still be needed. */
import type { ByteBudget } from "@weiche/shared/http/byte-budget.ts";
import { asBuffer, ownBytes, type OwnBytes } from "@weiche/shared/http/byte-thread.ts";
import { ClientGone, type Exchange } from "../exchange.ts";

/** Bodies up to this size take no room in the budget. */
export const smallBytesMax = 1 << 20;

export class HeldBody {
  /** Undefined while it is lent, and once it was dropped. */
  bytes: Buffer | undefined;
  readonly #budget: ByteBudget;
  readonly #signal: AbortSignal;
  #room = 0;
  #dropped = false;
  #isLent = false;

  constructor(budget: ByteBudget, exchange: Exchange) {
    this.#budget = budget;
    this.#signal = exchange.signal;
    exchange.onSettled(() => this.drop());
  }

  /** Waits for room for a body of up to so many bytes. Called once, so that nobody waits for room while he holds some. */
  async reserve(bytesMax: number): Promise<void> {
    if (bytesMax <= smallBytesMax) return;
    await this.#budget.take(bytesMax, this.#signal);
    this.#room = bytesMax;
    if (this.#dropped) this.#shrink(0);
  }

  /** A client may have left with the last byte that it sent: then there is nothing to hold. */
  fill(bytes: Buffer): void {
    if (this.#dropped) throw new ClientGone();
    this.bytes = bytes;
    this.#shrink(bytes.length > smallBytesMax ? bytes.length : 0);
  }

  /** To somebody who takes the memory and gives it back with `takeBack`, whatever happens. */
  lend(): OwnBytes {
    if (this.#dropped) throw new ClientGone();
    const bytes = ownBytes(this.bytes!);
    this.#isLent = true;
    this.bytes = undefined;
    return bytes;
  }

  /** Without bytes: they are gone. A body that was dropped meanwhile is not held again. */
  takeBack(bytes?: OwnBytes): void {
    this.#isLent = false;
    if (this.#dropped || !bytes) this.drop();
    else this.bytes = asBuffer(bytes);
  }

  /** Harmless the second time. The room of what is lent is free when it comes back. */
  drop(): void {
    this.#dropped = true;
    this.bytes = undefined;
    if (!this.#isLent) this.#shrink(0);
  }

  #shrink(room: number): void {
    const freed = this.#room - room;
    this.#room = room;
    if (freed > 0) this.#budget.give(freed);
  }
}
