import type { PackageName } from "../db/schema.ts";
import { describe, expect, test } from "vitest";
import { timeZone } from "./billing-period.ts";
import { serviceBook } from "./packages.ts";
import { RequestError } from "../rights/request-error.ts";
import {
  changeTerms,
  chargesOf,
  pendingOf,
  periodIn,
  termAt,
  type SubscriptionAction,
  type Term,
} from "./subscription-rules.ts";

const berlin = (text: string) => Temporal.PlainDateTime.from(text).toZonedDateTime(timeZone).epochMilliseconds;
const textOf = (ms: number) =>
  Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone).toPlainDateTime().toString();

type Step = readonly [at: string, action: SubscriptionAction["kind"], name?: PackageName];

function after(...steps: readonly Step[]): readonly Term[] {
  return steps.reduce<readonly Term[]>(
    (terms, [at, kind, name]) =>
      changeTerms(terms, { kind, package: name } as SubscriptionAction, berlin(at), serviceBook),
    [],
  );
}

/** Returns an account's view at an instant: "no package", or state, package, end of the period and pending change. */
function seen(terms: readonly Term[], at: string): string {
  const nowMs = berlin(at);
  const term = termAt(terms, nowMs);
  if (!term) return "no package";
  const pending = pendingOf(terms, nowMs);
  const then = pending ? `, then ${pending.package ?? "none"}` : "";
  return `${term.state} ${term.package} until ${textOf(periodIn(term, nowMs).endMs).slice(0, 16)}${then}`;
}

function charged(terms: readonly Term[], until: string, book = serviceBook): string[] {
  return chargesOf(terms, berlin(until), book).map(
    ({ reason, package: name, startMs, endMs, days, periodDays, cents }) =>
      `${reason} ${name} ${textOf(startMs).slice(0, 10)}/${textOf(endMs).slice(0, 10)} ${days}/${periodDays} ${cents}`,
  );
}

function isRefused(terms: readonly Term[], [at, kind, name]: Step): boolean {
  try {
    changeTerms(terms, { kind, package: name } as SubscriptionAction, berlin(at), serviceBook);
    return false;
  } catch (error) {
    if (error instanceof RequestError) return true;
    throw error;
  }
}

describe("no package", () => {
  test("a trial is free for 30 days and then becomes Starter at 7 EUR [S16.2]", () => {
    const terms = after(["2026-11-14T10:30", "trial"]);
    expect(seen(terms, "2026-11-14T10:30")).toBe("trial Starter until 2026-12-14T00:00");
    expect(seen(terms, "2026-12-14T00:00")).toBe("active Starter until 2027-01-14T00:00");
    expect(charged(terms, "2026-12-13T23:59:59.999")).toEqual([]);
    expect(charged(terms, "2027-01-13T23:59")).toEqual(["package Starter 2026-12-14/2027-01-14 31/31 700"]);
  });

  test("an account has one trial, also after an earlier package [S16.2]", () => {
    const cancelled = after(["2026-11-14T10:30", "trial"], ["2026-11-15T00:00", "cancel"]);
    expect(isRefused(cancelled, ["2026-12-14T00:00", "trial"])).toBe(true);
    expect(isRefused(after(["2026-11-14T10:30", "trial"]), ["2026-11-14T10:31", "trial"])).toBe(true);
    const bought = after(["2026-11-14T10:30", "order", "Pro"], ["2026-11-15T00:00", "cancel"]);
    expect(
      seen(changeTerms(bought, { kind: "trial" }, berlin("2027-02-01T00:00"), serviceBook), "2027-02-10T00:00"),
    ).toBe("trial Starter until 2027-03-03T00:00");
  });

  test("an order begins a billing period [S16.3]", () => {
    const terms = after(["2026-01-31T15:00", "order", "Pro"]);
    expect(seen(terms, "2026-01-31T15:00")).toBe("active Pro until 2026-02-28T00:00");
    expect(seen(terms, "2026-02-28T00:00")).toBe("active Pro until 2026-03-31T00:00");
    expect(charged(terms, "2026-03-31T00:00")).toEqual([
      "package Pro 2026-01-31/2026-02-28 28/28 3500",
      "package Pro 2026-02-28/2026-03-31 31/31 3500",
      "package Pro 2026-03-31/2026-04-30 30/30 3500",
    ]);
  });

  test.each(["upgrade", "downgrade", "cancel", "withdraw"] as const)("%s is refused", (kind) => {
    expect(isRefused([], ["2026-11-14T10:30", kind, "Pro"])).toBe(true);
  });
});

