import { expect, test } from "vitest";
import { billingFaults, type Evidence, type Made, type Outage, type Received } from "./billing-check.ts";
import type { DumpedRecord, DumpedSum } from "./usage-dump.ts";

const atMs = 1_000_000;
const whole: Received = {
  ...{ mark: 1, kind: "json", ending: "whole", id: "r1", status: 200, pieces: 0 },
  ...{ usage: { prompt_tokens: 10, completion_tokens: 41, total_tokens: 51 }, endedAtMs: atMs },
};
const left: Received = { mark: 1, kind: "stream", ending: "left", id: "r1", status: 200, pieces: 5, endedAtMs: atMs };
const refused: Received = { mark: 1, kind: "json", ending: "refused", id: "r1", pieces: 0, endedAtMs: atMs };
const record: DumpedRecord = {
  ...{ requestId: "r1", attempt: 1, node: "node-2", accountId: "a", userId: "u", keyId: "k", model: "m" },
  ...{ day: "2026-11-22", outcome: "finished", promptTokens: 10, completionTokens: 41, credits: 51n },
};
const onNode1: DumpedRecord = { ...record, node: "node-1", completionTokens: 40, credits: 50n };
const made: Made = {
  ...{ node: "node-2", id: "r1", mark: 1, path: "/v1/chat/completions", fields: [], itlMs: 100 },
  ...{ prompt_tokens: 10, generated: 41, finished: true, aborted: false },
  ...{ startedAtMs: atMs - 3_000, firstTokenAtMs: atMs - 2_000, closedAtMs: atMs },
};
const voided = (one: DumpedRecord): DumpedRecord => ({
  ...{ ...one, outcome: "void", promptTokens: 0, completionTokens: 0, credits: 0n },
});

/** Checks these answers and records with correct sums and with engines that received all requests. */
function faultsOf(received: readonly Received[], records: readonly DumpedRecord[], more: Partial<Evidence> = {}) {
  const counted = records.filter(({ outcome }) => outcome !== "void");
  const total = (of: string): DumpedSum => ({
    of,
    requests: BigInt(counted.length),
    promptTokens: counted.reduce((sum, { promptTokens }) => sum + BigInt(promptTokens), 0n),
    completionTokens: counted.reduce((sum, { completionTokens }) => sum + BigInt(completionTokens), 0n),
    credits: counted.reduce((sum, { credits }) => sum + credits, 0n),
  });
  const totals = ["account a", "user a u", "key a k", "model a m"].map(total);
  const usage = { records, totals, days: [total("day a 2026-11-22 u k m")] };
  const nodeOf = (tokens: number) => (tokens === 41 ? "node-2" : "node-1");
  return billingFaults({ received, made: [made], usage, outages: [], nodeOf, ...more });
}

test.each<[what: string, received: Received, records: readonly DumpedRecord[]]>([
  ["a whole answer is billed once", whole, [record]],
  ["the other attempt of a request is void", whole, [voided(onNode1), { ...record, attempt: 2 }]],
  [
    "a client that left pays the tokens made until then",
    left,
    [{ ...record, outcome: "client-ended", completionTokens: 8 }],
  ],
  ["an error costs nothing", refused, [voided(record)]],
])("right: %s", (_, received, records) => {
  expect(faultsOf([received], records)).toEqual([]);
});

test.each<[what: string, received: readonly Received[], records: readonly DumpedRecord[], fault: RegExp]>([
  [
    "two attempts cost",
    [whole],
    [onNode1, { ...record, attempt: 2 }],
    /billed 2 times: attempt 1 on node-1.*attempt 2/,
  ],
  ["a whole answer costs nothing", [whole], [voided(record)], /is not billed/],
  ["the other node's usage", [whole], [onNode1], /was received with 10 \+ 41 tokens/],
  ["the node that did not answer", [whole], [{ ...record, node: "node-1" }], /was answered by node-2/],
  ["an error costs", [refused], [record], /refused\) costs something/],
  ["a client that left pays the whole answer", [left], [record], /left when at most 31 tokens were made/],
  ["a client that left pays less than it received", [left], [{ ...record, completionTokens: 2 }], /received 5 tokens/],
  ["a client that left after two seconds pays nothing", [left], [], /is not billed/],
  ["a record belongs to no request", [], [{ ...record, requestId: "r9" }], /no client asked r9/],
])("wrong: %s", (_, received, records, fault) => {
  const faults = faultsOf(received, records);
  expect(faults).toHaveLength(1);
  expect(faults[0]).toMatch(fault);
});

test("totals and days that differ from the sums of the records are reported", () => {
  const usage = { records: [record], totals: [], days: [] };
  expect(faultsOf([whole], [record], { usage })).toEqual(
    ["account a", "user a u", "key a k", "model a m", "day a 2026-11-22 u k m"].map(
      (of) => `the sum of ${of} is nothing, that of its records 1 requests, 10 + 41 tokens, 51 credits`,
    ),
  );
});

test("a whole answer just before its router is killed may be free, but never costs twice", () => {
  const outage = (what: Outage["what"], fromMs: number): Partial<Evidence> => ({
    outages: [{ what, fromMs, untilMs: fromMs + 5_000 }],
  });
  expect(faultsOf([whole], [], outage("router killed", atMs + 900))).toEqual([]);
  expect(faultsOf([whole], [], outage("router killed", atMs + 1_100))).toHaveLength(1);
  expect(faultsOf([whole], [], outage("agent killed", atMs + 900))).toHaveLength(1);
  expect(faultsOf([left], [], outage("agent killed", atMs + 900))).toEqual([]);
  expect(faultsOf([whole], [onNode1, { ...record, attempt: 2 }], outage("router killed", atMs))).toHaveLength(1);
});

test("a client that left without output may owe nothing if something failed during its attempt, and not before it", () => {
  const outage = (fromMs: number): Partial<Evidence> => ({
    outages: [{ what: "engine killed", fromMs, untilMs: fromMs + 200 }],
  });
  const silent: Received = { ...left, kind: "json", pieces: 0 };
  expect(faultsOf([silent], [], outage(made.startedAtMs + 1_000))).toEqual([]);
  expect(faultsOf([silent], [], outage(made.startedAtMs - 1_000))).toHaveLength(1);
  expect(faultsOf([left], [], outage(made.startedAtMs + 1_000))).toHaveLength(1);
});
