/**
 * Compares what was used with what may be used, about once a minute, on one of the routers. What it finds are instants
 * until which an account, user or key is refused: all of them end with the billing period, by the clock alone. Running
 * requests are not its business.
 */
import type { Catalogue } from "@weiche/shared/catalogue.ts";
import { every, type Clock } from "@weiche/shared/time/clock.ts";
import { noticeWhatIsDue } from "../accounts/notices-due.ts";
import { announceCatalogue } from "../accounts/notices-catalogue.ts";
import type { Subscriptions } from "../subscriptions/subscriptions.ts";
import { inTransaction, type Database } from "../db/database.ts";
import { giveLeaseBack, takeLease } from "../db/lease.ts";
import { accountsToEvaluate, evaluateAccount } from "./evaluate-account.ts";

/** How many … there were. */
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
  creditsNotEvaluated(error: unknown): void;
}

export interface EvaluatorOptions {
  readonly everyMs?: number;
  /** Accounts are told of its changes. Absent: of none. */
  readonly catalogue?: () => Catalogue;
}

export interface Evaluator extends AsyncDisposable {
  /** Now, whoever else does. */
  evaluate(): Promise<Evaluation>;
}

const leaseName = "credits";

/** `routerId`: who holds the lease. */
export function createEvaluator(
  database: Database,
  clock: Clock,
  subscriptions: Pick<Subscriptions, "chargeWhatIsDue">,
  routerId: string,
  events: EvaluatorEvents,
  { everyMs = 60_000, catalogue }: EvaluatorOptions = {},
): Evaluator {
  const { pool } = database;
  let running: Promise<void> = Promise.resolve();
  const timer = every(clock, everyMs, () => (running = evaluateIfMine()));

  /** Never rejects. */
  async function evaluateIfMine(): Promise<void> {
    try {
      if (await takeLease(pool, leaseName, routerId, everyMs * 1.5)) await evaluate();
    } catch (error) {
      events.creditsNotEvaluated(error);
    }
  }

  async function evaluate(): Promise<Evaluation> {
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
  }

  return {
    evaluate,
    async [Symbol.asyncDispose]() {
      timer.cancel();
      await running;
      await giveLeaseBack(pool, leaseName, routerId).catch(() => {}); // it ends by itself
    },
  };
}
