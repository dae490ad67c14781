/** An account's credits, models and refusals, as the portal shows them. */
import { beforeEach, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type KeyId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { readGrants } from "../../src/usage/grants.ts";
import { createRefusals } from "../../src/usage/refusal-counts.ts";
import { createUsageLedger } from "../../src/usage/usage-ledger.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import { storePeaks } from "../../src/limits/limit-peaks.ts";
import type { Limiter } from "../../src/limits/limiter.ts";
import { MemoryLimiter } from "../../src/limits/memory-limiter.ts";
import { SlotState, type NodeView } from "../../src/nodes/node-view.ts";
import { startPortal, type Person } from "./portal-rig.ts";
import { makeRecord } from "../usage/usage-records.ts";

const dayMs = 86_400_000;
let nodes: readonly NodeView[] = [];
let ada: Person;
let ben: Person;
let adasKey: KeyId;
let bensKey: KeyId;
const clock = new VirtualClock(Date.parse("2026-11-14T09:00:00+01:00"));
const limiter = new MemoryLimiter(clock);
const portal = await forThisFile(startPortal({ clock, parts: () => ({ limiter, nodes: () => nodes }) }));
beforeEach(async () => {
  ada = await portal.newAccount("ACME", { package: "Starter" });
  ben = await portal.newUser(ada, "member");
  adasKey = (await portal.accounts.keys.create(ada.id, { name: "ci" })).id;
  bensKey = (await portal.accounts.keys.create(ben.id, { name: "batch" })).id;
});

/** Records usage of Ada's at factor 1.5. */
async function spend(atMs: number, promptTokens: number): Promise<void> {
  await makeUsageDays(portal.database.pool, [atMs]);
  const record = makeRecord(createRandom(1), atMs, {
    requestId: asId(uuidv7({ now: () => atMs })),
    accountId: ada.accountId,
    userId: ada.id,
    keyId: adasKey,
    promptTokens,
    completionTokens: 0,
    factor: millicredits(1_500n),
  });
  await commitUsage(portal.database.pool, [{ node: asId("node-1"), record }]);
}

const unasked: Omit<Limiter, "use"> = { enter: () => ({ admitted: true }), leave() {} };

describe("credits", () => {
  test("show what is left, how long it lasts, and the request rate", async () => {
    await spend(clock.now() + 60_000, 1_000_000);
    clock.advance(2 * dayMs);
    limiter.enter(ada.accountId, asId("r1"), { perMinute: 30, parallel: 5 });
    limiter.enter(ada.accountId, asId("r2"), { perMinute: 30, parallel: 5 });
    limiter.leave(ada.accountId, asId("r2"));
    await portal.database.pool.query("update users set credit_limit = 2000000000 where id = $1", [ada.id]);
    const { json } = await portal.get("/credits", await portal.signIn(ada)); // the first one has ended
    expect(json).toMatchObject({
      package: "Starter",
      state: "active",
      pending: null,
      quota: "5000000.000",
      used: "1500000.000",
      remaining: "3500000.000",
      rate: { lastMinute: 2, perMinute: 30, parallel: 1, parallelMax: 5, peakMinute: 2, peakParallel: 1 },
      own: { used: "1500000.000", limit: "2000000.000", remaining: "500000.000", hasCalled: true },
    });
    expect(json.forecast).toEqual({
      ...{ perDay: "750000.000", until: expect.stringMatching(/^2026-11-2/) },
      atEnd: expect.stringMatching(/^22\d{6}\.\d{3}$/), // 1.5 million, and 27.6 days
    });
    clock.advance(-2 * dayMs);
    expect((await portal.get("/credits", ben)).json).toMatchObject({
      own: { used: "0.000", limit: null, hasCalled: false },
      hasCalled: true, // by somebody else
    });
  });

  test("show the highest request rates of the last day, of all routers", async () => {
    const { pool } = portal.database;
    const [own, others] = [new MemoryLimiter(clock), new MemoryLimiter(clock)];
    const limits = { perMinute: 30, parallel: 5 };
    const call = (by: MemoryLimiter, from: number, to: number) => {
      for (let n = from; n <= to; n++) by.enter(ada.accountId, asId(`r${n}`), limits);
      for (let n = from; n <= to; n++) by.leave(ada.accountId, asId(`r${n}`));
    };
    call(own, 1, 4);
    await storePeaks(pool, clock, own, own);
    // Another router, and a store that counts for all.
    call(others, 5, 6);
    const shared: Limiter = { ...unasked, use: () => ({ lastMinute: 12, parallel: 3 }) };
    await storePeaks(pool, clock, others, shared);
    const rate = async () => (await portal.get("/credits", await portal.signIn(ada))).json.rate;
    expect(await rate()).toMatchObject({ lastMinute: 0, peakMinute: 12, peakParallel: 4 });
    clock.advance(dayMs - 3_600_000);
    expect(await rate()).toMatchObject({ peakMinute: 12 });
    clock.advance(3 * 3_600_000);
    expect(await rate()).toMatchObject({ peakMinute: 0, peakParallel: 0 });
    const hours = "select hour from limit_peaks where account_id = $1";
    expect((await pool.query(hours, [ada.accountId])).rowCount).toBe(1);
    await storePeaks(pool, clock, new MemoryLimiter(clock), own);
    expect((await pool.query(hours, [ada.accountId])).rowCount).toBe(0);
    clock.advance(-dayMs - 2 * 3_600_000);
  });

  test("tell each person the first steps, until all are done or hidden, for good", async () => {
    const steps = async (who: Person) => (await portal.get("/credits", who)).json.checklist;
    const cleo = await portal.newAccount("Cleo");
    expect(await steps(cleo)).toEqual({ package: false, key: false, call: false, colleagues: false });
    const dora = await portal.newUser(cleo, "admin");
    expect(await steps(cleo)).toMatchObject({ colleagues: true });
    expect(await steps(ben)).toEqual({ package: true, key: true, call: false, colleagues: null });
    await spend(clock.now(), 10);
    expect(await steps(ben)).toMatchObject({ call: false }); // Ada called
    expect(await steps(ada)).toBe(null);
    await portal.accounts.keys.revoke(adasKey);
    expect(await steps(ada)).toBe(null);
    await portal.send("PATCH", "/profile", { checklistHidden: true }, cleo);
    expect([await steps(cleo), await steps(dora)]).toMatchObject([null, { key: false }]);
    expect((await portal.send("PATCH", "/profile", { checklistHidden: false }, dora)).status).toBe(400);
  });

  test("belong to the package that a router with a fast clock has just changed", async () => {
    const ahead = new Date(clock.now() + 1_000).toISOString();
    const { pool } = portal.database;
    await pool.query("update subscriptions set started_at = $2 where account_id = $1", [ada.accountId, ahead]);
    await pool.query("update accounts set package_changed_at = $2 where id = $1", [ada.accountId, ahead]);
    expect((await portal.get("/credits", ada)).json).toMatchObject({ package: "Starter", used: "0.000" });
  });

  test("are null, not 0, if they are unknown", async () => {
    const eve = await portal.newAccount("No package");
    const { json } = await portal.get("/credits", eve);
    expect(json).toMatchObject({ package: null, quota: null, used: null, remaining: null, forecast: null });
    expect(json.rate).toMatchObject({ perMinute: null, parallelMax: null });
    expect((await portal.get("/credits", ada)).json.forecast).toBeNull();
  });
});

describe("models", () => {
  const list = async (who: Person) => (await portal.get("/models", who)).json.items;

  test("are listed with their features and prices", async () => {
    expect(await list(ada)).toMatchObject([
      {
        id: "small-24b",
        factor: "2.000",
        factorIsProvisional: true,
        tools: "enforced",
        images: null,
        reasoning: { mode: "unavailable" },
      },
      {
        id: "general-3.8-27b",
        reasoning: { mode: "default-on", efforts: ["none", "low", "medium", "xhigh"], default: "xhigh" },
      },
      { id: "general-4-31b", tools: "auto", images: { max: 4 }, reasoning: { mode: "optional" } },
      { id: "coder-next", category: "coding", factor: "1.000", factorIsProvisional: false, comingFactors: [] },
      { id: "vl-embedding-2b", tools: null, embeddings: { minDimensions: 64, maxDimensions: 2048, inputTokens: 8192 } },
    ]);
  });

  test("show why this user cannot use them, in the order of the API's refusals", async () => {
    const reasons = async (who: Person) =>
      Object.fromEntries((await list(who)).map(({ id, unusable }: any) => [id, unusable])) as Record<string, string>;
    nodes = [nodeOf("small-24b"), { ...nodeOf("coder-next"), maintenance: true }];
    const { pool } = portal.database;
    await pool.query("update users set allowed_models = '{small-24b,coder-next,vl-embedding-2b}' where id = $1", [
      ben.id,
    ]);
    expect(await reasons(ben)).toEqual({
      "small-24b": null,
      "general-3.8-27b": "not-allowed",
      "general-4-31b": "not-allowed",
      "coder-next": "maintenance",
      "vl-embedding-2b": "no-node",
    });
    expect(new Set(Object.values(await reasons(await portal.newAccount("No package"))))).toEqual(
      new Set(["no-package"]),
    );
    const until = new Date(clock.now() + dayMs).toISOString();
    await pool.query("update accounts set exhausted_until = $2 where id = $1", [ada.accountId, until]);
    expect(new Set(Object.values(await reasons(ada)))).toEqual(new Set(["quota-exhausted"]));
    await pool.query("update users set limit_reached_until = $2 where id = $1", [ben.id, until]);
    expect(new Set(Object.values(await reasons(ben)))).toEqual(new Set(["user-limit"]));
    await pool.query("update accounts set exhausted_until = null where id = $1", [ada.accountId]);
    await pool.query("update users set limit_reached_until = null where id = $1", [ben.id]);
    nodes = [];
  });

  const nodeOf = (model: string): NodeView => ({
    node: asId(model),
    reachable: true,
    reportedAtMs: 0,
    admitting: true,
    maintenance: false,
    slots: [
      {
        name: asId("a"),
        models: [asId(model)],
        state: SlotState.EMPTY,
        running: 0,
        runningOfRouter: 0,
        inFlight: 0,
        unread: 0,
        waiting: 0,
        waiters: [],
        stateAgeMs: 0,
      },
    ],
  });
});

describe("refusals", () => {
  const open = (keysMax?: number) => createRefusals(portal.database.pool, clock, keysMax);
  const of = (person: Person, keyId: KeyId) => ({ accountId: person.accountId, userId: person.id, keyId });

  test("are counted by account, key, hour and code, and listed with advice", async () => {
    const refusals = open();
    for (let n = 0; n < 41; n++) refusals.count(of(ada, adasKey), "rate_limit_parallel");
    refusals.count(of(ben, bensKey), "rate_limit_parallel");
    await refusals.flush();
    clock.advance(3_600_000);
    refusals.count(of(ben, bensKey), "key_expired");
    await refusals.flush();
    const { json } = await portal.get("/refusals", ada);
    expect(json).toMatchObject({ total: 43 });
    expect(json.codes).toMatchObject([
      {
        code: "rate_limit_parallel",
        status: 429,
        advice: "fewer-parallel",
        count: 42,
        keys: [
          { keyId: adasKey, count: 41 },
          { keyId: bensKey, count: 1 },
        ],
      },
      { code: "key_expired", status: 401, advice: "use-another-key", count: 1 },
    ]);
    expect((await portal.get("/refusals", ben)).json).toMatchObject({ total: 2 });
    clock.advance(23 * 3_600_000);
    const later = await portal.signIn(ada);
    expect((await portal.get("/refusals", later)).json).toMatchObject({ total: 1 });
    expect((await portal.get("/refusals?from=2026-11-14&to=2026-11-14", later)).json).toMatchObject({ total: 43 });
    expect((await portal.get("/refusals?from=2026-11-15", later)).json).toMatchObject({ total: 0 });
    clock.advance(-24 * 3_600_000);
  });

  test("are kept in memory while they cannot be stored, and stored once later", async () => {
    const refusals = open();
    refusals.count(of(ada, adasKey), "timeout");
    await portal.database.pool.query("alter table refusals rename to refusals_away");
    await expect(refusals.flush()).rejects.toThrow("refusals");
    refusals.count(of(ada, adasKey), "timeout");
    await portal.database.pool.query("alter table refusals_away rename to refusals");
    await refusals.flush();
    await refusals.flush();
    expect((await portal.get("/refusals", ada)).json).toMatchObject({ codes: [{ code: "timeout", count: 2 }] });
  });

  test("use memory for a limited number of keys", async () => {
    const refusals = open(1);
    refusals.count(of(ada, adasKey), "timeout");
    refusals.count(of(ben, bensKey), "timeout");
    await refusals.flush();
    refusals.count(of(ben, bensKey), "timeout");
    await refusals.flush();
    expect((await portal.get("/refusals", ada)).json).toMatchObject({ total: 2 });
  });

  test("are deleted together with usage records", async () => {
    const refusals = open();
    refusals.count(of(ada, adasKey), "timeout");
    await refusals.flush();
    clock.advance(31 * dayMs);
    const events = { usageCommitted() {}, usageCommitFailed() {}, usageSetAside() {} };
    const grants = await readGrants(portal.database.pool);
    await using ledger = await createUsageLedger(portal.database, clock, events, { grants, keepDays: 30 });
    await ledger.rollDays();
    const found = await portal.database.pool.query("select from refusals where account_id = $1", [ada.accountId]);
    expect(found.rowCount).toBe(0);
    clock.advance(-31 * dayMs);
  });
});
