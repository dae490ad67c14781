/** Reads the record at the beginning of an agent's answer. */
import { readRecord, readWaited, type AnswerKind } from "@weiche/shared/node-protocol.ts";

interface AnswerHead {
  readonly status: number;
  /** Undefined if the kind is missing or of a later version. */
  readonly kind: AnswerKind | undefined;
  readonly retryAfterSeconds: number;
  readonly waited: string | undefined;
  readonly estimatedMs: number | undefined;
}

/** The largest count that the wire carries. */
const countMax = 999_999_999_999;

/**
 * Returns undefined if the text is not such a record. Missing fields at the end are empty. Fields of later versions are
 * ignored.
 */
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
