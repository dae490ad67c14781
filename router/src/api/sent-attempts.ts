/**
 * Decides which attempt of a request is billed: at most the attempt whose answer the client got or ended. Every other
 * attempt that a node may have recorded is declared void.
 */
import { apiErrors } from "@weiche/shared/errors.ts";
import type { VoidAttempt } from "../usage/usage-ledger.ts";
import type { AnswerBody } from "../nodes/upstream.ts";
import type { Exchange } from "./exchange.ts";
import { NodeRefusal } from "./node-refusal.ts";

export type SentAttempt = VoidAttempt;

export interface AttemptVerdicts {
  /** The record is billed: the client got the answer or ended it, or a published limit ended it. */
  settled(attempt: SentAttempt): void;
  /** The record must not be billed, whatever the node has recorded. */
  declareVoid(attempt: SentAttempt): void;
  /** The node refused the attempt before its engine began, so an honest node has no record. */
  declareRefused(attempt: SentAttempt): void;
}

/**
 * Decides on an attempt when its answer ends. If the node ended the answer with an error event, its record has the right
 * cost: nothing, or the tokens generated within the time limit.
 */
export function decideAtEnd(attempt: SentAttempt, answer: AnswerBody, exchange: Exchange, verdicts: AttemptVerdicts) {
  exchange.onSettled(() => {
    const isBroken = exchange.outcome === "broken" && answer.ending !== "error";
    if (isBroken || exchange.isCutByUs) verdicts.declareVoid(attempt);
    else verdicts.settled(attempt);
  });
}

/**
 * Decides on an attempt that its node refused. The node still has its grant, although the client got nothing. After a 500
 * or 504, or when it stops, even an honest node may have recorded tokens that it could not send.
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
 * Decides on an attempt that ended before its answer began, without a refusal. If the client left or the time limit ended
 * the exchange, the record is billed.
 */
export function decideAfter(error: unknown, attempt: SentAttempt, exchange: Exchange, verdicts: AttemptVerdicts): void {
  if (error instanceof NodeRefusal) return;
  if (exchange.signal.aborted && error === exchange.signal.reason && !exchange.isCutByUs) verdicts.settled(attempt);
  else verdicts.declareVoid(attempt);
}
