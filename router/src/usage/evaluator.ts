/**
 * Compares usage with quotas and limits, and sets until when an account, user or key is blocked: to the end of its billing
 * period at most, so that no job has to unblock it. Running requests go on.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { noticeWhatIsDue } from "../accounts/notices-due.ts";
import type { LiveCatalogue } from "../config/live-catalogue.ts";
import { announceCatalogue } from "../accounts/notices-catalogue.ts";
import type { Subscriptions } from "../subscriptions/subscriptions.ts";
import { inTransaction, type Database } from "../db/database.ts";
import { accountsToEvaluate, evaluateAccount } from "./evaluate-account.ts";

/** Counts of one evaluation. */
export interface Evaluation {
  /** Accounts that got an invoice line for a new period. */
  readonly charged: number;
  /** Accounts near or beyond a limit. */
  readonly accounts: number;
  /** Accounts, users and keys that were blocked or unblocked. */
  readonly changed: number;
  readonly notices: number;
}

export interface EvaluatorEvents {
  creditsEvaluated(evaluation: Evaluation): void;
}

export type Evaluator = ReturnType<typeof createEvaluator>;

/** `catalogue`: for notices about its changes; absent: no such notices. */
export function createEvaluator(
  database: Database,
  clock: Clock,
  subscriptions: Pick<Subscriptions, "chargeWhatIsDue">,
  events: EvaluatorEvents,
  catalogue?: Pick<LiveCatalogue, "get" | "changes">,
) {
  const { pool } = database;
  return {
    async evaluate(): Promise<Evaluation> {
      const failures: unknown[] = [];
      const charged = await subscriptions.chargeWhatIsDue().catch((error: unknown) => {
        failures.push(error); // limits hold all the same
        return 0;
      });
      const accounts = await accountsToEvaluate(pool, clock.now());
      let [changed, notices] = [0, 0];
      for (const id of accounts)
        try {
          const found = await inTransaction(database, (transaction) => evaluateAccount(transaction, id, clock.now()));
          changed += found.changed;
          notices += found.notices;
        } catch (error) {
          failures.push(error); // must not delay the other accounts
        }
      notices += await noticeWhatIsDue(pool, clock.now());
      if (catalogue) {
        const file = { catalogue: catalogue.get(), changes: catalogue.changes() };
        notices += await announceCatalogue(database, file, clock.now());
      }
      if (failures.length > 0) throw failures[0];
      const evaluation = { charged, accounts: accounts.length, changed, notices };
      events.creditsEvaluated(evaluation);
      return evaluation;
    },
  };
}
