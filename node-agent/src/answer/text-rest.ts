import type { AnswerRest } from "./engine-work.ts";

const pieceCharactersMax = 32 << 10;

/** The rest of an answer that is there as one text. */
export class TextRest implements AnswerRest {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get heldBytes(): number {
    return this.#text.length - this.#at;
  }

  *[Symbol.iterator](): Iterator<string> {
    const text = this.#text;
    while (this.#at < text.length) {
      const from = this.#at;
      this.#at = this.#endOf(from);
      yield text.slice(from, this.#at);
    }
  }

  /** Does not cut a surrogate pair in two, as neither half could be written. */
  #endOf(from: number): number {
    const end = Math.min(from + pieceCharactersMax, this.#text.length);
    const isPair = (this.#text.charCodeAt(end - 1) & 0xfc00) === 0xd800;
    return isPair && end < this.#text.length ? end - 1 : end;
  }
}
