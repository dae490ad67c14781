/** Checks usage records. Nodes are trusted to count, but they may have bugs. */
import { creditsOf } from "@weiche/shared/credits.ts";
import { isUuidv7, uuidv7TimeMs } from "@weiche/shared/ids.ts";
import type { GrantFault } from "./grants.ts";
import type { RequestOutcome, UsageRecord, UsageSource } from "@weiche/shared/usage-record.ts";

/** Why a record is set aside. It is acknowledged nevertheless, because sending it again would fail again. */
export type SetAsideReason =
  | "unreadable"
  | "malformed"
  | "too-expensive"
  | "too-old"
  | "from-the-future"
  /** The database refuses the record's values, even in a batch of its own. */
  | "database"
  | GrantFault;

export interface SetAside {
  readonly reason: SetAsideReason;
  readonly detail?: string;
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const model = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const integerMax = 2 ** 31 - 1;
const attemptMax = 2 ** 15 - 1;
/** Maximum factor, so that no price overflows 64 bits. */
const factorMax = 1_000_000_000n;
/** Maximum price, as in the database: twice the highest price of a request. A sum can hold 9,000 such prices. */
const millicreditsMax = 1_000_000_000_000_000n;
/**
 * How far a request's time may be ahead of this router's clock. The clock may have been set back, or differ from the clock
 * of the router that accepted the request. The grant signs the request's id, which has the time, so no node can invent it.
 */
const aheadMsMax = 366 * 86_400_000;

/** Returns why a record is set aside; undefined if it is billed. `oldestMs`: the start of the oldest kept day. */
export function faultOf(record: UsageRecord, oldestMs: number, nowMs: number): SetAsideReason | undefined {
  if (!isWellFormed(record)) return "malformed";
  if (creditsOf(record.promptTokens, record.completionTokens, record.factor) > millicreditsMax) return "too-expensive";
  const acceptedMs = uuidv7TimeMs(record.requestId);
  if (acceptedMs < oldestMs) return "too-old";
  if (acceptedMs > nowMs + aheadMsMax) return "from-the-future";
  return undefined;
}

/** Checks all fields that the price depends on. Other invalid measurements are dropped by `measurement`. */
function isWellFormed(record: UsageRecord): boolean {
  const { attempt, promptTokens, completionTokens, factor, outcome } = record;
  return (
    isUuidv7(record.requestId) &&
    isCount(attempt - 1) &&
    attempt <= attemptMax &&
    [record.accountId, record.userId, record.keyId].every((id) => uuid.test(id)) &&
    model.test(record.model) &&
    isCount(promptTokens) &&
    isCount(completionTokens) &&
    factor >= 0n &&
    factor <= factorMax &&
    sources.includes(record.source) &&
    outcomes.includes(outcome) &&
    ((outcome !== "broken" && outcome !== "void") || promptTokens + completionTokens === 0)
  );
}

const sources: readonly UsageSource[] = ["engine", "counted"];
const outcomes: readonly RequestOutcome[] = ["finished", "client-ended", "limit-ended", "broken", "void"];

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= integerMax;
}

/** Rounds a measurement to a whole number that fits its column; undefined if it does not fit. */
export function measurement(value: number | undefined): number | undefined {
  const whole = Math.round(value ?? NaN);
  return isCount(whole) ? whole : undefined;
}
