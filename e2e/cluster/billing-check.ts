/**
 * Checks the bills from three sources: what clients received, what the simulated engines generated, and the database. It
 * uses nothing that a router or an agent reports about a request, because these are under test.
 */
import type { LedgerEntry } from "../sim-engine/ledger.ts";
import type { Answer } from "./api-client.ts";
import type { DumpedRecord, DumpedSum, UsageDump } from "./usage-dump.ts";

/** A request as its client saw it. */
export interface Received extends Pick<Answer, "ending" | "id" | "pieces" | "endedAtMs"> {
  /** Identifies the request at the engines, also if its client received no request id. */
  readonly mark: number;
  readonly kind: "stream" | "json" | "embeddings";
  readonly status?: number;
  readonly usage?: Answer["usage"];
  readonly error?: { readonly code: string };
}

/** A request that an engine received. */
export interface Made extends LedgerEntry {
  readonly node: string;
  /** The engine's time per token. It limits how many tokens were generated before the client left. */
  readonly itlMs: number;
}

/** A failure with its first and last moment in wall time. */
export interface Outage {
  readonly what:
    | "router killed"
    | "agent killed"
    | "agent stopped"
    | "engine killed"
    | "database killed"
    | "link silent";
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface Evidence {
  readonly received: readonly Received[];
  readonly made: readonly Made[];
  readonly usage: UsageDump;
  readonly outages: readonly Outage[];
  /** Returns the node whose engine gives answers of this length. If undefined, lengths do not identify nodes. */
  readonly nodeOf?: (completionTokens: number) => string | undefined;
}

/**
 * The longest time until the agent and its engine learn that a client left, and until the router confirms a delivered
 * answer. The checker does not know the exact time, so it accepts the cheaper bill:
 * - A client that left during an outage, or within this time before, may owe nothing, because the news may be lost.
 * - A whole answer within this time before its router was killed may be free, because its delivery may be unconfirmed.
 * - A client that left may owe the tokens generated within this time afterwards.
 */
const newsMsMax = 1_000;

/** Returns a sentence for each fault, or an empty list if all bills are right. */
export function billingFaults(evidence: Evidence): string[] {
  return [...new Billing(evidence).faults(), ...sumFaults(evidence.usage)];
}

class Billing {
  readonly #evidence: Evidence;
  readonly #paid: ReadonlyMap<string, readonly DumpedRecord[]>;
  readonly #made: ReadonlyMap<number, readonly Made[]>;

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
    this.#paid = Map.groupBy(evidence.usage.records.filter(costs), ({ requestId }) => requestId);
    this.#made = Map.groupBy(evidence.made, ({ mark = -1 }) => mark);
  }

  *faults(): Iterable<string> {
    const known = new Set<string>();
    for (const one of this.#evidence.received) {
      const made = this.#made.get(one.mark) ?? [];
      const ids = new Set([...(one.id === undefined ? [] : [one.id]), ...made.map(({ id }) => id)]);
      for (const id of ids) known.add(id);
      const paid = [...ids].flatMap((id) => this.#paid.get(id) ?? []);
      const fault = this.#faultOf(one, made, paid);
      if (fault)
        yield `request ${one.mark} (${one.kind}, ${one.ending}${detail(one)}) ${fault}: ${listed(paid)}${this.#story(one, made)}`;
    }
    for (const [id, paid] of this.#paid)
      if (!known.has(id)) yield `no client asked ${id}, and it costs: ${listed(paid)}`;
  }

  #faultOf(one: Received, made: readonly Made[], paid: readonly DumpedRecord[]): string | undefined {
    if (paid.length > 1) return `is billed ${paid.length} times`;
    const [record] = paid;
    switch (one.ending) {
      case "whole":
        return this.#faultOfWhole(one, record);
      case "left":
        return this.#faultOfLeft(one, made, record);
      case "error":
      case "refused":
      case "broken":
        return record && "costs something";
    }
  }

  #faultOfWhole({ usage, endedAtMs }: Received, record: DumpedRecord | undefined): string | undefined {
    if (!usage) return "came without its usage";
    if (!record) return this.#within(endedAtMs, "router killed") ? undefined : "is not billed";
    const { prompt_tokens: prompt, completion_tokens: completion = 0 } = usage;
    const { promptTokens, completionTokens, node } = record;
    if (promptTokens !== prompt || completionTokens !== completion)
      return `was received with ${prompt} + ${completion} tokens`;
    const servedBy = this.#evidence.nodeOf?.(completion) ?? node;
    return servedBy === node ? undefined : `was answered by ${servedBy}`;
  }