describe("trial", () => {
  const trial: Step = ["2026-11-14T10:30", "trial"];

  test.each(["order", "upgrade"] as const)(
    "%s of a larger package ends the trial at once and begins a new period at the full price [S16.4]",
    (kind) => {
      const terms = after(trial, ["2026-11-20T18:00", kind, "Pro"]);
      expect(seen(terms, "2026-11-20T18:00")).toBe("active Pro until 2026-12-20T00:00");
      expect(charged(terms, "2026-12-19T00:00")).toEqual(["package Pro 2026-11-20/2026-12-20 30/30 3500"]);
      const over = changeTerms(terms, { kind: "cancel" }, berlin("2026-11-21T00:00"), serviceBook);
      expect(isRefused(over, ["2027-01-01T00:00", "trial"])).toBe(true);
    },
  );

  test("a cancelled trial runs to its end and is not charged; the cancellation can be withdrawn until then [S16.2]", () => {
    const terms = after(trial, ["2026-12-13T23:59:59.999", "cancel"]);
    expect(seen(terms, "2026-12-13T23:59:59.999")).toBe("trial Starter until 2026-12-14T00:00, then none");
    expect(seen(terms, "2026-12-14T00:00")).toBe("no package");
    expect(charged(terms, "2030-01-01T00:00")).toEqual([]);
    expect(isRefused(terms, ["2026-12-14T00:00", "withdraw"])).toBe(true);
    const withdrawn = changeTerms(terms, { kind: "withdraw" }, berlin("2026-12-13T23:59:59.999"), serviceBook);
    expect(withdrawn).toEqual(after(trial));
  });

  test("a trial cannot be downgraded or replaced by its own package, and has nothing to withdraw", () => {
    expect(isRefused(after(trial), ["2026-11-15T00:00", "downgrade", "Starter"])).toBe(true);
    expect(isRefused(after(trial), ["2026-11-15T00:00", "upgrade", "Starter"])).toBe(true);
    expect(isRefused(after(trial), ["2026-11-15T00:00", "withdraw"])).toBe(true);
  });

  test("a trial is one period, also over a month of fewer than 30 days", () => {
    const terms = after(["2026-02-10T12:00", "trial"]);
    expect(seen(terms, "2026-03-11T12:00")).toBe("trial Starter until 2026-03-12T00:00");
  });
});

