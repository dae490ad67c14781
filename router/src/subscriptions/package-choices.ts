/** The subscription actions that the rules allow now. Pure. */
import type { PackageName } from "../db/schema.ts";
import { packages } from "./packages.ts";
import { Refused } from "../rights/refused.ts";
import { changeTerms, type SubscriptionAction, type Term } from "./subscription-rules.ts";

export type ActionKind = SubscriptionAction["kind"];

export interface PackageChoices {
  /** Possible actions that lead to each package. */
  readonly to: Readonly<Record<PackageName, readonly ActionKind[]>>;
  /** Possible actions that take no package. */
  readonly alone: readonly ActionKind[];
}

export function packageChoices(terms: readonly Term[], nowMs: number): PackageChoices {
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
    to: Object.fromEntries(to) as PackageChoices["to"],
    alone: (["trial", "cancel", "withdraw"] as const).filter((kind) => isPossible({ kind })),
  };
}
