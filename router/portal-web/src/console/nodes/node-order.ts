/**
 * Sorts nodes: those in trouble first, the worst at the top, the others by name, so that no row moves while the page is
 * live.
 */
import type { ConsoleNode } from "../../../../src/surface/contract/console.ts";

interface Ranked {
  readonly name: string;
  readonly troubles: readonly ConsoleNode["troubles"][number][];
}

const ranks: readonly ConsoleNode["troubles"][number][] = [
  ...(["gone", "silent", "slot-failed", "failing", "not-admitting", "slow", "outbox-old", "gpu-hot"] as const),
];

export function inOrder<T extends Ranked>(nodes: readonly T[]): readonly T[] {
  const rank = ({ troubles: [worst] }: T) => (worst === undefined ? ranks.length : ranks.indexOf(worst));
  return nodes.toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
}
