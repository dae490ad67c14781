import { isObject, parseJson } from "@weiche/shared/json.ts";

/**
 * Reads one JSON value that a model wrote, in pieces, and finds its end. In strings it escapes what models forget to
 * escape: line ends, tabs, and a backslash that begins no escape. NUL stays, because answers replace it.
 */
export class JsonText {
  /** Text after the end of the value, in the last piece. */
  rest = "";
  isComplete = false;
  /** The ends of the objects and lists that are open, outermost first. */
  readonly #ends: string[] = [];
  #inString = false;
  /** The last character outside strings that is not blank, or the word for the name of a member. */
  #last = "";
  /** The beginning of an escape: a backslash, or a backslash, `u` and some digits. */
  #escape = "";

  /** Returns the piece up to the end of the value, mended. An escape is returned once it is complete. */
  push(text: string): string {
    let mended = "";
    let at = 0;
    while (at < text.length && !this.isComplete) {
      const end = this.#escape === "" ? this.#plainEnd(text, at) : at;
      mended += text.slice(at, end);
      at = end;
      if (at < text.length) mended += this.#take(text[at++]!);
    }
    this.rest = text.slice(at);
    return mended;
  }

  /** Whether an object, a list or a string has begun and not ended. */
  get isOpen(): boolean {
    return this.#inString || this.#ends.length > 0;
  }

  /** The text that ends the value, or undefined if more than the ends of objects and lists is missing. */
  get missingEnd(): string | undefined {
    const isBehindValue = !this.#inString && ![":", ",", "name"].includes(this.#last);
    return isBehindValue ? this.#ends.toReversed().join("") : undefined;
  }

  /** Completes `mended`, all that `push` has returned, without blanks at its end. A value that has not begun, or not enough of it, is `null`. */
  completed(mended: string): string {
    const ends = this.#ends.toReversed().join("");
    if (this.#inString) return mended + (this.#last === "name" ? '":null' : '"') + ends;
    if (this.#last === "name") return `${mended}:null${ends}`;
    if (this.#last === ":") return `${mended}null${ends}`;
    if (this.#last === ",") return mended.slice(0, -1) + ends;
    const word = lastWord(mended);
    return (
      (word !== "" && parseJson(word) === undefined ? `${mended.slice(0, mended.length - word.length)}null` : mended) +
      ends
    );
  }

  /** Returns where the characters end that mean nothing here, because looking at each of a megabyte takes long. */
  #plainEnd(text: string, at: number): number {
    const special = this.#inString ? specialInString : specialBetween;
    special.lastIndex = at;
    const end = special.exec(text)?.index ?? text.length;
    const word = this.#inString ? "" : text.slice(at, end).trimEnd();
    if (word !== "") this.#last = word.at(-1)!;
    return end;
  }

  #take(character: string): string {
    if (!this.#inString) return this.#between(character);
    if (this.#escape === "") return this.#within(character);
    const escape = this.#escape + character;
    const isUnicode = /^\\u[\da-f]{0,4}$/i.test(escape);
    this.#escape = isUnicode && escape.length < 6 ? escape : "";
    if (this.#escape !== "") return "";
    if (isUnicode || /^\\["\\/bfnrt]$/.test(escape)) return escape;
    if (escape === "\\'") return "'";
    return `\\${escape.slice(0, -1)}${this.#within(character)}`;
  }

  #within(character: string): string {
    if (character === "\\") this.#escape = character;
    else if (character === '"') this.#closeString();
    else if (character < " " && character !== "\0") return JSON.stringify(character).slice(1, -1);
    return this.#escape === "" ? character : "";
  }

  #closeString(): void {
    this.#inString = false;
    this.isComplete = this.#ends.length === 0;
  }

  #close(): void {
    this.#ends.pop();
    this.isComplete = this.#ends.length === 0;
  }

  #between(character: string): string {
    const isName = this.#ends.at(-1) === "}" && (this.#last === "{" || this.#last === ",");
    this.#last = character === '"' && isName ? "name" : character;
    if (character === '"') this.#inString = true;
    else if (character === "{" || character === "[") this.#ends.push(character === "{" ? "}" : "]");
    else if (character === "}" || character === "]") this.#close();
    return character;
  }
}

const specialInString = /["\\\p{Cc}]/gu;
const specialBetween = /["{}[\]:,]/g;

/** Mends a whole text. What follows the value stays. */
function mendedJson(text: string): string {
  const json = new JsonText();
  return json.push(text) + json.rest;
}

/** Mends a whole text, and completes a value that was cut off anywhere. Other text may stay invalid. */
export function completedJson(text: string): string {
  const json = new JsonText();
  const mended = json.push(text);
  return json.isComplete ? mended + json.rest : json.completed(mended.trimEnd());
}

/** Returns the number or the literal at the end. A search from the beginning would take quadratic time. */
function lastWord(text: string): string {
  let start = text.length;
  while (start > 0 && !' \t\n\r"{}[]:,'.includes(text[start - 1]!)) start--;
  return text.slice(start);
}

/** Returns the JSON object that is the text of a JSON string, as some models write their arguments. */
export function unwrapped(json: string): string {
  const text = json.startsWith('"') ? parseJson(json) : undefined;
  if (typeof text !== "string") return json;
  const inner = mendedJson(text.trim());
  if (inner === "" || inner === "null") return "{}";
  return isObject(parseJson(inner)) ? inner : json;
}
