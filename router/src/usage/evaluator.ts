/**
 * Compares what was used with what may be used. What it finds are instants until which an account, user or key is refused:
 * all of them end with the billing period, by the clock alone. Running requests are not its business.
 */
import type { Catalogue } from "@weiche/shared/catalogue.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { noticeWhatIsDue } from "../accounts/notices-due.ts";
import { announceCatalogue } from "../accounts/notices-catalogue.ts";
import type { Subscriptions } from "../subscriptions/subscriptions.ts";
import { inTransaction, type Database } from "../db/database.ts";
import { accountsToEvaluate, evaluateAccount } from "./evaluate-account.ts";

/** Counts of one evaluation. */
export interface Evaluation {
  /** Accounts whose begun period was written on the invoice. */
  readonly charged: number;
  /** Accounts near or beyond a limit of theirs. */
  readonly accounts: number;
  /** Accounts, users and keys that are refused now, or no longer. */
  readonly changed: number;
  readonly notices: number;
}

export interface EvaluatorEvents {
  creditsEvaluated(evaluation: Evaluation): void;
}

export interface Evaluator {
  evaluate(): Promise<Evaluation>;
}

/** `catalogue`: accounts are told of its changes; absent: of none. */
export function createEvaluator(
  database: Database,
  clock: Clock,
  subscriptions: Pick<Subscriptions, "chargeWhatIsDue">,
  events: EvaluatorEvents,
  catalogue?: () => Catalogue,
): Evaluator {
  const { pool } = database;
  return {
    async evaluate() {
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
          failures.push(error); // the others are not to wait for it
        }
      notices += await noticeWhatIsDue(pool, clock.now());
      if (catalogue) notices += await announceCatalogue(database, catalogue(), clock.now());
      if (failures.length > 0) throw failures[0];
      const evaluation = { charged, accounts: accounts.length, changed, notices };
      events.creditsEvaluated(evaluation);
      return evaluation;
    },
  };
}
