/**
 * Shares the event loop among chunked bodies. Each chunk costs Node's parser about ten microseconds, however short it
 * is, so that 64 KB of one-byte chunks take a tenth of a second. Chunk extensions, each of which begins with a
 * semicolon, cost as much and count like a line. A chunk has two line ends. All bodies of a server together get
 * `linesPerTurn` lines per turn, whatever the pieces in which their bytes arrive.
 */
export const linesPerTurn = 256;

const lineEnd = 10;
const semicolon = 59;

export class LineTurns {
  #linesLeft = linesPerTurn;
  #waiting: (() => void)[] = [];
  #isScheduled = false;

  /** Whether the lines of this turn are used up. A body must then `wait`. */
  get isOver(): boolean {
    return this.#linesLeft === 0;
  }

  /** Returns the end of the piece to parse now, and counts its lines. */
  pieceOf(bytes: Buffer): number {
    let end = 0;
    let line = bytes.indexOf(lineEnd);
    let extension = bytes.indexOf(semicolon);
    for (; this.#linesLeft > 0; this.#linesLeft--) {
      if (line < 0 && extension < 0) return bytes.length;
      this.#schedule();
      const isLine = extension < 0 || (line >= 0 && line < extension);
      end = (isLine ? line : extension) + 1;
      if (isLine) line = bytes.indexOf(lineEnd, end);
      else extension = bytes.indexOf(semicolon, end);
    }
    return end;
  }

  /** Calls `next` in a later turn of the event loop, in the order of the calls. `next` must parse before it returns. */
  wait(next: () => void): void {
    this.#waiting.push(next);
    this.#schedule();
  }

  #schedule(): void {
    if (!this.#isScheduled) setImmediate(this.#turn);
    this.#isScheduled = true;
  }

  readonly #turn = (): void => {
    this.#linesLeft = linesPerTurn;
    this.#isScheduled = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    let at = 0;
    while (at < waiting.length && !this.isOver) waiting[at++]!();
    this.#waiting = [...waiting.slice(at), ...this.#waiting];
    if (this.#waiting.length > 0) this.#schedule();
  };
}