describe("active package", () => {
  const pro: Step = ["2026-11-14T10:30", "order", "Pro"];

  test("an upgrade applies at once and costs the difference for the remaining days, the current day included [S16.5]", () => {
    const terms = after(pro, ["2026-11-25T14:03", "upgrade", "Business"]);
    expect(seen(terms, "2026-11-25T14:03")).toBe("active Business until 2026-12-14T00:00");
    expect(charged(terms, "2026-12-14T00:00")).toEqual([
      "package Pro 2026-11-14/2026-12-14 30/30 3500",
      "upgrade Business 2026-11-25/2026-12-14 19/30 5953",
      "package Business 2026-12-14/2027-01-14 31/31 12900",
    ]);
  });

  test("an upgrade stays in the same billing period [S16.6]", () => {
    const terms = after(pro, ["2026-11-25T14:03", "upgrade", "Business"]);
    expect(periodIn(termAt(terms, berlin("2026-12-01T00:00"))!, berlin("2026-12-01T00:00"))).toEqual(
      periodIn(termAt(terms, berlin("2026-11-14T10:30"))!, berlin("2026-11-14T10:30")),
    );
  });

  test.each([
    ["2026-11-14T23:59:59.999", "30/30 9400"],
    ["2026-11-15T00:00", "29/30 9087"],
    ["2026-12-13T23:59:59.999", "1/30 313"],
  ])("an upgrade at %s costs %s [S16.5]", (at, sum) => {
    expect(charged(after(pro, [at, "upgrade", "Business"]), "2026-12-13T23:59:59.999")[1]).toContain(sum);
  });

  test.each([
    ["downgrade", ["2026-11-20T00:00", "downgrade", "Starter"]],
    ["cancellation", ["2026-11-20T00:00", "cancel"]],
  ] as const)("an upgrade withdraws a pending %s [S16.7]", (_what, pending) => {
    const terms = after(pro, pending, ["2026-11-25T00:00", "upgrade", "Business"]);
    expect(seen(terms, "2026-11-25T00:00")).toBe("active Business until 2026-12-14T00:00");
    expect(seen(terms, "2027-02-01T00:00")).toBe("active Business until 2027-02-14T00:00");
  });

  test("a downgrade keeps the old package until the period ends; the smaller one follows in the same rhythm [S16.8]", () => {
    const terms = after(["2026-01-31T15:00", "order", "Business"], ["2026-02-01T00:00", "downgrade", "Pro"]);
    expect(seen(terms, "2026-02-27T23:59")).toBe("active Business until 2026-02-28T00:00, then Pro");
    expect(seen(terms, "2026-02-28T00:00")).toBe("active Pro until 2026-03-31T00:00");
    expect(charged(terms, "2026-02-28T00:00")).toEqual([
      "package Business 2026-01-31/2026-02-28 28/28 12900",
      "package Pro 2026-02-28/2026-03-31 31/31 3500",
    ]);
    expect(
      seen(changeTerms(terms, { kind: "withdraw" }, berlin("2026-02-27T23:59"), serviceBook), "2026-03-01T00:00"),
    ).toBe("active Business until 2026-03-31T00:00");
    expect(isRefused(terms, ["2026-02-28T00:00", "withdraw"])).toBe(true);
  });

  test("a cancelled package ends with its period, and the cancellation can be withdrawn until then [S16.9]", () => {
    const terms = after(pro, ["2026-11-20T00:00", "cancel"]);
    expect(seen(terms, "2026-12-13T23:59")).toBe("active Pro until 2026-12-14T00:00, then none");
    expect(seen(terms, "2026-12-14T00:00")).toBe("no package");
    expect(changeTerms(terms, { kind: "withdraw" }, berlin("2026-12-13T23:59"), serviceBook)).toEqual(after(pro));
    expect(isRefused(terms, ["2026-12-14T00:00", "withdraw"])).toBe(true);
    expect(isRefused(terms, ["2026-11-21T00:00", "cancel"])).toBe(true);
    expect(isRefused(terms, ["2026-11-21T00:00", "downgrade", "Starter"])).toBe(true);
  });

  test("a cancellation or a new downgrade replaces a pending downgrade", () => {
    const business = after(["2026-11-14T10:30", "order", "Business"], ["2026-11-15T00:00", "downgrade", "Pro"]);
    const smaller = changeTerms(
      business,
      { kind: "downgrade", package: "Starter" },
      berlin("2026-11-16T00:00"),
      serviceBook,
    );
    expect(seen(smaller, "2026-11-16T00:00")).toContain("then Starter");
    const none = changeTerms(smaller, { kind: "cancel" }, berlin("2026-11-17T00:00"), serviceBook);
    expect(seen(none, "2026-11-17T00:00")).toContain("then none");
  });

  test.each([
    ["order", "Business"],
    ["trial", undefined],
    ["upgrade", "Pro"],
    ["upgrade", "Starter"],
    ["downgrade", "Pro"],
    ["downgrade", "Business"],
    ["withdraw", undefined],
  ] as const)("%s %s is refused", (kind, name) => {
    expect(isRefused(after(pro), ["2026-11-20T00:00", kind, name])).toBe(true);
  });
});

test("an order after a cancelled package begins a new rhythm", () => {
  const terms = after(
    ["2026-11-14T10:30", "order", "Pro"],
    ["2026-11-20T00:00", "cancel"],
    ["2027-01-05T09:00", "order", "Starter"],
  );
  expect(seen(terms, "2027-01-05T08:59:59.999")).toBe("no package");
  expect(seen(terms, "2027-01-05T09:00")).toBe("active Starter until 2027-02-05T00:00");
});

test("an upgrade at the exact start of a period is charged beside the old package, and nothing twice", () => {
  const terms = after(["2026-11-14T10:30", "order", "Pro"], ["2026-12-14T00:00", "upgrade", "Business"]);
  expect(charged(terms, "2026-12-14T00:01").slice(1)).toEqual([
    "package Pro 2026-12-14/2027-01-14 31/31 3500",
    "upgrade Business 2026-12-14/2027-01-14 31/31 9400",
  ]);
  const atOnce = after(["2026-11-14T10:30", "trial"], ["2026-11-14T10:30", "upgrade", "Pro"]);
  expect(atOnce.every(({ startMs, endMs }) => startMs < endMs)).toBe(true);
});
