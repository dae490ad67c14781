/**
 * Caches API keys in memory. A key is loaded at its first use. It is dropped when the database's numbered change log names
 * the key, its user or its account. The log is polled every 2 s on a separate connection, and at once after a
 * notification. While the database is unreachable, cached keys stay valid for `trustMsMax`.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { SingleFlight } from "@weiche/shared/time/single-flight.ts";
import type { Database } from "../db/database.ts";
import { listen } from "../db/listener.ts";
import { openPromptQueries, type PromptQueries } from "../db/prompt-queries.ts";
import { hashApiKey, isApiKey } from "./api-key.ts";
import { judge, lookUpKey, type CachedKey } from "./cached-key.ts";
import type { Caller, KeyCache, KeyRefusal } from "./caller.ts";

export interface KeyCacheEvents {
  keyChangesRead(durationMs: number): void;
  /** The change log cannot be read. Cached keys stay valid until `trustMsMax` is over. */
  keyChangesUnreadable(error: unknown): void;
  keyLookupFailed(error: unknown): void;
}

export interface KeyCacheOptions {
  readonly pollMs?: number;
  /** How long cached keys stay valid without a successful poll. */
  readonly trustMsMax?: number;
  readonly keysMax?: number;
  readonly unknownKeysMax?: number;
  /** If false, the cache polls without listening for notifications. */
  readonly hints?: boolean;
}

export interface OpenKeyCache extends KeyCache, AsyncDisposable {
  /** Time since changes were last read. */
  readonly ageMs: number;
  /** Drops all keys. Call it after a failover: a database that lost changes gives their numbers to other changes. */
  forgetAll(): void;
}

const unknown: KeyRefusal = { refused: "invalid_api_key", why: "unknown" };
const changesMax = 1_000;
const lookupsMax = 3;
const awayRetrySeconds = { min: 2, max: 30 };
/** Limits of a poll: a pause and two attempts take at most 5 s, within which a change must be known. */
const pollLimits = { connectionsMax: 1, attemptMsMax: 1_500, allMsMax: 3_000 };

/** Resolves after the first read of the change log. */
export async function createKeyCache(
  database: Database,
  clock: Clock,
  events: KeyCacheEvents,
  options: KeyCacheOptions = {},
): Promise<OpenKeyCache> {
  const cache = new DatabaseKeyCache(database, clock, events, options);
  await cache.open();
  return cache;
}

class DatabaseKeyCache implements OpenKeyCache {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #events: KeyCacheEvents;
  readonly #options: Required<KeyCacheOptions>;
  readonly #open = new AsyncDisposableStack();
  /** A separate connection, because revocations must not wait for long queries of the pool. */
  readonly #changes: PromptQueries;
  /** Keys by `hashApiKey`, oldest first. */
  readonly #known = new Map<string, CachedKey>();
  readonly #unknown = new Set<string>();
  readonly #looking = new Map<string, Promise<CachedKey | undefined>>();
  /** Number of the last applied change. */
  #applied = -1n;
  #newsMs: number;
  readonly #polls: SingleFlight;

