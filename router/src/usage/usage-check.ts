/** What a usage record must be to be taken. A node is trusted to count, not to be free of mistakes. */
import { creditsOf } from "@weiche/shared/credits.ts";
import { isUuidv7, uuidv7TimeMs } from "@weiche/shared/ids.ts";
import type { GrantRefusal } from "./grants.ts";
import type { RequestOutcome, UsageRecord, UsageSource } from "@weiche/shared/usage-record.ts";

/** Why a record is acknowledged but not recorded: sent again, it would be no better. */
export type UsageRefusal =
  | "unreadable"
  | "malformed"
  | "too-expensive"
  | "too-old"
  | "from-the-future"
  /** The database refuses its values, whatever else is in the batch. */
  | "database"
  | GrantRefusal;

export interface Refusal {
  readonly reason: UsageRefusal;
  readonly detail?: string;
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const model = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const integerMax = 2 ** 31 - 1;
const attemptMax = 2 ** 15 - 1;
/** So that no price overflows 64 bits. */
const factorMax = 1_000_000_000n;
/** As in the database, and twice what the dearest request of a catalogue costs. Nine thousand of them fit into a sum. */
const millicreditsMax = 1_000_000_000_000_000n;
/**
 * How far the clock that a request was accepted by may have been ahead of ours: ours may have been set back since, or be
 * another router's. The time is in the request's id, which its grant vouches for, so that no node can make it up.
 */
const aheadMsMax = 366 * 86_400_000;

/** `oldestMs`: the beginning of the oldest day that is kept. */
export function refusalOf(record: UsageRecord, oldestMs: number, nowMs: number): UsageRefusal | undefined {
  if (!isWellFormed(record)) return "malformed";
  if (creditsOf(record.promptTokens, record.completionTokens, record.factor) > millicreditsMax) return "too-expensive";
  const acceptedMs = uuidv7TimeMs(record.requestId);
  if (acceptedMs < oldestMs) return "too-old";
  if (acceptedMs > nowMs + aheadMsMax) return "from-the-future";
  return undefined;
}

/** Whatever money depends on. Measurements beside it are taken as far as they make sense. */
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

/** A measurement as a whole number that fits its column; undefined if it is none. */
export function measurement(value: number | undefined): number | undefined {
  const whole = Math.round(value ?? NaN);
  return isCount(whole) ? whole : undefined;
}
