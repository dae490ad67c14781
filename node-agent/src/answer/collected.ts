/**
 * Thrown when an answer reaches one of our limits. The answer then ends as it would at the end of its context window,
 * complete and billed.
 */
export class AnswerFull extends Error {}

/**
 * Large enough for an answer that fills any context window, with the log probabilities of 20 alternatives for each token.
 */
const charactersMax = 64 << 20;

/** Limits the memory of a collected answer, so that an engine that never ends cannot exhaust it. */
export class Collected {
  #characters = 0;

  add(pieces: string[], text: string): void {
    if (text === "") return;
    this.count(text);
    pieces.push(text);
  }

  /** Adds JSON values, such as log probabilities. */
  addValues<Value>(values: Value[], more: readonly Value[]): void {
    this.count(JSON.stringify(more));
    for (const value of more) values.push(value);
  }

  /** Counts a text that the caller keeps. Throws an `AnswerFull` if the limit is exceeded. */
  count(text: string): void {
    this.#characters += text.length;
    if (this.#characters > charactersMax) throw new AnswerFull("too much text");
  }
}