  constructor(database: Database, clock: Clock, events: KeyCacheEvents, options: KeyCacheOptions) {
    this.#database = database;
    this.#clock = clock;
    this.#events = events;
    this.#options = {
      pollMs: 2_000,
      trustMsMax: 600_000,
      keysMax: 200_000,
      unknownKeysMax: 10_000,
      hints: true,
      ...options,
    };
    this.#newsMs = clock.monotonicMs();
    this.#polls = new SingleFlight(clock, () => this.#poll(), this.#options.pollMs);
    const doubts = { lost: () => database.doubt(), idleLost: () => {} };
    this.#changes = this.#open.use(openPromptQueries(database.connection, clock, doubts, pollLimits));
  }

  async open(): Promise<void> {
    await this.#applyChanges();
    const { connection } = this.#database;
    const hint = () => this.#polls.wish();
    if (this.#options.hints) this.#open.use(await listen(connection, "weiche_changes", this.#clock, hint));
    this.#polls.wish(this.#options.pollMs);
  }

  get ageMs(): number {
    return this.#clock.monotonicMs() - this.#newsMs;
  }

  find(key: string, atMs: number = this.#clock.now()): Caller | KeyRefusal | Promise<Caller | KeyRefusal> {
    const hash = hashApiKey(key);
    if (this.ageMs <= this.#options.trustMsMax) {
      const known = this.#known.get(hash);
      if (known) return judge(known, atMs);
      if (this.#unknown.has(hash)) return unknown;
    }
    return isApiKey(key) ? this.#find(hash, atMs) : unknown;
  }

  async #find(hash: string, atMs: number): Promise<Caller | KeyRefusal> {
    let looking = this.#looking.get(hash);
    if (!looking) {
      looking = this.#lookUp(hash).finally(() => this.#looking.delete(hash));
      this.#looking.set(hash, looking);
    }
    try {
      const found = await looking;
      return found ? judge(found, atMs) : unknown;
    } catch (error) {
      this.#events.keyLookupFailed(error);
      // A database that has been away for some time will probably stay away for as long again.
      const retryAfterSeconds = Math.min(Math.max(this.ageMs / 1_000, awayRetrySeconds.min), awayRetrySeconds.max);
      throw new ApiError("overloaded", "The API key cannot be checked at the moment.", { retryAfterSeconds });
    }
  }

  async #lookUp(hash: string): Promise<CachedKey | undefined> {
    for (let attempt = 1; ; attempt++) {
      const { number, key } = await lookUpKey(this.#database.prompt, hash);
      // A result that is older than an applied change may miss it, so it is not cached.
      if (number >= this.#applied) this.#keep(hash, key);
      else if (attempt < lookupsMax) continue;
      return key;
    }
  }

  #keep(hash: string, key: CachedKey | undefined): void {
    if (key) keepYoungest(this.#known.set(hash, key), this.#options.keysMax);
    else keepYoungest(this.#unknown.add(hash), this.#options.unknownKeysMax);
  }

  /** Polls, then schedules the next poll. Never rejects. */
  async #poll(): Promise<void> {
    try {
      await this.#applyChanges();
    } catch (error) {
      this.#events.keyChangesUnreadable(error);
    }
    this.#polls.wish(this.#options.pollMs);
  }

  async #applyChanges(): Promise<void> {
    const beganMs = this.#clock.monotonicMs();
    const { rows } = await this.#changes.query<Change>({
      name: "changes-since",
      text: `select c.number as latest, n.number, n.kind, n.subject from change_counter c
        left join changes n on n.number > $1 order by n.number limit ${changesMax + 1}`,
      values: [this.#applied],
    });
    this.#events.keyChangesRead(this.#clock.monotonicMs() - beganMs);
    const latest = rows[0]!.latest;
    const changes = rows.filter(({ number }) => number !== null);
    // The list has gaps if old changes were deleted or the database was restored from a backup.
    const complete = changes.length <= changesMax && BigInt(changes.length) === latest - this.#applied;
    if (complete) this.#forget(changes);
    else this.forgetAll();
    this.#applied = latest;
    this.#newsMs = this.#clock.monotonicMs();
  }

  forgetAll(): void {
    this.#known.clear();
    this.#unknown.clear();
  }

  #forget(changes: readonly Change[]): void {
    if (changes.length === 0) return;
    const subjects = new Set(changes.map(({ subject }) => subject));
    for (const [hash, { keyId, userId, accountId }] of this.#known)
      if (subjects.has(keyId) || subjects.has(userId) || subjects.has(accountId)) this.#known.delete(hash);
    if (changes.some(({ kind }) => kind === "key")) this.#unknown.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const polled = this.#polls[Symbol.asyncDispose]();
    await this.#open.disposeAsync();
    await polled;
  }
}

interface Change {
  readonly latest: bigint;
  readonly number: bigint | null;
  readonly kind: "account" | "user" | "key" | null;
  readonly subject: string;
}

function keepYoungest(entries: Map<string, unknown> | Set<string>, max: number): void {
  for (const oldest of entries.keys()) {
    if (entries.size <= max) return;
    entries.delete(oldest);
  }
}
