import { EngineFault } from "../engines/dialects/engine-fault.ts";

/** No window holds more text than this, nor a whole window the probabilities of its tokens with twenty alternatives each. */
const charactersMax = 64 << 20;

/** Bounds all that is kept of an answer: an engine that never ends must not fill the memory. */
export class Collected {
  #characters = 0;

  add(pieces: string[], text: string): void {
    if (text === "") return;
    this.count(text);
    pieces.push(text);
  }

  /** Whatever else of JSON is kept. */
  addValues<Value>(values: Value[], more: readonly Value[]): void {
    this.count(JSON.stringify(more));
    for (const value of more) values.push(value);
  }

  /** A text that is kept by itself. */
  count(text: string): void {
    this.#characters += text.length;
    if (this.#characters > charactersMax) throw new EngineFault("too large", "an answer without end");
  }
}
