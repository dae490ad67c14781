/** Tells a call that has just arrived from earlier ones. Pure. */
export interface Used {
  readonly totalTokens: number;
  readonly credits: number;
}

interface UsageRow {
  readonly key?: { readonly kind: "api" | "test-chat" };
  readonly totalTokens: number;
  readonly credits: string;
}

/** Adds up all keys, without the playground. */
export function usedByPrograms(rows: readonly UsageRow[]): Used {
  const ofPrograms = rows.filter(({ key }) => key?.kind === "api");
  return {
    totalTokens: ofPrograms.reduce((sum, { totalTokens }) => sum + totalTokens, 0),
    credits: ofPrograms.reduce((sum, { credits }) => sum + Number(credits), 0),
  };
}

export function usedSince(before: Used, now: Used): Used {
  return { totalTokens: now.totalTokens - before.totalTokens, credits: now.credits - before.credits };
}
