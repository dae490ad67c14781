import { EngineFault } from "../engines/dialects/engine-fault.ts";

/** No window holds more text than this. */
const charactersMax = 32 << 20;

/** Collects pieces of text, all of which together are bounded: an engine that never ends must not fill the memory. */
export class Collected {
  #characters = 0;

  add(pieces: string[], text: string): void {
    this.#characters += text.length;
    if (this.#characters > charactersMax) throw new EngineFault("too large", "an answer without end");
    pieces.push(text);
  }
}
