/**
 * A prefix tree of texts. In a grammar, an engine then compares a few dozen next letters instead of a thousand
 * alternatives.
 */

export interface LiteralTrie {
  /** The common prefix of all texts below this branch. */
  readonly prefix: string;
  /** Whether a text ends after the prefix. */
  readonly ends: boolean;
  /** Continuations. Each begins with a different character. */
  readonly next: readonly LiteralTrie[];
}

/** Deepest nesting of branches. Texts that differ only below it become alternatives. */
const depthMax = 40;

export function literalTrie(texts: readonly string[]): LiteralTrie {
  const sorted = [...new Set(texts)].toSorted().map((text) => Array.from(text));
  return build(sorted, 0, 0);
}

/** Returns the largest number of alternatives at any place of the tree. */
export function branchesOf({ next, ends }: LiteralTrie): number {
  return next.reduce((most, one) => Math.max(most, branchesOf(one)), next.length + Number(ends));
}

/** Builds a branch from sorted texts that are equal up to `from`. */
function build(texts: readonly (readonly string[])[], from: number, depth: number): LiteralTrie {
  const first = texts[0] ?? [];
  const last = texts.at(-1) ?? [];
  let to = from;
  // The texts are sorted, so all of them share the common prefix of the first and the last.
  while (to < first.length && first[to] === last[to]) to += 1;
  const prefix = first.slice(from, to).join("");
  const ends = first.length === to;
  const longer = ends ? texts.slice(1) : texts;
  if (longer.length === 0) return { prefix, ends, next: [] };
  if (depth === depthMax)
    return { prefix, ends, next: longer.map((text) => ({ prefix: text.slice(to).join(""), ends: true, next: [] })) };
  const groups = Map.groupBy(longer, (text) => text[to]);
  return { prefix, ends, next: [...groups.values()].map((group) => build(group, to, depth + 1)) };
}
