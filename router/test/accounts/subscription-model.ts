/** A simple model of the service's rules for packages that advances day by day, and generators of random histories. */
import type { PackageName } from "../../src/db/schema.ts";
import fc from "fast-check";
import { timeZone } from "../../src/subscriptions/billing-period.ts";
import { servicePackages } from "@weiche/shared/packages.ts";
import type { SubscriptionAction } from "../../src/subscriptions/subscription-rules.ts";

/** Number of histories: few in a quick run, many by night, or `WEICHE_HISTORIES`. */
export const histories = Number(process.env["WEICHE_HISTORIES"] ?? (process.env["WEICHE_NIGHTLY"] ? 3_000 : 300));
/** Maximum number of steps of a history; a step is six days on average. The nightly run tries longer histories. */
export const stepsMax = histories > 300 ? 360 : 120;
export const historiesMsMax = histories > 300 ? 3_600_000 : 180_000;

/** The terms of a package from an instant on. The first terms also apply before their instant. */
interface ModelTerms {
  readonly fromMs: number;
  readonly cents: number;
  readonly credits: number;
  readonly trialDays: number;
}

type ModelBook = Record<string, readonly ModelTerms[]>;

export function modelBook(): ModelBook {
  const entries = servicePackages.map(({ name, versions }) => {
    const [{ validFromMs, priceCents, creditsPerMonth, trialDays }] = versions as [(typeof versions)[number]];
    return [name, [{ fromMs: validFromMs, cents: priceCents, credits: Number(creditsPerMonth), trialDays }]];
  });
  return Object.fromEntries(entries) as ModelBook;
}

export class Model {
  readonly book: ModelBook;
  /** The terms of the current period. */
  booked: ModelTerms = { fromMs: 0, cents: 0, credits: 0, trialDays: 0 };
  name: PackageName | undefined;
  trial = false;
  hadTrial = false;
  start = 0;
  end = Temporal.PlainDate.from("2000-01-01");
  day = 0;
  next: PackageName | undefined;
  cents = 0;
  used = 0;

  constructor(book: ModelBook = modelBook()) {
    this.book = book;
  }
  terms(name: PackageName, atMs: number): ModelTerms {
    const versions = this.book[name]!;
    return versions.toSorted((a, b) => b.fromMs - a.fromMs).find(({ fromMs }) => fromMs <= atMs) ?? versions[0]!;
  }
  begin(name: PackageName, date: Temporal.PlainDate, startMs: number, isFree = false): void {
    const booked = this.terms(name, startMs);
    Object.assign(this, { name, next: name, trial: false, start: startMs, used: 0, booked });
    const month = date.toPlainYearMonth().add({ months: 1 });
    this.end = month.toPlainDate({ day: Math.min(this.day, month.daysInMonth) });
    this.cents += isFree ? 0 : booked.cents;
  }
  liveUntil(nowMs: number): void {
    while (this.name && this.end.toZonedDateTime(timeZone).epochMilliseconds <= nowMs) {
      if (this.trial) this.day = this.end.day;
      if (!this.next) Object.assign(this, { name: undefined, used: 0 });
      else this.begin(this.next, this.end, this.end.toZonedDateTime(timeZone).epochMilliseconds);
    }
  }
  /** Performs an action. Returns false if the rules refuse it. */
  act(kind: SubscriptionAction["kind"], wish: PackageName, today: Temporal.PlainDate, nowMs: number): boolean {
    const asked = this.terms(wish, nowMs);
    const larger = this.name !== undefined && asked.cents > this.booked.cents;
    const endMs = this.end.toZonedDateTime(timeZone).epochMilliseconds;
    const cheaperThen = this.name && this.terms(wish, endMs).cents < this.terms(this.name, endMs).cents;
    if (kind === "trial" && !this.name && !this.hadTrial) {
      this.day = today.day;
      this.begin("Starter", today, nowMs, true);
      Object.assign(this, { trial: true, hadTrial: true, end: today.add({ days: this.booked.trialDays }) });
    } else if ((kind === "order" && !this.name) || (["order", "upgrade"].includes(kind) && this.trial && larger)) {
      this.day = today.day;
      this.begin(wish, today, nowMs);
    } else if (kind === "upgrade" && larger) {
      const first = Temporal.Instant.fromEpochMilliseconds(this.start).toZonedDateTimeISO(timeZone).toPlainDate();
      const difference = asked.cents - this.booked.cents;
      this.cents += Math.round((difference * today.until(this.end).days) / first.until(this.end).days);
      Object.assign(this, { name: wish, next: wish, booked: asked });
    } else if (kind === "downgrade" && this.name && !this.trial && this.next && cheaperThen) this.next = wish;
    else if (kind === "cancel" && this.name && this.next) this.next = undefined;
    else if (kind === "withdraw" && this.name && this.next !== this.name) this.next = this.name;
    else return false;
    return true;
  }
}

/** Makes lists of every length up to the maximum. fast-check alone makes only short lists. */
export const lengths = (minLength: number, maxLength: number) => ({ minLength, maxLength, size: "max" }) as const;

export const step = fc.record({
  // Often whole days, so that periods end in between, and sometimes to the exact instant of a midnight.
  waitMs: fc.oneof(fc.integer({ min: 1, max: 20 * 86_400_000 }), fc.integer({ min: 1, max: 3 * 86_400_000 })),
  toMidnight: fc.boolean(),
  kind: fc.constantFrom<SubscriptionAction["kind"]>("trial", "order", "upgrade", "downgrade", "cancel", "withdraw"),
  package: fc.constantFrom(...servicePackages.map(({ name }) => name)),
  credits: fc.nat(1_000_000),
});

/** New terms of one package after `inMs`, at a midnight or within a day. */
export const newTerms = fc.record({
  package: fc.constantFrom(...servicePackages.map(({ name }) => name)),
  inMs: fc.integer({ min: 0, max: 100 * 86_400_000 }),
  toMidnight: fc.boolean(),
  cents: fc.integer({ min: 1, max: 30_000 }),
  credits: fc.integer({ min: 1_000_000, max: 700_000_000 }),
  trialDays: fc.integer({ min: 1, max: 90 }),
});

export function moved(nowMs: number, waitMs: number, toMidnight: boolean): number {
  const later = Temporal.Instant.fromEpochMilliseconds(nowMs + waitMs).toZonedDateTimeISO(timeZone);
  return toMidnight ? Math.max(nowMs + 2, later.startOfDay().epochMilliseconds) : later.epochMilliseconds;
}
