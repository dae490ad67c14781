import fc from "fast-check";
import { expect, test } from "vitest";
import {
  histories,
  historiesMsMax,
  lengths,
  Model,
  modelBook,
  moved,
  newTerms,
  step,
  stepsMax,
} from "../../test/accounts/subscription-model.ts";
import { timeZone } from "./billing-period.ts";
import { RequestError } from "../rights/request-error.ts";
import { serviceBook, type EffectiveTerms, type PackageBook } from "./packages.ts";
import {
  bookedSpans,
  bookedTerms,
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

function changeOrNone(
  terms: readonly Term[],
  action: SubscriptionAction,
  nowMs: number,
  book: PackageBook,
): readonly Term[] | undefined {
  try {
    return changeTerms(terms, action, nowMs, book);
  } catch (error) {
    if (error instanceof RequestError) return undefined;
    throw error;
  }
}

/** Returns the service's packages with further terms, for the model and for the rules. `comings`: in order of time. */
function booksOf(startMs: number, comings: readonly Coming[]) {
  const ofModel = modelBook();
  let atMs = startMs;
  for (const { package: name, inMs, toMidnight, ...terms } of comings) {
    atMs = moved(atMs, inMs + 2, toMidnight);
    ofModel[name] = [...ofModel[name]!, { fromMs: atMs, ...terms }];
  }
  const versionsOf = (name: string, one: EffectiveTerms) =>
    ofModel[name]!.map(({ fromMs, cents, credits, trialDays }) => {
      return { ...one, effectiveFromMs: fromMs, priceCents: cents, creditsPerMonth: BigInt(credits), trialDays };
    });
  const packages = [...serviceBook.values()].map((one) => {
    return [one.name, { ...one, versions: versionsOf(one.name, one.versions[0]!) }] as const;
  });
  return { ofModel, book: new Map(packages) as PackageBook };
}

type Coming = typeof newTerms extends fc.Arbitrary<infer T> ? T : never;

test(
  "after any history of changes and new terms, state, charges and quota equal the model's, and periods have no gap or overlap [A3 A6]",
  { timeout: historiesMsMax },
  () => {
    const history = fc.array(step, lengths(20, stepsMax));
    fc.assert(
      fc.property(
        fc.integer({ min: ms("2026-01-01T00:00Z"), max: ms("2028-12-31T00:00Z") }),
        history,
        fc.array(newTerms, { maxLength: 20 }),
        (startMs, steps, comings) => {
          const { ofModel, book } = booksOf(startMs, comings);
          const model = new Model(ofModel);
          const usedIn = new Map<number, number>();
          let terms: readonly Term[] = [];
          let nowMs = startMs;
          for (const { waitMs, toMidnight, kind, package: name, credits } of steps) {
            nowMs = moved(nowMs, waitMs, toMidnight);
            model.liveUntil(nowMs);
            const today = Temporal.Instant.fromEpochMilliseconds(nowMs).toZonedDateTimeISO(timeZone).toPlainDate();
            const accepted = model.act(kind, name, today, nowMs);
            const changed = changeOrNone(terms, { kind, package: name } as SubscriptionAction, nowMs, book);
            expect(changed !== undefined).toBe(accepted);
            terms = changed ?? terms;
            nowMs += 1;
            model.liveUntil(nowMs); // this millisecond may be the last of a period
            const term = termAt(terms, nowMs);
            expect(term && [term.package, term.state]).toEqual(
              model.name && [model.name, model.trial ? "trial" : "active"],
            );
            expect(chargesOf(terms, nowMs, book).reduce((sum, { cents }) => sum + cents, 0)).toBe(model.cents);
            if (!term) continue;
            const period = periodIn(term, nowMs);
            const booked = bookedTerms(term, nowMs, book);
            expect([booked.priceCents, Number(booked.creditsPerMonth)]).toEqual([
              model.booked.cents,
              model.booked.credits,
            ]);
            // The key cache uses these spans.
            const spans = bookedSpans(term, book.get(term.package)!.versions);
            expect(spans.find(({ startMs: from, endMs }) => from <= nowMs && nowMs < endMs)?.booked).toBe(booked);
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
