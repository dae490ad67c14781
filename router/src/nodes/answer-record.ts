/** Reads the record with which an agent begins an answer. */
import { readRecord, readWaited, type AnswerKind } from "@weiche/shared/node-protocol.ts";

interface AnswerHead {
  readonly status: number;
  /** Undefined: one of a later version, or missing. */
  readonly kind: AnswerKind | undefined;
  readonly retryAfterSeconds: number;
  readonly waited: string | undefined;
  readonly estimatedMs: number | undefined;
}

/** The largest count that the wire carries. */
const countMax = 999_999_999_999;

/** Undefined: it is no such record. Fields that are missing at the end are empty, and later ones unknown. */
export function readAnswerRecord(text: string): AnswerHead | undefined {
  const [status, kind = "", retryAfterSeconds = 0, waited = "", estimatedMs = 0] = readRecord(text);
  if (!isCount(status) || status < 200 || status > 599) return undefined;
  if (typeof kind !== "string" || !isCount(retryAfterSeconds) || typeof waited !== "string") return undefined;
  return {
    ...{ status, retryAfterSeconds, kind: kinds.find((one) => one === kind), waited: readWaited(waited) },
    estimatedMs: isCount(estimatedMs) && estimatedMs > 0 ? estimatedMs : undefined,
  };
}

const kinds: readonly AnswerKind[] = ["events", "json", "text"];

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= countMax;
}
