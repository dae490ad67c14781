/**
 * Collects the usage of the last week as a load, in columns that take 22 bytes for a request. Reads hour by hour into the
 * past, and stops after a million requests, so that the memory is bounded.
 */
import type { Pool } from "pg";
import { Histogram } from "../engine/histogram.ts";
import type { Load, LoadRequest } from "../load.ts";
import { readPaidTrace } from "../loads/usage-trace.ts";

const hourMs = 3_600_000;
const hoursMax = 7 * 24;
export const requestsMax = 1_000_000;
/** So few that parsing a page delays streams by a few milliseconds. */
const pageRows = 1_000;
/** Shorter answers tell little about the speed of an engine. */
const tellingTokens = 8;

/** The requests of one hour. Plain data, for a thread. */
interface UsageHour {
  readonly atMs: Float64Array;
  readonly model: Uint16Array;
  readonly account: Uint32Array;
  readonly inputTokens: Uint32Array;
  readonly outputTokens: Uint32Array;
}

/** What a week's usage tells about a model. */
export interface ModelUsage {
  requests: number;
  tokens: number;
  credits: bigint;
  /** Milliseconds of each token after the first, by answers. */
  readonly msPerToken: Histogram;
}

export interface OwnUsage {
  /** The newest first. */
  readonly hours: readonly UsageHour[];
  readonly models: ReadonlyMap<string, ModelUsage>;
  readonly requests: number;
  /** Milliseconds since 1970. */
  readonly fromMs: number;
  readonly toMs: number;
}

interface Reading {
  /** Called after each hour. Returns whether to go on. */
  readonly goOn: (share: number) => boolean;
  readonly requestsMax?: number;
}

/** Returns undefined if it was stopped. */
export async function readOwnUsage(
  pool: Pool,
  toMs: number,
  { goOn, requestsMax: most = requestsMax }: Reading,
): Promise<OwnUsage | undefined> {
  const models = new Map<string, ModelUsage>();
  const numbers = { models: new Map<string, number>(), accounts: new Map<string, number>() };
  const hours: UsageHour[] = [];
  let requests = 0;
  for (let hour = 1; hour <= hoursMax && requests < most; hour++) {
    const rows: Row[] = [];
    const window = { fromMs: toMs - hour * hourMs, toMs: toMs - (hour - 1) * hourMs };
    let after: string | undefined;
    do {
      const page = await readPaidTrace(pool, { ...window, after }, pageRows);
      for (const { accountId, model, credits, msPerToken, ...request } of page.items) {
        note(models.getOrInsertComputed(model, newUsage), { ...request, credits, msPerToken });
        rows.push({
          ...request,
          model: numberOf(numbers.models, model),
          account: numberOf(numbers.accounts, accountId),
        });
      }
      after = page.after ?? undefined;
      if (!goOn((hour - 1) / hoursMax)) return undefined;
    } while (after !== undefined && requests + rows.length < most);
    requests += rows.length;
    hours.push(columnsOf(rows));
  }
  return { hours, models, requests, fromMs: toMs - hours.length * hourMs, toMs };
}

interface Row {
  readonly atMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly model: number;
  readonly account: number;
}

function newUsage(): ModelUsage {
  return { requests: 0, tokens: 0, credits: 0n, msPerToken: new Histogram() };
}

function note(
  usage: ModelUsage,
  one: Pick<Row, "inputTokens" | "outputTokens"> & { readonly credits: bigint; readonly msPerToken: number | null },
): void {
  usage.requests++;
  usage.tokens += one.inputTokens + one.outputTokens;
  usage.credits += one.credits;
  if (one.msPerToken !== null && one.outputTokens >= tellingTokens) usage.msPerToken.add(one.msPerToken);
}

function numberOf(numbers: Map<string, number>, name: string): number {
  return numbers.getOrInsertComputed(name, () => numbers.size);
}

function columnsOf(rows: readonly Row[]): UsageHour {
  return {
    atMs: Float64Array.from(rows, ({ atMs }) => atMs),
    model: Uint16Array.from(rows, ({ model }) => model),
    account: Uint32Array.from(rows, ({ account }) => account),
    inputTokens: Uint32Array.from(rows, ({ inputTokens }) => inputTokens),
    outputTokens: Uint32Array.from(rows, ({ outputTokens }) => outputTokens),
  };
}

/**
 * The requests in order. `served` gives the model that each model's requests are for, or undefined if nobody serves them.
 */
export function loadOfHours(
  hours: readonly UsageHour[],
  fromMs: number,
  served: readonly (string | undefined)[],
): Load {
  return {
    *[Symbol.iterator]() {
      for (const hour of hours.toReversed())
        for (let index = 0; index < hour.atMs.length; index++) {
          const model = served[hour.model[index]!];
          if (model !== undefined) yield requestAt(hour, index, fromMs, model);
        }
    },
  };
}

function requestAt(hour: UsageHour, index: number, fromMs: number, model: string): LoadRequest {
  return {
    ...{ atMs: hour.atMs[index]! - fromMs, account: `${hour.account[index]!}`, model },
    ...{ inputTokens: hour.inputTokens[index]!, outputTokens: hour.outputTokens[index]! },
  };
}
