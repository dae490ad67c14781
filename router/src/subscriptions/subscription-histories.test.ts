import fc from "fast-check";
import { expect, test } from "vitest";
import {
  histories,
  historiesMsMax,
  lengths,
  Model,
  moved,
  step,
  stepsMax,
} from "../../test/accounts/subscription-model.ts";
import { timeZone } from "./billing-period.ts";
import { Refused } from "../rights/refused.ts";
import {
  changeTerms,
  chargesOf,
  nextChargeMs,
  pendingOf,
  periodIn,
  termAt,
  type SubscriptionAction,
  type Term,
} from "./subscription-rules.ts";

const ms = (text: string) => Temporal.Instant.from(text).epochMilliseconds;

function changeOrNone(terms: readonly Term[], action: SubscriptionAction, nowMs: number): readonly Term[] | undefined {
  try {
    return changeTerms(terms, action, nowMs);
  } catch (error) {
    if (error instanceof Refused) return undefined;
    throw error;
  }
}

test(
  "any history of years ends in the state, money and quota of the model, in periods without gap or overlap",
  { timeout: historiesMsMax },
  () => {
    const history = fc.array(step, lengths(20, stepsMax));
    fc.assert(
      fc.property(
        fc.integer({ min: ms("2026-01-01T00:00Z"), max: ms("2028-12-31T00:00Z") }),
        history,
        (startMs, steps) => {
          const model = new Model();
          const usedIn = new Map<number, number>();
          let terms: readonly Term[] = [];
          let nowMs = startMs;
          for (const { waitMs, toMidnight, kind, package: name, credits } of steps) {
            nowMs = moved(nowMs, waitMs, toMidnight);
            model.liveUntil(nowMs);
            const today = Temporal.Instant.fromEpochMilliseconds(nowMs).toZonedDateTimeISO(timeZone).toPlainDate();
            const accepted = model.act(kind, name, today, nowMs);
            const changed = changeOrNone(terms, { kind, package: name } as SubscriptionAction, nowMs);
            expect(changed !== undefined).toBe(accepted);
            terms = changed ?? terms;
            nowMs += 1;
            model.liveUntil(nowMs); // this millisecond may be the last of a period
            const term = termAt(terms, nowMs);
            expect(term && [term.package, term.state]).toEqual(
              model.name && [model.name, model.trial ? "trial" : "active"],
            );
            expect(chargesOf(terms, nowMs).reduce((sum, { cents }) => sum + cents, 0)).toBe(model.cents);
            if (!term) continue;
            const period = periodIn(term, nowMs);
            expect(period.endMs).toBe(model.end.toZonedDateTime(timeZone).epochMilliseconds);
            expect(pendingOf(terms, nowMs)?.package).toBe(model.next === model.name ? undefined : (model.next ?? null));
            expect(nextChargeMs(terms, nowMs)).toBe(model.next ? period.endMs : undefined);
            // Usage is booked under the start of its period, as in the ledger.
            usedIn.set(period.startMs, (usedIn.get(period.startMs) ?? 0) + credits);
            model.used += credits;
            expect(usedIn.get(period.startMs)).toBe(model.used);
          }
          for (const [index, term] of terms.entries()) {
            expect(term.startMs).toBeLessThan(term.endMs);
            expect(term.startMs).toBeGreaterThanOrEqual(terms[index - 1]?.endMs ?? -Infinity);
          }
        },
      ),
      { numRuns: histories },
    );
  },
);
