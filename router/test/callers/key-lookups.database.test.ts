/** When a key cache queries the database, and which changes make it query again. */
import { describe, expect, test } from "vitest";
import type { QueryConfig, QueryResultRow } from "pg";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { hashApiKey, makeApiKey } from "../../src/callers/api-key.ts";
import type { Database } from "../../src/db/database.ts";
import type { PromptQueries } from "../../src/db/prompt-queries.ts";
import { until } from "../db/database-fixture.ts";
import {
  accountId,
  accounts,
  database,
  hourMs,
  keyCachesOfFile,
  openCache,
  readsMs,
  userId,
  why,
} from "./key-cache-rig.ts";

await keyCachesOfFile();

/** Counts the statements of the request path that run meanwhile. */
async function queriesDuring(work: () => Promise<unknown>): Promise<number> {
  const { prompt } = database;
  const real = prompt.query;
  let queries = 0;
  Object.assign(prompt, { query: (query: QueryConfig) => (queries++, real(query)) });
  await work();
  Object.assign(prompt, { query: real });
  return queries;
}

/** Waits until a new poll begins. */
async function nextPoll(): Promise<void> {
  const { rows } = await database.pool.query<{ now: string }>("select clock_timestamp()::text as now");
  const begun = `select from pg_stat_activity where datname = current_database() and query_start > $1
    and query like 'select c.number as latest%'`;
  await until("a poll begins", 2_000, async () => (await database.pool.query(begun, [rows[0]!.now])).rowCount! > 0);
}

/** A database whose answers to key lookups are held until `letGo`. */
function slowLookups(of: Database) {
  const waiting: (() => void)[] = [];
  const prompt: PromptQueries = {
    async query<Row extends QueryResultRow>(query: QueryConfig) {
      const answer = await of.prompt.query<Row>(query);
      if (query.name === "look-up-key") await new Promise<void>((resolve) => waiting.push(resolve));
      return answer;
    },
  };
  return {
    database: { ...of, prompt },
    waiting,
    letGo: () => waiting.splice(0).forEach((go) => go()),
  };
}

describe("the database is queried", () => {
  test("never for a text that cannot be a key", async () => {
    await using cache = await openCache({ pollMs: hourMs, hints: false });
    const { key } = await accounts.keys.create(userId, { name: "ci" });
    const guesses = [
      "",
      "sk-weiche-",
      "sk-other",
      `${key}x`,
      key.slice(0, -1),
      key.replace(/.$/, (last) => (last === "0" ? "1" : "0")),
    ];
    expect(await queriesDuring(() => Promise.all(guesses.map((guess) => why(cache, guess))))).toBe(0);
    expect(await Promise.all(guesses.map((guess) => why(cache, guess)))).toEqual(guesses.map(() => "unknown"));
  });

  test("once for concurrent lookups of a key, and once for those of an unknown key", async () => {
    await using cache = await openCache({ pollMs: hourMs, hints: false });
    const { key } = await accounts.keys.create(userId, { name: "ci" });
    const stranger = makeApiKey();
    for (const wanted of [key, stranger]) {
      const often = () => Promise.all(Array.from({ length: 50 }, () => why(cache, wanted)));
      expect(await queriesDuring(often)).toBe(1);
      expect(await queriesDuring(often)).toBe(0);
    }
  });

  test("again for an unknown key that the bounded list has dropped", async () => {
    await using cache = await openCache({ pollMs: hourMs, hints: false, unknownKeysMax: 3 });
    const strangers = Array.from({ length: 4 }, makeApiKey);
    for (const stranger of strangers) await why(cache, stranger);
    expect(await queriesDuring(() => why(cache, strangers[3]!))).toBe(0);
    expect(await queriesDuring(() => why(cache, strangers[0]!))).toBe(1);
  });

  test("again when a change arrives before the result", async () => {
    const slow = slowLookups(database);
    await using cache = await openCache({ hints: false, pollMs: 20 }, systemClock, slow.database);
    const { key, id } = await accounts.keys.create(userId, { name: "ci" });
    const first = why(cache, key);
    await until("the old result is held", 2_000, () => slow.waiting.length === 1);
    await accounts.keys.revoke(id);
    for (let polls = 0; polls < 2; polls++) await nextPoll(); // the second poll begins after the first was applied
    slow.letGo();
    await until("the cache queries again", 2_000, () => slow.waiting.length === 1);
    slow.letGo();
    expect(await first).toBe("revoked");
  });
});

test("each poll reports how long the database took", async () => {
  const before = readsMs.length;
  await using _cache = await openCache({ hints: false, pollMs: 20 });
  await until("the cache has polled three times", 2_000, () => readsMs.length >= before + 3);
  expect(readsMs.slice(before).every((ms) => ms > 0 && ms < 5_000)).toBe(true);
});

test("a new key that was looked up before it existed works within a second", async () => {
  await using cache = await openCache({ pollMs: hourMs });
  const key = makeApiKey();
  expect(await why(cache, key)).toBe("unknown");
  await database.pool.query(
    `insert into api_keys (id, account_id, user_id, hash, last_four, name, created_at)
     values (gen_random_uuid(), $1, $2, $3, 'abcd', 'late', now())`,
    [accountId, userId, hashApiKey(key)],
  );
  await until("the new key works", 1_000, async () => (await why(cache, key)) === "admitted");
  expect(await why(cache, key)).toBe("admitted");
});

test.each([
  ["changes are missing", "delete from changes"],
  [
    "the database is an older copy",
    "update change_counter set number = number / 2; delete from changes where number > (select number from change_counter)",
  ],
])("all cached keys are dropped when %s", async (_what, harm) => {
  await using cache = await openCache({ hints: false, pollMs: 20 });
  const { key, id } = await accounts.keys.create(userId, { name: "ci" });
  expect(await why(cache, key)).toBe("admitted");
  await accounts.users.setBlocked(userId, false); // makes a change that can be lost
  const client = await database.pool.connect();
  await client.query("begin; alter table api_keys disable trigger keys_changed");
  await client.query("update api_keys set revoked_at = now() where id = $1", [id]);
  await client.query(
    `update change_counter set number = number + 1; ${harm}; alter table api_keys enable trigger all; commit`,
  );
  client.release();
  await until("the key is read again", 2_000, async () => (await why(cache, key)) === "revoked");
  expect(await why(cache, key)).toBe("revoked");
});
