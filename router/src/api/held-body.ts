/** A request's body in memory, and its room in the budget of large bodies: no longer than it may still be needed. */
import type { ByteBudget } from "@weiche/shared/byte-budget.ts";
import { ClientGone, type Exchange } from "./exchange.ts";

/** Bodies up to this size are read at once and take no room in the budget. */
export const smallBytesMax = 1 << 20;

export class HeldBody {
  /** Undefined once it was dropped. */
  bytes: Buffer | undefined;
  readonly #budget: ByteBudget;
  #room: number;
  #dropped = false;

  /** Waits for room for a body of up to so many bytes. */
  static async reserve(bytesMax: number, budget: ByteBudget, exchange: Exchange): Promise<HeldBody> {
    const room = bytesMax > smallBytesMax ? bytesMax : 0;
    if (room > 0) await budget.take(room, exchange.signal);
    const body = new HeldBody(budget, room);
    exchange.onSettled(() => body.drop());
    return body;
  }

  private constructor(budget: ByteBudget, room: number) {
    this.#budget = budget;
    this.#room = room;
  }

  /** A client may have left with the last byte that it sent: then there is nothing to hold. */
  fill(bytes: Buffer): void {
    if (this.#dropped) throw new ClientGone();
    this.bytes = bytes;
    this.#shrink(bytes.length > smallBytesMax ? bytes.length : 0);
  }

  /** Harmless the second time. */
  drop(): void {
    this.#dropped = true;
    this.bytes = undefined;
    this.#shrink(0);
  }

  #shrink(room: number): void {
    const freed = this.#room - room;
    this.#room = room;
    if (freed > 0) this.#budget.give(freed);
  }
}
