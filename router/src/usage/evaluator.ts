/**
 * Compares usage with quotas and limits, and blocks accounts, users and keys until the end of the billing period at most,
 * so that no job has to unblock them. Running requests continue.
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
  /** Accounts with a due charge for a new period. */
  readonly charged: number;
  /** Issued invoices. */
  readonly invoiced: number;
  /** Accounts that were evaluated: near or beyond a limit, or blocked. */
  readonly accounts: number;
  /** Accounts, users and keys that were blocked or unblocked. */
  readonly changed: number;
  readonly notices: number;
}

export interface EvaluatorEvents {
  creditsEvaluated(evaluation: Evaluation): void;
}

export type Evaluator = ReturnType<typeof createEvaluator>;

/** `catalogue`: the source of notices about its changes. If undefined, there are none. */
export function createEvaluator(
  database: Database,
  clock: Clock,
  subscriptions: Subscriptions,
  events: EvaluatorEvents,
  catalogue?: Pick<LiveCatalogue, "get" | "changes">,
) {
  const { pool } = database;
  return {
    async evaluate(): Promise<Evaluation> {
      const failures: unknown[] = [];
      const charged = await subscriptions.chargeWhatIsDue().catch((error: unknown) => {
        failures.push(error); // limits must be evaluated nevertheless
        return 0;
      });
      const invoiced = await subscriptions.issueInvoices().catch((error: unknown) => {
        failures.push(error);
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
          failures.push(error); // the other accounts must still be evaluated
        }
      notices += await noticeWhatIsDue(pool, clock.now());
      if (catalogue) {
        const file = { catalogue: catalogue.get(), changes: catalogue.changes() };
        notices += await announceCatalogue(database, file, clock.now());
      }
      if (failures.length > 0) throw failures[0];
      const evaluation = { charged, invoiced, accounts: accounts.length, changed, notices };
      events.creditsEvaluated(evaluation);
      return evaluation;
    },
  };
}
