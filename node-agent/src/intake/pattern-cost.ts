/**
 * Estimates the cost of a regular expression as a grammar, in one pass over its text. Groups and repetitions are
 * multiplied, never unfolded. Syntax that an engine may not know counts as plain characters.
 */
import { every, named, one, others, range, type CharSet } from "./char-set.ts";

export interface PatternCost {
  /**
   * Characters of the expression with each repetition written out. An open repetition counts its minimum, and at least
   * once.
   */
  readonly size: number;
  /** Upper bound of the places in the expression that the text read so far can lead to. */
  readonly choices: number;
  /**
   * Upper bound of the ways to match a text of 64 characters. Infinity if they grow exponentially. An engine that tries
   * a token follows each of them, and vocabularies contain such tokens.
   */
  readonly ways: number;
  /** The highest count of a repetition, such as 9 in `a{2,9}`. 0 if there is none. */
  readonly repetitionMax: number;
}

/** The limit of nested groups. Deeper groups make the cost infinite. */
const depthMax = 50;
/** The length of the long tokens of usual vocabularies, such as indentation and lines of dashes. */
const tokenLength = 64;

export function patternCost(pattern: string): PatternCost {
  const reader = new PatternReader(pattern);
  const { total, live, ways } = reader.alternatives(0);
  return { size: total, choices: live, ways, repetitionMax: reader.repetitionMax };
}

interface Part {
  /** The length of every match, if each place in it is reached in only one way. */
  readonly fixed: number | undefined;
  readonly empty: boolean;
  readonly first: CharSet;
  readonly all: CharSet;
  /** The characters that can continue the part where it could also end. */
  readonly tail: CharSet;
  /** The characters of each alternative one by one. Undefined if the length varies or is large. */
  readonly words: readonly (readonly CharSet[])[] | undefined;
  readonly ways: number;
  readonly length: number;
  /** The number of places where it can begin. */
  readonly entries: number;
  readonly live: number;
  /** The number of places. All can be reached at once if the part is entered repeatedly. */
  readonly total: number;
}

const nothing: Part = {
  ...{ fixed: 0, empty: true, first: 0n, all: 0n, tail: 0n, words: [[]], ways: 1, length: 0 },
  ...{ entries: 0, live: 0, total: 0 },
};
const tooDeep: Part = {
  ...{ fixed: undefined, empty: true, first: every, all: every, tail: every, words: undefined },
  ...{ ways: Infinity, length: Infinity, entries: Infinity, live: Infinity, total: Infinity },
};
function char(set: CharSet): Part {
  return {
    ...{ fixed: 1, empty: false, first: set, all: set, tail: 0n, words: [[set]], ways: 1, length: 1 },
    ...{ entries: 1, live: 1, total: 1 },
  };
}

class PatternReader {
  repetitionMax = 0;
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  alternatives(depth: number): Part {
    if (depth > depthMax) {
      this.#at = this.#text.length;
      return tooDeep;
    }
    let all = this.#sequence(depth);
    while (this.#text[this.#at] === "|") {
      this.#at += 1;
      all = either(all, this.#sequence(depth));
    }
    return all;
  }

  #sequence(depth: number): Part {
    const sequence = new Sequence();
    // llama.cpp repeats the whole literal if its last character is an escaped one.
    let literal = 0;
    for (;;) {
      const start = this.#text[this.#at];
      if (start === undefined || start === "|" || (start === ")" && depth > 0)) return sequence.part();
      const [atom, isEscaped] = this.#atom(start, depth);
      literal = atom.fixed === 1 && atom.total === 1 && !"[.(".includes(start) ? literal + 1 : 0;
      const repeated = this.#repetition();
      const whole = isEscaped ? { ...atom, fixed: literal, length: literal, total: literal } : atom;
      sequence.add(repeated ? repeat(whole, ...repeated) : atom);
      if (repeated) literal = 0;
    }
  }

