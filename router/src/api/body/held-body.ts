/** A request's body in memory and its share of the budget for large bodies, both released as soon as possible. */
import type { ByteBudget } from "@weiche/shared/http/byte-budget.ts";
import { asBuffer, ownBytes, type OwnBytes } from "@weiche/shared/http/byte-thread.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import { ClientGone, type Exchange } from "../exchange.ts";

/** Bodies up to this size take no room in the budget. */
export const smallBytesMax = 1 << 20;

export class HeldBody {
  /** Undefined while it is lent, and once it was dropped. */
  bytes: Buffer | undefined;
  readonly #budget: ByteBudget;
  readonly #signal: EndSignal;
  #room = 0;
  #dropped = false;
  #isLent = false;

  constructor(budget: ByteBudget, exchange: Exchange) {
    this.#budget = budget;
    this.#signal = exchange.signal;
    exchange.onSettled(() => this.drop());
  }

  /** Waits until the budget has room for `bytesMax`. Call once: waiting while already holding budget could deadlock. */
  async reserve(bytesMax: number): Promise<void> {
    if (bytesMax <= smallBytesMax) return;
    await this.#budget.take(bytesMax, this.#signal);
    this.#room = bytesMax;
    if (this.#dropped) this.#shrink(0);
  }

  /** Throws `ClientGone` if the client has left. */
  fill(bytes: Buffer): void {
    if (this.#dropped) throw new ClientGone();
    this.bytes = bytes;
    this.#shrink(bytes.length > smallBytesMax ? bytes.length : 0);
  }

  /** Lends the memory to a thread. The caller must call `takeBack` in any case. */
  lend(): OwnBytes {
    if (this.#dropped) throw new ClientGone();
    const bytes = ownBytes(this.bytes!);
    this.#isLent = true;
    this.bytes = undefined;
    return bytes;
  }

  /** `bytes` absent: they are lost. A body that was dropped meanwhile stays dropped. */
  takeBack(bytes?: OwnBytes): void {
    this.#isLent = false;
    if (this.#dropped || !bytes) this.drop();
    else this.bytes = asBuffer(bytes);
  }

  /** Idempotent. Lent memory keeps its room in the budget until it comes back. */
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
