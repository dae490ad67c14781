/** The subscription actions that the rules allow now. Pure. */
import type { PackageName } from "../db/schema.ts";
import { packages } from "./packages.ts";
import { Refused } from "../rights/refused.ts";
import { changeTerms, type SubscriptionAction, type Term } from "./subscription-rules.ts";

export function packageChoices(terms: readonly Term[], nowMs: number) {
  const isPossible = (action: SubscriptionAction) => {
    try {
      changeTerms(terms, action, nowMs);
      return true;
    } catch (error) {
      if (error instanceof Refused) return false;
      throw error;
    }
  };
  const to = Object.keys(packages).map((name) => [
    name,
    (["order", "upgrade", "downgrade"] as const).filter((kind) => isPossible({ kind, package: name as PackageName })),
  ]);
  return {
    /** Possible actions that lead to each package. */
    to: Object.fromEntries(to) as Readonly<Record<PackageName, readonly ("order" | "upgrade" | "downgrade")[]>>,
    /** Possible actions that take no package. */
    alone: (["trial", "cancel", "withdraw"] as const).filter((kind) => isPossible({ kind })),
  };
}