  #atom(start: string, depth: number): [part: Part, isEscaped: boolean] {
    this.#at += 1;
    switch (start) {
      case "(":
        return [this.#group(depth), false];
      case "[":
        return [char(this.#charClass()), false];
      case ".":
        return [char(every), false];
      case "^":
      case "$":
        return [nothing, false];
      case "\\":
        return [char(this.#escape()), true];
      default:
        return [char(one(start.charCodeAt(0))), false];
    }
  }

  #group(depth: number): Part {
    const opening = /\?(?:<[^=!>][^>]*>|<?[=!:]|)/y;
    opening.lastIndex = this.#at;
    this.#at += opening.exec(this.#text)?.[0].length ?? 0;
    const inside = this.alternatives(depth + 1);
    if (this.#text[this.#at] === ")") this.#at += 1;
    return inside;
  }

  /** Reads a character class after its opening bracket. */
  #charClass(): CharSet {
    const isNegated = this.#text[this.#at] === "^";
    if (isNegated) this.#at += 1;
    let set = 0n;
    while (this.#at < this.#text.length && this.#text[this.#at] !== "]") {
      const from = this.#text.charCodeAt(this.#at++);
      const of = from === 0x5c ? this.#escape() : one(from);
      set |= of;
      const to = this.#text.charCodeAt(this.#at + 1);
      if (this.#text[this.#at] !== "-" || this.#text[this.#at + 1] === "]" || Number.isNaN(to)) continue;
      this.#at += 2;
      if (to === 0x5c) this.#escape();
      set |= to === 0x5c || from === 0x5c ? every : range(from, to);
    }
    this.#at += 1;
    return isNegated ? (every ^ set) | one(others) : set;
  }

  /** Reads an escape after its backslash. */
  #escape(): CharSet {
    const name = this.#text[this.#at] ?? "\\";
    this.#at += 1;
    const hex = { x: /[\da-f]{2}/iy, u: /[\da-f]{4}/iy, U: /[\da-f]{8}/iy }[name];
    if (hex) {
      hex.lastIndex = this.#at;
      const code = hex.exec(this.#text)?.[0];
      this.#at += code?.length ?? 0;
      return code === undefined ? every : one(Number.parseInt(code, 16));
    }
    return named[name] ?? (/[\w]/.test(name) ? every : one(name.charCodeAt(0)));
  }

  #repetition(): [least: number, most: number] | undefined {
    const quantifier = /(?:[*+?]|\{(\d*)(,?)(\d*)\})[?+]?/y;
    let least = 1;
    let most = 1;
    let found = false;
    // Quantifiers may follow each other.
    for (;;) {
      quantifier.lastIndex = this.#at;
      const [text, from = "", comma, to = ""] = quantifier.exec(this.#text) ?? [];
      if (text === undefined) return found ? [least, most] : undefined;
      this.#at = quantifier.lastIndex;
      found = true;
      if (text.startsWith("{")) {
        this.repetitionMax = Math.max(this.repetitionMax, Number(from), Number(to));
        least *= Number(from);
        most *= comma === "" ? Number(from) : to === "" ? Infinity : Number(to);
      } else {
        if (!text.startsWith("+")) least = 0;
        if (!text.startsWith("?")) most = Infinity;
      }
    }
  }
}

/** A sequence of parts. */
class Sequence {
  #sum = nothing;
  /** Places of the parts that can be read at once, because one part can end at several places. */
  #open = 0;
  #openSet: CharSet = 0n;

  add(part: Part): void {
    if (part.total === 0) return;
    const before = this.#sum;
    // The part's first character can also continue the part before it.
    const isAmbiguous = ((before.tail | (before.empty ? before.first : 0n)) & part.first) !== 0n;
    this.#sum = {
      fixed: before.fixed === undefined || part.fixed === undefined ? undefined : before.fixed + part.fixed,
      empty: before.empty && part.empty,
      first: before.first | (before.empty ? part.first : 0n),
      all: before.all | part.all,
      tail: part.tail | (part.empty ? before.tail | part.first : 0n),
      words: joined(before.words, part.words),
      ways: before.ways * part.ways * (isAmbiguous ? 1 + Math.min(before.length, tokenLength) : 1),
      length: before.length + part.length,
      entries: before.entries + (before.empty ? part.entries : 0),
      live: this.#liveWith(part),
      total: before.total + part.total,
    };
  }

  #liveWith(part: Part): number {
    let { live } = this.#sum;
    if (this.#open > 0 && !part.empty && (part.first & this.#openSet) === 0n) {
      // The part's first character ends everything that is open before it.
      live = Math.max(live, this.#open + 1);
      this.#open = 0;
      this.#openSet = 0n;
    }
    if (this.#open === 0 && part.fixed !== undefined) return Math.max(live, part.live);
    this.#open += this.#open === 0 ? part.live : part.total;
    this.#openSet |= part.all;
    return live;
  }

  part(): Part {
    return { ...this.#sum, live: Math.max(this.#sum.live, this.#open) };
  }
}

/** Words are compared letter by letter, so their number and length are limited. */
const wordsMax = 32;
const wordLengthMax = 32;

function joined(before: Part["words"], after: Part["words"]): Part["words"] {
  if (before?.length !== 1 || !after || before[0]!.length + (after[0]?.length ?? 0) > wordLengthMax) return undefined;
  return after.map((word) => [...before[0]!, ...word]);
}

function either(a: Part, b: Part): Part {
  const isTold = (a.first & b.first) === 0n || areTold(a.words, b.words);
  const words =
    a.words && b.words && a.words.length + b.words.length <= wordsMax ? [...a.words, ...b.words] : undefined;
  return {
    fixed: a.fixed === b.fixed ? a.fixed : undefined,
    empty: a.empty || b.empty,
    first: a.first | b.first,
    all: a.all | b.all,
    // The end of one alternative can be the beginning of another.
    tail: a.tail | b.tail | (isTold ? 0n : a.all | b.all),
    words,
    ways: isTold ? Math.max(a.ways, b.ways) : a.ways + b.ways,
    length: Math.max(a.length, b.length),
    entries: a.entries + b.entries,
    // The first character excludes one of them, if possible.
    live: (a.first & b.first) === 0n ? Math.max(a.live, b.live, a.entries + b.entries) : a.live + b.live,
    total: a.total + b.total,
  };
}

function areTold(some: Part["words"], more: Part["words"]): boolean {
  return !!some?.every((a) => more?.every((b) => a.some((set, at) => at < b.length && (set & b[at]!) === 0n)));
}

function repeat(part: Part, least: number, most: number): Part {
  if (part.total === 0 || most === 0) return nothing;
  const copies = most === Infinity ? least + 1 : most;
  const total = part.total * copies;
  // At the end of a round, the same character can continue it or begin the next round.
  const isAmbiguous = most > 1 && (part.empty || (part.tail & part.first) !== 0n);
  const round = isAmbiguous ? part.ways * (1 + Math.min(part.length, tokenLength)) : part.ways;
  const isFixed = least === most && part.fixed !== undefined;
  return {
    fixed: isFixed ? part.fixed! * least : undefined,
    empty: part.empty || least === 0,
    first: part.first,
    all: part.all,
    tail: part.tail | (isFixed ? 0n : part.first),
    words: undefined,
    ways: round === 1 ? 1 : round ** most,
    length: part.length * most,
    entries: part.entries,
    live: part.fixed === undefined && most > 1 ? total : part.live + (least === most ? 0 : 1),
    total,
  };
}
