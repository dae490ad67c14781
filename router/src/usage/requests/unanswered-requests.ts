/**
 * Keeps requests of known keys that got no answer, for the list of requests: refused ones, and those whose client left
 * before the first byte. They wait in memory until `flush` writes them, and nothing waits for them. They are not billed, so
 * a killed router may lose its last ones. Pure apart from `flush` and `forgetUnanswered`.
 */
import type { Pool } from "pg";
import type { AccountId, KeyId, ModelId, RequestId, UserId } from "@weiche/shared/ids.ts";
import type { WallClock } from "@weiche/shared/time/clock.ts";
import { lowestId } from "../usage-days.ts";
import type { RefusalCode } from "../refusal-codes.ts";

export interface UnansweredRequest {
  readonly requestId: RequestId;
  readonly accountId: AccountId;
  readonly userId: UserId;
  readonly keyId: KeyId;
  readonly model?: ModelId | undefined;
  /** Undefined if the client left. */
  readonly code?: RefusalCode | undefined;
  /** 0 if no status was sent. */
  readonly status: number;
  readonly durationMs: number;
}

/** A row for one request, or for several alike from this one on. */
interface Row extends UnansweredRequest {
  requests: number;
}

/** An account gets this many rows of its own in a minute. More requests become sums: a row for all alike in a flush. */
export const rowsPerMinuteMax = 60;
/** Maximum number of rows between two flushes. More requests are only counted (`refusals`). */
const rowsMax = 20_000;
const minuteMs = 60_000;

export class UnansweredRequests {
  readonly #pool: Pool;
  readonly #clock: WallClock;
  readonly #rowsMax: number;
  #rows: Row[] = [];
  #sums = new Map<string, Row>();
  #minute = 0;
  readonly #rowsOfMinute = new Map<AccountId, number>();

  constructor(pool: Pool, clock: WallClock, max: number = rowsMax) {
    this.#pool = pool;
    this.#clock = clock;
    this.#rowsMax = max;
  }

  add(request: UnansweredRequest): void {
    const { accountId, keyId, model, code } = request;
    const minute = Math.floor(this.#clock.now() / minuteMs);
    if (minute !== this.#minute) this.#rowsOfMinute.clear();
    this.#minute = minute;
    const rows = this.#rowsOfMinute.get(accountId) ?? 0;
    if (rows < rowsPerMinuteMax) {
      this.#rowsOfMinute.set(accountId, rows + 1);
      return void this.#push({ ...request, requests: 1 });
    }
    const alike = `${keyId} ${code} ${model}`;
    const sum = this.#sums.get(alike);
    if (sum) return void sum.requests++;
    const first = { ...request, requests: 1 };
    if (this.#push(first)) this.#sums.set(alike, first);
  }

  #push(row: Row): boolean {
    if (this.#rows.length >= this.#rowsMax) return false;
    this.#rows.push(row);
    return true;
  }

  /** Writes the rows. If it rejects, the next call writes them again. */
  async flush(): Promise<void> {
    const taken = this.#rows;
    if (taken.length === 0) return;
    this.#rows = [];
    this.#sums = new Map();
    try {
      await insert(this.#pool, taken);
    } catch (error) {
      this.#rows = [...taken, ...this.#rows].slice(0, this.#rowsMax);
      throw error;
    }
  }
}

async function insert(pool: Pool, rows: readonly Row[]): Promise<void> {
  await pool.query({
    name: "add-unanswered-requests",
    text: `
      insert into unanswered_requests
        (request_id, account_id, user_id, key_id, model, code, status, duration_ms, requests)
      select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::smallint[],
        $8::integer[], $9::integer[])
      on conflict do nothing`,
    values: [
      rows.map(({ requestId }) => requestId),
      rows.map(({ accountId }) => accountId),
      rows.map(({ userId }) => userId),
      rows.map(({ keyId }) => keyId),
      rows.map(({ model }) => model ?? null),
      rows.map(({ code }) => code ?? null),
      rows.map(({ status }) => status),
      rows.map(({ durationMs }) => Math.round(durationMs)),
      rows.map(({ requests }) => requests),
    ],
  });
}

/** One statement deletes at most this many rows, so that none takes long. */
const forgottenPerStep = 10_000;

/** Deletes requests from before `oldestMs`. */
export async function forgetUnanswered(pool: Pool, oldestMs: number): Promise<void> {
  let step = forgottenPerStep;
  while (step === forgottenPerStep) {
    const { rowCount } = await pool.query(
      `delete from unanswered_requests where request_id in
        (select request_id from unanswered_requests where request_id < $1 order by request_id limit ${forgottenPerStep})`,
      [lowestId(oldestMs)],
    );
    step = rowCount ?? 0;
  }
}
