/**
 * Connections that have more to read than they may read in one turn of the event loop. Eight of them continue in each
 * turn, in the order of their arrival. Fast engines and nodes therefore do not delay others.
 */

/** A connection reads 16 KiB at a time. That is about 80 events of a stream, and takes a millisecond or two. */
const perTurnMax = 8;

export class ReadTurns {
  #waiting: (() => void)[] = [];

  /** Calls `read` in a later turn. */
  later(read: () => void): void {
    if (this.#waiting.push(read) === 1) setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    const these = this.#waiting.splice(0, perTurnMax);
    if (this.#waiting.length > 0) setImmediate(this.#turn);
    for (const read of these) read();
  };
}
