/**
 * Computes the last hour of a slot from its past switches: their number and duration, and the active model at each
 * time.
 */
import type { ConsoleHistory } from "../../../../src/surface/contract/console.ts";

type Past = ConsoleHistory["switches"][number];

export const parts = ["drain", "stop", "memory", "start", "probe"] as const;
const hourMs = 3_600_000;

export interface SlotHour {
  /** Newest first. */
  readonly switches: readonly Past[];
  readonly failed: number;
  /** The share of the time, 0 to 1, that the slot spent in switches. */
  readonly share: number;
  /** Seconds of all switches by their parts. */
  readonly seconds: Readonly<Record<(typeof parts)[number], number>>;
  /** An hour, or less if the agent started later. */
  readonly spanMs: number;
  readonly spans: readonly Span[];
}

/**
 * A part of the hour in which the model was active, was switched to, or failed to start. Times are ms from the
 * beginning of the hour.
 */
interface Span {
  readonly kind: "active" | "switching" | "failed";
  readonly model: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Computes the hour. `active`: the model that is active now, if any. */
export function slotHour(history: ConsoleHistory | undefined, active: string | undefined, nowMs: number): SlotHour {
  const startedMs = history ? Date.parse(history.since) : nowMs - hourMs;
  const beginMs = Math.max(nowMs - hourMs, Math.min(startedMs, nowMs));
  const past = (history?.switches ?? []).filter(({ endedAt }) => Date.parse(endedAt) >= beginMs);
  const done = past.filter(({ failed }) => !failed);
  const inHour = (one: Past) => Math.min(one.seconds * 1000, Date.parse(one.endedAt) - beginMs);
  const spanMs = Math.max(1, nowMs - beginMs);
  const total = (part: (typeof parts)[number]) => done.reduce((sum, one) => sum + (one.parts[part] ?? 0), 0);
  return {
    switches: past.toReversed(),
    failed: past.length - done.length,
    share: Math.min(1, done.reduce((sum, one) => sum + inHour(one), 0) / spanMs),
    seconds: {
      drain: total("drain"),
      stop: total("stop"),
      memory: total("memory"),
      start: total("start"),
      probe: total("probe"),
    },
    spanMs,
    spans: spansOf(past, active, beginMs, nowMs),
  };
}

function spansOf(past: readonly Past[], active: string | undefined, beginMs: number, nowMs: number): readonly Span[] {
  const spans: Span[] = [];
  let model = past[0]?.from ?? (past.length === 0 ? active : undefined);
  let atMs = beginMs;
  const add = (kind: Span["kind"], of: string | undefined, fromMs: number, toMs: number) => {
    if (of !== undefined && toMs > fromMs)
      spans.push({ kind, model: of, fromMs: fromMs - beginMs, toMs: toMs - beginMs });
  };
  for (const one of past) {
    const endMs = Math.min(nowMs, Date.parse(one.endedAt));
    const fromMs = Math.max(atMs, endMs - Math.max(one.seconds * 1000, 1_000));
    add("active", model, atMs, fromMs);
    add(one.failed ? "failed" : "switching", one.model, fromMs, endMs);
    model = one.failed ? undefined : one.model;
    atMs = endMs;
  }
  add("active", model, atMs, nowMs);
  return spans;
}
