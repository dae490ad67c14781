/** A request's body in memory, and its room in the budget of large bodies. Both are released as soon as possible. */
import type { ByteBudget, Room } from "@weiche/shared/http/byte-budget.ts";
import { asBuffer, ownBytes, type OwnBytes } from "@weiche/shared/http/byte-thread.ts";
import type { AccountId } from "@weiche/shared/ids.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import { ClientGone, type Exchange } from "../exchange.ts";

/** Bodies up to this size take no room in the budget. */
export const smallBytesMax = 1 << 20;

export class HeldBody {
  /** Undefined while the body is lent and after it was dropped. */
  bytes: Buffer | undefined;
  readonly accountId: AccountId;
  readonly #budget: ByteBudget;
  readonly #room: Room;
  readonly #signal: EndSignal;
  #dropped = false;
  #isLent = false;

  constructor(budget: ByteBudget, exchange: Exchange, accountId: AccountId) {
    this.accountId = accountId;
    this.#budget = budget;
    this.#room = budget.open([{ name: accountId, timesFree: 1 }]);
    this.#signal = exchange.signal;
    exchange.onSettled(() => this.drop());
  }

  /** Waits until there is room for `bytes` in total. Rejects with 503 after 30 s, or with the signal's reason. */
  async reserve(bytes: number): Promise<void> {
    if (bytes <= smallBytesMax) return;
    await this.#budget.grow(this.#room, bytes, this.#signal);
    if (this.#dropped) this.#shrink(0);
  }

  /** Returns the room of bytes that have not arrived. */
  retract(bytesCame: number): void {
    this.#shrink(bytesCame);
  }

  /** Sets the bytes. Throws `ClientGone` if the client has left. */
  fill(bytes: Buffer): void {
    if (this.#dropped) throw new ClientGone();
    this.bytes = bytes;
    this.#shrink(bytes.length > smallBytesMax ? bytes.length : 0);
  }

  /** Lends the bytes to a worker thread. The caller must call `takeBack` in any case. */
  lend(): OwnBytes {
    if (this.#dropped) throw new ClientGone();
    const bytes = ownBytes(this.bytes!);
    this.#isLent = true;
    this.bytes = undefined;
    return bytes;
  }

  /** Takes lent bytes back. If `bytes` is undefined, they are lost. A body that was dropped meanwhile stays dropped. */
  takeBack(bytes?: OwnBytes): void {
    this.#isLent = false;
    if (this.#dropped || !bytes) this.drop();
    else this.bytes = asBuffer(bytes);
  }

  /** Drops the body; may be called again. Lent memory keeps its room until it is returned. */
  drop(): void {
    this.#dropped = true;
    this.bytes = undefined;
    if (!this.#isLent) this.#shrink(0);
  }

  #shrink(bytes: number): void {
    this.#budget.shrink(this.#room, bytes);
  }
}
