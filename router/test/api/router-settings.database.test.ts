/** Tests settings of `router.yaml` whose effect takes time, with a whole router on virtual time. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7 } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createAccounts } from "../../src/accounts/accounts.ts";
import { loadRouterConfig } from "../../src/config/config.ts";
import { createRouter } from "../../src/context.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import type { Database } from "../../src/db/database.ts";
import { testDatabases, temporaryFolder, until, type TestDatabases } from "../db/database-fixture.ts";
import { makeRecord } from "../usage/usage-records.ts";
import { auditOf } from "../accounts/whole-lists.ts";

const dayMs = 86_400_000;
const folder = temporaryFolder();
let server: TestDatabases;
beforeAll(async () => {
  server = await testDatabases();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Starts a router on this database with a YAML file that contains these settings. */
async function startRouter({ connection }: Database, clock: VirtualClock, settings: string) {
  const file = join(folder.path, "router.yaml");
  const listeners = ["api", "portal", "console", "nodes", "data", "ops"]
    .map((name) => `${name}: "127.0.0.1:0"`)
    .join(", ");
  writeFileSync(
    file,
    `catalogue: ${join(import.meta.dirname, "../../../deploy/catalogue.yaml")}
dataDir: data
database: { url: "${connection.connectionString!}" }
listen: { ${listeners} }
logLevel: fatal
${settings}
`,
    { mode: 0o600 },
  );
  const router = await createRouter(loadRouterConfig(file, {}), { clock, random: () => 0.5 });
  return { ...router, [Symbol.asyncDispose]: () => router.close() };
}

test("credits.evaluateSeconds: a used-up quota is noticed this long after the start and not before", async () => {
  const database = await server.newDatabase();
  const clock = new VirtualClock(Date.parse("2026-11-14T10:30:00Z"));
  const accounts = createAccounts({ database, clock, portalUrl: "" });
  const { id, ownerUserId } = await accounts.create({ name: "A", ownerEmail: "a@example.com", package: "Starter" });
  clock.advance(1_000);
  await makeUsageDays(database.pool, [clock.now()]);
  const record = makeRecord(createRandom(1), clock.now(), {
    requestId: asId(uuidv7(clock)),
    accountId: id,
    userId: asId(ownerUserId),
    promptTokens: 5_000_000,
    factor: millicredits(1_000n),
  });
  await commitUsage(database.pool, [{ node: asId("node-1"), record }]);
  /** Runs a router for this time and returns whether the quota was found exhausted. A begun evaluation ends first. */
  async function exhaustedAfter(ms: number): Promise<boolean> {
    {
      await using _router = await startRouter(
        database,
        clock,
        "credits: { evaluateSeconds: 7 }\nshutdownAcceptSeconds: 0",
      );
      clock.advance(ms);
    }
    return (await database.pool.query("select from accounts where exhausted_until is not null")).rowCount === 1;
  }
  expect(await exhaustedAfter(6_999)).toBe(false);
  expect(await exhaustedAfter(7_000)).toBe(true);
});

test("retention: usage records, refused requests and entries of the audit log are removed after their days", async () => {
  const database = await server.newDatabase();
  const startMs = Date.parse("2026-11-14T10:30:00Z");
  const accounts = (agoDays: number) =>
    createAccounts({ database, clock: new VirtualClock(startMs - agoDays * dayMs), portalUrl: "" });
  const { id, ownerUserId } = await accounts(9).create({ name: "A", ownerEmail: "a@example.com" });
  await accounts(7).keys.create(asId(ownerUserId), { name: "ci" });
  await accounts(5).keys.create(asId(ownerUserId), { name: "cd" });
  await makeUsageDays(
    database.pool,
    [4, 3, 2].map((agoDays) => startMs - agoDays * dayMs),
  );

  for (const agoDays of [3, -100])
    await database.pool.query("insert into unanswered_requests values ($1, $2, $2, $2, null, 'timeout', 504, 1, 1)", [
      uuidv7({ now: () => startMs - agoDays * dayMs }),
      id,
    ]);

  const clock = new VirtualClock(startMs);
  await using _router = await startRouter(
    database,
    clock,
    "retention: { usageDays: 3, requestDays: 2, auditDays: 8 }\nshutdownAcceptSeconds: 0",
  );
  const oldestDay = async () => {
    const { rows } = await database.pool.query<{ day: string }>(
      "select min(right(inhrelid::regclass::text, 8)) as day from pg_inherits where inhparent = 'usage_records'::regclass",
    );
    return rows[0]!.day;
  };
  const numbers = async () => (await auditOf(database, id)).map(({ number }) => number);
  expect(await oldestDay()).toBe("20261111");
  await until("the first entry to be removed", 20_000, async () => (await numbers()).length === 2);
  await until("the next day and the next entry to be removed a day later", 20_000, async () => {
    clock.advance(3_600_000);
    return (await oldestDay()) > "20261111" && (await numbers()).length < 2;
  });
  expect((await database.pool.query("select from unanswered_requests")).rowCount).toBe(1);
});

test("shutdownAcceptSeconds: a stopping router is unready at once and serves for this time [R2]", async () => {
  const clock = new VirtualClock();
  const router = await startRouter(await server.newDatabase(), clock, "shutdownAcceptSeconds: 7");
  const { listen } = router;
  const statusOf = (address: string, path: string) =>
    fetch(`http://${address}${path}`).then(
      ({ status }) => status,
      () => "refused",
    );
  expect(await statusOf(listen.ops, "/readyz")).toBe(200);
  const closed = router.close();
  expect(await statusOf(listen.ops, "/readyz")).toBe(503);
  clock.advance(6_999);
  expect(await statusOf(listen.api, "/v1/models")).toBe(401);
  const page = await fetch(`http://${listen.portal}/openapi.json`);
  expect([page.status, page.headers.get("connection")]).toEqual([200, "close"]);
  clock.advance(1);
  await until(
    "the router refuses connections",
    5_000,
    async () => (await statusOf(listen.api, "/v1/models")) === "refused",
  );
  await closed;
});
