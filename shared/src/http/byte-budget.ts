/**
 * Shares the memory for large bodies among their senders. A sharer may hold at most a multiple of the memory that it
 * leaves free. With the multiple 1, one sharer alone holds half of the memory, several hold less each, and the next
 * sharer always finds room. While another account waits, no account gets more than a quarter. Memory for one whole body
 * is kept apart. One body at a time owns it, so that some body can always be completed.
 */
import type { Clock } from "../time/clock.ts";
import { assert } from "../assert.ts";
import { ApiError } from "../errors.ts";
import type { EndSignal } from "../time/end-signal.ts";

/**
 * A body counts for its sharers, such as its account. A sharer that holds nothing needs room only for its first body.
 */
interface Sharer {
  readonly name: string;
  /** The multiple of the free memory that the sharer may hold. */
  readonly timesFree: number;
}

/** The memory of one body. */
export interface Room {
  /** The first sharer is the account. */
  readonly sharers: readonly [Sharer, ...Sharer[]];
  readonly bytes: number;
}

interface CountedRoom extends Room {
  bytes: number;
  waitedMs: number;
}

interface Waiter {
  readonly room: CountedRoom;
  readonly bytes: number;
  readonly admit: () => void;
}

/** The total time that one body waits for room. */
export const waitMsMax = 30_000;

export class ByteBudget {
  #free: number;
  /** The most that an account gets while another account waits. */
  readonly #quarterBytes: number;
  readonly #apartBytes: number;
  #apartOwner: CountedRoom | undefined;
  /** The bytes that each sharer holds, without the memory that is kept apart. */
  readonly #held = new Map<string, number>();
  /** In the order of their arrival. */
  readonly #waiters = new Set<Waiter>();
  /** The number of waiting bodies of each account that has any. */
  readonly #waiting = new Map<string, number>();
  readonly #clock: Clock;
  readonly #reason: string | undefined;

  /** `wholeBytesMax` is the size of the largest body. Each refusal contains `reason`. */
  constructor(bytesMax: number, wholeBytesMax: number, clock: Clock, reason?: string) {
    this.#reason = reason;
    this.#free = bytesMax - wholeBytesMax;
    this.#quarterBytes = this.#free / 4;
    this.#apartBytes = wholeBytesMax;
    this.#clock = clock;
  }

  /** Returns the room of a body, without any memory yet. */
  open(sharers: Room["sharers"]): Room {
    return { sharers, bytes: 0, waitedMs: 0 } as CountedRoom;
  }

  /** Resolves when the room holds `bytes` in total. Rejects with 503 after 30 s, or with the signal's reason. */
  grow(opened: Room, bytes: number, signal: EndSignal): Promise<void> {
    const room = opened as CountedRoom;
    if (this.#grant(room, bytes)) return Promise.resolve();
    const sinceMs = this.#clock.monotonicMs();
    return new Promise((resolve, reject) => {
      const leave = () => {
        timer.cancel();
        signal.removeEventListener("abort", onAbort);
        this.#waiters.delete(waiter);
        addTo(this.#waiting, accountOf(room), -1);
        room.waitedMs += this.#clock.monotonicMs() - sinceMs;
      };
      const fail = (error: Error) => {
        leave();
        reject(error);
        this.#admit(); // accounts that waited beside this one may now get more than a quarter
      };
      const onAbort = () => fail(signal.reason as Error);
      const timer = this.#clock.after(waitMsMax - room.waitedMs, () => fail(tooMany(this.#reason)));
      const waiter = { room, bytes, admit: () => (leave(), resolve()) };
      this.#waiters.add(waiter);
      addTo(this.#waiting, accountOf(room), 1);
      if (signal.aborted) onAbort();
      else signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Releases the part of the room that exceeds `bytes`. */
  shrink(opened: Room, bytes: number): void {
    const room = opened as CountedRoom;
    if (room.bytes <= bytes) return;
    if (this.#apartOwner !== room) this.#count(room, bytes - room.bytes);
    else if (bytes === 0) this.#apartOwner = undefined;
    room.bytes = bytes;
    this.#admit();
  }

  /**
   * Serves the accounts that hold least first. A body that does not fit does not block others. Each admission may let
   * another account get more than a quarter, so the rest is asked again.
   */
  #admit(): void {
    for (let before = Infinity; this.#waiters.size > 0 && this.#waiters.size < before;) {
      before = this.#waiters.size;
      const line = [...this.#waiters].toSorted((a, b) => this.#heldByAccount(a.room) - this.#heldByAccount(b.room));
      for (const { room, bytes, admit } of line) if (this.#grant(room, bytes)) admit();
    }
  }

  #grant(room: CountedRoom, bytes: number): boolean {
    assert(bytes <= this.#apartBytes, "a body exceeds the largest size");
    const more = bytes - room.bytes;
    if (this.#apartOwner !== room) {
      if (this.#fits(room, more)) this.#count(room, more);
      else if (this.#mayOwnApart(room)) {
        this.#count(room, -room.bytes);
        this.#apartOwner = room;
      } else return false;
    }
    room.bytes = bytes;
    return true;
  }

  #fits(room: Room, more: number): boolean {
    const left = this.#free - more;
    if (left < 0) return false;
    const ofAccount = this.#heldByAccount(room);
    if (ofAccount > 0 && ofAccount + more > this.#quarterBytes && this.#othersWait(room)) return false;
    return room.sharers.every(({ name, timesFree }) => {
      const held = this.#held.get(name) ?? 0;
      return held === 0 || held + more <= timesFree * left;
    });
  }

  #othersWait(room: Room): boolean {
    return this.#waiting.size > (this.#waiting.has(accountOf(room)) ? 1 : 0);
  }

  /**
   * Returns whether the body may own the memory kept apart. A body that has begun may, because it holds memory until it
   * is complete. Other bodies may if their account holds nothing.
   */
  #mayOwnApart(room: Room): boolean {
    return this.#apartOwner === undefined && (room.bytes > 0 || this.#heldByAccount(room) === 0);
  }

  #count({ sharers }: Room, more: number): void {
    this.#free -= more;
    for (const { name } of sharers) addTo(this.#held, name, more);
  }

  #heldByAccount(room: Room): number {
    return this.#held.get(accountOf(room)) ?? 0;
  }
}

function accountOf({ sharers }: Room): string {
  return sharers[0].name;
}

/** Adds to a count, which has no entry while it is 0. */
function addTo(counts: Map<string, number>, name: string, more: number): void {
  const count = (counts.get(name) ?? 0) + more;
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}

function tooMany(reason: string | undefined): ApiError {
  return new ApiError("overloaded", "Too many large requests at once.", { retryAfterSeconds: 2, reason });
}
