/**
 * Decides which attempt of a request is billed. At most one is: the one whose answer the client got, or ended itself.
 * Every other attempt that a node may have recorded is declared void.
 */
import { apiErrors } from "@weiche/shared/errors.ts";
import type { VoidAttempt } from "../usage/usage-ledger.ts";
import type { AnswerBody } from "../nodes/upstream.ts";
import type { Exchange } from "./exchange.ts";
import { NodeRefusal } from "./node-refusal.ts";

export type SentAttempt = VoidAttempt;

export interface AttemptVerdicts {
  /** The record counts: the client got the answer, or ended it itself, or a published limit ended it. */
  settled(attempt: SentAttempt): void;
  /** The record must not be billed, whatever the node has recorded. */
  declareVoid(attempt: SentAttempt): void;
  /** The node refused it before its engine began: an honest node has no record. */
  declareRefused(attempt: SentAttempt): void;
}

/**
 * Decides when an answer that has begun ends. A node that ended it with an error event has recorded what that costs:
 * nothing, or what was generated within the limit of 600 s.
 */
export function decideAtEnd(attempt: SentAttempt, answer: AnswerBody, exchange: Exchange, verdicts: AttemptVerdicts) {
  exchange.onSettled(() => {
    const isBroken = exchange.outcome === "broken" && answer.ending !== "error";
    if (isBroken || exchange.isCutByUs) verdicts.declareVoid(attempt);
    else verdicts.settled(attempt);
  });
}

/**
 * Decides on an attempt that its node refused: the node still holds its grant, and the client got nothing of it. After a
 * 500 or 504 and at its stop an honest node, too, may have recorded what it could not hand on.
 */
export function decideAfterRefusal({ status, body }: NodeRefusal, attempt: SentAttempt, verdicts: AttemptVerdicts) {
  const isBeforeWork = status < 500 || (status === 503 && refusedBeforeWork.has(body.error.code));
  if (isBeforeWork) verdicts.declareRefused(attempt);
  else verdicts.declareVoid(attempt);
}

const refusedBeforeWork: ReadonlySet<string> = new Set(
  [apiErrors.overloaded, apiErrors.model_switching, apiErrors.model_unavailable].map(({ code }) => code),
);

/**
 * Decides on an attempt that ended before its answer began, and not by a refusal. The reasons of the exchange's abort (the
 * client left, the limit of 600 s) leave the record as it is.
 */
export function decideAfter(error: unknown, attempt: SentAttempt, exchange: Exchange, verdicts: AttemptVerdicts): void {
  if (error instanceof NodeRefusal) return;
  if (exchange.signal.aborted && error === exchange.signal.reason && !exchange.isCutByUs) verdicts.settled(attempt);
  else verdicts.declareVoid(attempt);
}
