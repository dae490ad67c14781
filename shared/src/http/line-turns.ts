/**
 * Shares the event loop among chunked bodies. Each chunk costs Node's parser about ten microseconds, however short it is,
 * so that 64 KB of chunks of one byte take a tenth of a second. So do extensions of chunks, each of which begins with a
 * semicolon and counts like a line. A chunk has two line ends: a piece of a body ends after
 * `linesPerPiece`, and all bodies of a server together get `linesPerTurn` in one turn.
 */
export const linesPerPiece = 128;
export const linesPerTurn = 256;

const lineEnd = 10;
const semicolon = 59;

export class LineTurns {
  #linesLeft = linesPerTurn;
  #waiting: (() => void)[] = [];
  #isScheduled = false;

  /** Returns the end of the piece to parse next. `isFull`: it has so many lines that the rest must `wait`. */
  pieceOf(bytes: Buffer): { readonly end: number; readonly isFull: boolean } {
    let end = 0;
    let line = bytes.indexOf(lineEnd);
    let extension = bytes.indexOf(semicolon);
    for (let lines = 0; lines < linesPerPiece; lines++) {
      if (line < 0 && extension < 0) return { end: bytes.length, isFull: false };
      const isLine = extension < 0 || (line >= 0 && line < extension);
      end = (isLine ? line : extension) + 1;
      if (isLine) line = bytes.indexOf(lineEnd, end);
      else extension = bytes.indexOf(semicolon, end);
    }
    this.#linesLeft -= linesPerPiece;
    return { end, isFull: true };
  }

  /** Calls `next` in a later turn of the event loop, in the order of the calls. */
  wait(next: () => void): void {
    this.#waiting.push(next);
    if (!this.#isScheduled) setImmediate(this.#turn);
    this.#isScheduled = true;
  }

  readonly #turn = (): void => {
    this.#linesLeft = linesPerTurn;
    const waiting = this.#waiting;
    this.#waiting = [];
    let at = 0;
    while (at < waiting.length && this.#linesLeft > 0) waiting[at++]!();
    this.#waiting = [...waiting.slice(at), ...this.#waiting];
    this.#isScheduled = this.#waiting.length > 0;
    if (this.#isScheduled) setImmediate(this.#turn);
  };
}
