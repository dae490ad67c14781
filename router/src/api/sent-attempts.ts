/**
 * What becomes of the attempts of a request. At most one of them costs something: the one whose answer the client got, or
 * ended itself. Every other one that a node may have recorded is void.
 */
import type { VoidAttempt } from "../usage/usage-ledger.ts";
import type { AnswerBody } from "../nodes/upstream.ts";
import type { Exchange } from "./exchange.ts";
import { NodeRefusal } from "./node-refusal.ts";

export type SentAttempt = VoidAttempt;

export interface AttemptVerdicts {
  /** The client got the answer, or what it got ended by its own doing or by a published limit: its record counts. */
  settled(attempt: SentAttempt): void;
  /** The client got nothing of it that it has to pay for, whatever the node records. */
  declareVoid(attempt: SentAttempt): void;
}

/**
 * The attempt's answer has begun: how it ends decides. A node that ended the answer with an error event has recorded what
 * that costs: nothing, or what was generated within the limit of 600 s.
 */
export function decideAtEnd(attempt: SentAttempt, answer: AnswerBody, exchange: Exchange, verdicts: AttemptVerdicts) {
  exchange.onSettled(() => {
    const isBroken = exchange.outcome === "broken" && answer.ending !== "error";
    if (isBroken || exchange.isCutByUs) verdicts.declareVoid(attempt);
    else verdicts.settled(attempt);
  });
}

/**
 * The attempt ended before its answer began. A node that refused it with a status has recorded nothing; a client that left
 * and the limit of 600 s (the reasons of the exchange's abort) leave the record as it is.
 */
export function decideAfter(error: unknown, attempt: SentAttempt, exchange: Exchange, verdicts: AttemptVerdicts): void {
  if (error instanceof NodeRefusal) return;
  if (exchange.signal.aborted && error === exchange.signal.reason && !exchange.isCutByUs) verdicts.settled(attempt);
  else verdicts.declareVoid(attempt);
}
