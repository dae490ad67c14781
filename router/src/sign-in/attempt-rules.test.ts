import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { unknownAddress } from "../edge/client-network.ts";
import { forgottenMs, judgeAttempt, subjectsOf, type Attempt, type AttemptRow, type Purpose } from "./attempt-rules.ts";

const dayMs = 86_400_000;
const whom = "ada@example.com";
const home: Attempt = { source: "192.0.2.7", whom };
const session: Attempt = { source: "203.0.113.80", whom, sessionId: "0190a0a0-0000-7000-8000-000000000001" };
/** Makes an attempt from one of many networks from which the person never signs in. */
const foreign = (n: number): Attempt =>
  n % 2 ? { source: `10.${(n >> 8) & 255}.${n & 255}.9`, whom } : { source: `2001:db8:${n.toString(16)}::1`, whom };

/** The buckets of the database, in memory. */
class Buckets {
  readonly #rows = new Map<string, AttemptRow>();

  take(purpose: Purpose, attempt: Attempt, nowMs: number): number {
    const empty = { level: 0, atMs: nowMs, knownUntilMs: null };
    const rowOf = (key: string) => this.#rows.get(key) ?? empty;
    const { waitMs, after } = judgeAttempt(subjectsOf(purpose, attempt), rowOf, nowMs);
    if (waitMs === 0) for (const { key, level, atMs } of after) this.#rows.set(key, { ...rowOf(key), level, atMs });
    return waitMs;
  }

  recognise(attempt: Attempt, nowMs: number): void {
    for (const purpose of ["login", "code"] as const)
      for (const { kind, key } of subjectsOf(purpose, attempt))
        if (kind === "pair") this.#rows.set(key, { level: 0, atMs: nowMs, knownUntilMs: nowMs + 90 * dayMs });
  }
}

type Step =
  | { readonly kind: "guess"; readonly purpose: "login" | "code"; readonly network: number; readonly times: number }
  | { readonly kind: "wait"; readonly ms: number };

const steps = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant("guess" as const),
      purpose: fc.constantFrom("login" as const, "code" as const),
      network: fc.nat(60_000),
      times: fc.integer({ min: 1, max: 150 }),
    }),
    fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(2 * dayMs) }),
  ),
  { maxLength: 60 },
);

/** Returns the number of admitted attempts. */
function guess(buckets: Buckets, { purpose, network, times }: Step & { kind: "guess" }, nowMs: number): number {
  let passed = 0;
  for (let n = 0; n < times; n++) if (buckets.take(purpose, foreign(network + n), nowMs) === 0) passed++;
  return passed;
}

describe("unlimited guesses from any number of foreign networks", () => {
  test("never lock a person out in an open session or in a network of a sign-in within 30 days [E5]", () => {
    fc.assert(
      fc.property(steps, (all: readonly Step[]) => {
        const buckets = new Buckets();
        let nowMs = Date.parse("2026-11-14T10:30:00Z");
        let signedInMs = nowMs;
        buckets.recognise(home, nowMs);
        for (const step of all) {
          if (step.kind === "guess") guess(buckets, step, nowMs);
          else nowMs += step.ms;
          if (nowMs - signedInMs > 30 * dayMs) return;
          for (const purpose of ["login", "code"] as const) {
            expect(buckets.take(purpose, home, nowMs)).toBe(0);
            expect(buckets.take(purpose, session, nowMs)).toBe(0);
          }
          // A sign-in makes the network known again. The session's bucket leaks this attempt within the hour.
          buckets.recognise(home, (signedInMs = nowMs));
          nowMs += 3_600_000;
        }
      }),
      { numRuns: 100 },
    );
  });

  test("can try at most 16 codes on a day and 2,200 in a year [E5]", () => {
    const buckets = new Buckets();
    let [day, year, most, network] = [0, 0, 0, 0];
    for (let hour = 0; hour < 365 * 24; hour++) {
      if (hour % 24 === 0) day = 0;
      const passed = guess(
        buckets,
        { kind: "guess", purpose: "code", network: (network += 20), times: 20 },
        hour * 3_600_000,
      );
      [day, year] = [day + passed, year + passed];
      most = Math.max(most, day);
    }
    expect([most <= 16, year <= 2_200]).toEqual([true, true]);
    // Three of a million codes are right at any time.
    expect(1 - (1 - 3e-6) ** year).toBeLessThan(0.007);
  });
});

test("guesses in a session count only against this session", () => {
  const buckets = new Buckets();
  const guesses = Array.from({ length: 20 }, () => buckets.take("code", session, 0));
  expect(guesses.filter((waitMs) => waitMs === 0).length).toBe(10);
  expect(buckets.take("code", { ...session, sessionId: "0190a0a0-0000-7000-8000-000000000002" }, 0)).toBe(0);
  expect(buckets.take("code", { source: session.source, whom }, 0)).toBe(0);
});

test("guesses from a known network are limited, too, and do not use up the limit of other networks", () => {
  const buckets = new Buckets();
  buckets.recognise(home, 0);
  expect(Array.from({ length: 20 }, () => buckets.take("code", home, 0)).filter((ms) => ms === 0).length).toBe(10);
  expect(guess(buckets, { kind: "guess", purpose: "code", network: 1, times: 20 }, 0)).toBe(10);
});

test("clients with an unknown address do not block each other's sign-ins, and do not become known", () => {
  const unknown = (whom?: string): Attempt => ({ source: unknownAddress, ...(whom !== undefined && { whom }) });
  const kinds = (purpose: Purpose) =>
    subjectsOf(purpose, unknown(whom))
      .map(({ kind }) => kind)
      .toSorted();
  expect([kinds("login"), kinds("reset")]).toEqual([
    ["pair", "person"],
    ["network", "person"],
  ]);
  const buckets = new Buckets();
  for (let n = 0; n < 500; n++) expect(buckets.take("login", unknown(`eve-${n}@example.com`), n)).toBe(0);
  expect(buckets.take("login", unknown(whom), 500)).toBe(0);
});

test("a full bucket is empty before its row may be deleted", () => {
  for (const purpose of ["login", "code", "link", "register", "reset", "invite"] as const) {
    const subjects = [home, session].flatMap((attempt) => subjectsOf(purpose, attempt));
    for (const { rule } of subjects) expect(rule.burst * rule.leakMs).toBeLessThanOrEqual(forgottenMs);
  }
});