  #faultOfLeft(one: Received, made: readonly Made[], record: DumpedRecord | undefined): string | undefined {
    if (!record) {
      const begun = made.some(
        ({ startedAtMs, firstTokenAtMs = Infinity }) =>
          one.endedAtMs - firstTokenAtMs > newsMsMax && // An attempt without output that a failure ends is free, and another node begins.
          this.#outages(startedAtMs, one.endedAtMs).length === 0,
      );
      return (begun || one.pieces > 0) && !this.#within(one.endedAtMs) ? "is not billed" : undefined;
    }
    const its = made.find(({ node }) => node === record.node);
    if (!its) return "is billed by a node whose engine did not meet it";
    if (record.completionTokens < one.pieces && !this.#within(one.endedAtMs)) return `received ${one.pieces} tokens`;
    const most = madeUntil(its, one.endedAtMs + newsMsMax);
    return record.completionTokens > most ? `left when at most ${most} tokens were made` : undefined;
  }

  /** Returns what engines did for the request and what failed meanwhile, in ms before its end. */
  #story({ endedAtMs }: Received, made: readonly Made[]): string {
    const before = (atMs: number | undefined) => (atMs === undefined ? "never" : `${Math.round(endedAtMs - atMs)}`);
    const fromMs = Math.min(endedAtMs, ...made.map(({ startedAtMs }) => startedAtMs)) - newsMsMax;
    const attempts = made.map(
      ({ node, startedAtMs, firstTokenAtMs, closedAtMs }) =>
        `; engine of ${node}: begun ${before(startedAtMs)}, first token ${before(firstTokenAtMs)}, closed ${before(closedAtMs)}`,
    );
    const outages = this.#outages(fromMs, endedAtMs + newsMsMax).map(
      (outage) => `; ${outage.what} ${before(outage.fromMs)} to ${before(outage.untilMs)}`,
    );
    return [...attempts, ...outages].join("");
  }

  /** Returns whether something failed at this time or soon after. */
  #within(atMs: number, what?: Outage["what"]): boolean {
    return this.#outages(atMs, atMs + newsMsMax).some((outage) => what === undefined || outage.what === what);
  }

  /** Returns what failed at some moment of this time. */
  #outages(fromMs: number, untilMs: number): readonly Outage[] {
    return this.#evidence.outages.filter((outage) => outage.fromMs < untilMs && outage.untilMs > fromMs);
  }
}

/** Returns the most tokens that the engine can have generated by then. A killed engine's journal has only the beginning. */
function madeUntil({ generated, firstTokenAtMs, closedAtMs, startedAtMs, itlMs }: Made, atMs: number): number {
  const possible = 1 + Math.max(0, Math.floor((atMs - (firstTokenAtMs ?? startedAtMs)) / itlMs));
  return closedAtMs === undefined ? possible : Math.min(generated, possible);
}

function costs({ promptTokens, completionTokens, credits }: DumpedRecord): boolean {
  return promptTokens > 0 || completionTokens > 0 || credits > 0n;
}

function detail({ status, error }: Received): string {
  return [status, error?.code].map((word) => (word === undefined ? "" : ` ${word}`)).join("");
}

function listed(records: readonly DumpedRecord[]): string {
  const words = records.map(
    ({ attempt, node, outcome, promptTokens, completionTokens }) =>
      `attempt ${attempt} on ${node}, ${outcome}, ${promptTokens} + ${completionTokens}`,
  );
  return words.join("; ") || "no record";
}

/** Returns the totals and days that differ from the sums of the records. */
function* sumFaults({ records, totals, days }: UsageDump): Iterable<string> {
  const expected = new Map<string, DumpedSum>();
  for (const record of records.filter(({ outcome }) => outcome !== "broken" && outcome !== "void")) {
    const { accountId, userId, keyId, model, day } = record;
    add(expected, `account ${accountId}`, record);
    add(expected, `user ${accountId} ${userId}`, record);
    add(expected, `key ${accountId} ${keyId}`, record);
    add(expected, `model ${accountId} ${model}`, record);
    add(expected, `day ${accountId} ${day} ${userId} ${keyId} ${model}`, record);
  }
  const found = new Map([...totals, ...days].map((sum) => [sum.of, sum]));
  for (const of of new Set([...expected.keys(), ...found.keys()])) {
    const [owed, is] = [expected.get(of), found.get(of)].map(summed);
    if (owed !== is) yield `the sum of ${of} is ${is}, that of its records ${owed}`;
  }
}

function add(sums: Map<string, DumpedSum>, of: string, record: DumpedRecord): void {
  const before = sums.get(of) ?? { of, requests: 0n, promptTokens: 0n, completionTokens: 0n, credits: 0n };
  sums.set(of, {
    of,
    requests: before.requests + 1n,
    promptTokens: before.promptTokens + BigInt(record.promptTokens),
    completionTokens: before.completionTokens + BigInt(record.completionTokens),
    credits: before.credits + record.credits,
  });
}

function summed(sum: DumpedSum | undefined): string {
  const { requests = 0n, promptTokens = 0n, completionTokens = 0n, credits = 0n } = sum ?? {};
  if ([requests, promptTokens, completionTokens, credits].every((each) => each === 0n)) return "nothing";
  return `${requests} requests, ${promptTokens} + ${completionTokens} tokens, ${credits} credits`;
}
