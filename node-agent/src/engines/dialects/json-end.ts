/** Finds where a JSON object ends in text that arrives in pieces. */
export class JsonEnd {
  #depth = 0;
  #inString = false;
  #isEscaped = false;

  /** Returns the index after the object's last character, or undefined while the object continues. */
  endIn(text: string): number | undefined {
    for (let at = 0; at < text.length; at++) {
      if (this.#take(text[at]!)) return at + 1;
    }
    return undefined;
  }

  #take(character: string): boolean {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (this.#inString) {
      this.#isEscaped = character === "\\";
      this.#inString = character !== '"';
    } else if (character === '"') this.#inString = true;
    else if (character === "{" || character === "[") this.#depth++;
    else if (character === "}" || character === "]") return --this.#depth === 0;
    return false;
  }
}
