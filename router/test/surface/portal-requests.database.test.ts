/** The list of single requests: what it shows of both tables, to whom, in which steps, and for how long. */
import { beforeEach, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type KeyId, type RequestId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { readRequests, type ListedRequest } from "../../src/usage/requests/request-list.ts";
import {
  forgetUnanswered,
  rowsPerMinuteMax,
  UnansweredRequests,
  type UnansweredRequest,
} from "../../src/usage/requests/unanswered-requests.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import { startPortal, type Person } from "./portal-rig.ts";
import { makeRecord } from "../usage/usage-records.ts";

const dayMs = 86_400_000;
const clock = new VirtualClock(Date.parse("2026-11-14T09:00:00Z"));
const portal = await forThisFile(startPortal({ clock }));
const { pool } = portal.database;
let ada: Person;
let ben: Person;
let adasKey: KeyId;
let bensKey: KeyId;
beforeEach(async () => {
  ada = await portal.newAccount("ACME", { package: "Starter" });
  ben = await portal.newUser(ada, "member");
  adasKey = (await portal.accounts.keys.create(ada.id, { name: "=cmd()|'x'" })).id;
  bensKey = (await portal.accounts.keys.create(ben.id, { name: "batch" })).id;
});

interface Made extends Partial<Omit<UsageRecord, "keyId" | "requestId">> {
  readonly agoMs?: number;
  readonly by?: Person;
  readonly keyId?: KeyId;
  readonly requestId?: RequestId;
}

const idAt = (atMs: number) => asId<RequestId>(uuidv7({ now: () => atMs }));
const keyOf = (by: Person) => (by === ben ? bensKey : adasKey);

/** Commits a usage record of 10 tokens in and 5 out, at factor 1. Returns its request. */
async function used({ agoMs = 0, by = ada, ...more }: Made = {}): Promise<RequestId> {
  const requestId = more.requestId ?? idAt(clock.now() - agoMs);
  await makeUsageDays(pool, [clock.now() - agoMs]);
  const record = makeRecord(createRandom(1), clock.now(), {
    ...{
      accountId: by.accountId,
      userId: by.id,
      keyId: keyOf(by),
      model: asId("small-24b"),
      factor: millicredits(1_000n),
    },
    ...{ promptTokens: 10, completionTokens: 5, durationMs: 1_500, firstTokenMs: 200 },
    ...more,
    requestId,
  });
  await commitUsage(pool, [{ node: asId("node-1"), record }]);
  return requestId;
}

function unansweredBy(by: Person, more: Partial<UnansweredRequest> = {}): UnansweredRequest {
  return {
    requestId: idAt(clock.now()),
    ...{ accountId: by.accountId, userId: by.id, keyId: keyOf(by), model: asId("small-24b") },
    ...{ code: "rate_limit_minute", status: 429, durationMs: 3 },
    ...more,
  };
}

async function refused(by: Person, more: Partial<UnansweredRequest> = {}): Promise<RequestId> {
  const requests = new UnansweredRequests(pool, clock);
  const one = unansweredBy(by, more);
  requests.add(one);
  await requests.flush();
  return one.requestId;
}

const list = async (query = "", who = ada) => (await portal.get(`/requests?${query}`, who)).json;
const idsOf = ({ items }: { readonly items: readonly { readonly id: string }[] }) => items.map(({ id }) => id);

describe("the list of requests", () => {
  test("shows each request once, with its model, tokens, credits, times, result and reason", async () => {
    const answered = await used({ agoMs: 5_000 });
    const left = await used({ agoMs: 4_000, outcome: "client-ended" });
    // The first node was lost, the second answered.
    const again = await used({ agoMs: 3_000, outcome: "void", promptTokens: 0, completionTokens: 0 });
    await used({ agoMs: 3_000, requestId: again, attempt: 2 });
    const failed = await used({ agoMs: 2_500, outcome: "void", promptTokens: 0, completionTokens: 0 });
    const slow = await used({ agoMs: 2_000, outcome: "limit-ended", completionTokens: 7 });
    await refused(ada, { requestId: slow, code: "timeout", status: 504, durationMs: 600_000 });
    const many = await refused(ada, { requestId: idAt(clock.now() - 1_000) });
    const gone = await refused(ada, { code: undefined, status: 0 });
    const { items, next, days } = await list();
    expect(items).toMatchObject([
      { id: gone, outcome: "client-gone", status: null, code: null, promptTokens: null, credits: null },
      { id: many, outcome: "refused", status: 429, code: "rate_limit_minute", advice: "slow-down", seconds: 0.003 },
      { id: slow, outcome: "refused", status: 504, code: "timeout", completionTokens: 7, credits: "17.000" },
      { id: failed, outcome: "broken", promptTokens: 0, credits: "0.000" },
      { id: again, outcome: "answered", credits: "15.000" },
      { id: left, outcome: "client-gone", status: null, credits: "15.000" },
      { id: answered, outcome: "answered", status: 200, model: "small-24b", firstTokenSeconds: 0.2, seconds: 1.5 },
    ]);
    expect(items).toHaveLength(7);
    expect(items[6]).toMatchObject({ key: { kind: "api", name: "=cmd()|'x'", userEmail: ada.email }, requests: 1 });
    expect({ next, days }).toEqual({ next: null, days: 30 });
  });

  test("has filters by key, user, model, result, reason and time", async () => {
    const [old, bens] = [await used({ agoMs: 3 * dayMs }), await used({ agoMs: 3_000, by: ben })];
    const coder = await used({ agoMs: 2_000, model: asId("coder-next") });
    const chat = await used({ agoMs: 1_500, keyId: asId(ada.id) });
    const tooMany = await refused(ben, { requestId: idAt(clock.now() - 1_000) });
    const noModel = await refused(ada, { code: "invalid_request", status: 400, model: undefined });
    const expected = {
      [`keyId=${bensKey}`]: [tooMany, bens],
      [`keyId=${ada.id}`]: [chat],
      [`userId=${ben.id}`]: [tooMany, bens],
      "model=coder-next": [coder],
      "outcome=refused": [noModel, tooMany],
      "outcome=answered": [chat, coder, bens, old],
      "outcome=timeout": [],
      "code=invalid_request": [noModel],
      [`from=${new Date(clock.now() - dayMs).toISOString()}`]: [noModel, tooMany, chat, coder, bens],
      [`to=${new Date(clock.now() - dayMs).toISOString()}`]: [old],
    };
    for (const [query, ids] of Object.entries(expected))
      expect([query, idsOf(await list(query))]).toEqual([query, ids]);
    const { filter } = await list(`keyId=${bensKey}&userId=${ben.id}`);
    expect(filter).toEqual({
      key: { id: bensKey, kind: "api", name: "batch", lastFour: expect.any(String), userEmail: ben.email },
      user: { id: ben.id, email: ben.email },
    });
    expect((await portal.get("/requests?from=2026-02-30T00:00:00Z", ada)).status).toBe(400);
  });

  test("shows members their own requests only, whatever they ask for, also as CSV [E2 E3]", async () => {
    await used({ agoMs: 1_000 });
    await refused(ada);
    const own = await used({ by: ben });
    expect(idsOf(await list("", ben))).toEqual([own]);
    for (const query of [`userId=${ada.id}`, `keyId=${adasKey}`]) {
      const { items, filter } = await list(query, ben);
      expect(items).toEqual([]);
      expect(JSON.stringify(filter)).not.toContain(ada.email);
      expect((await portal.get(`/requests.csv?${query}`, ben)).text.split("\r\n")).toHaveLength(2);
    }
    expect((await list()).items).toHaveLength(3);
    const stranger = await portal.newAccount("Globex", { package: "Starter" });
    expect((await list("", stranger)).items).toEqual([]);
    expect((await list(`userId=${ben.id}`, stranger)).items).toEqual([]);
  });

  test("is continued by steps without a gap or a repetition, however few rows a step may read", async () => {
    const random = createRandom(3);
    for (let n = 0; n < 40; n++) {
      const [agoMs, by] = [random.below(3 * dayMs), random.pick([ada, ben])];
      if (random.chance(0.3)) await refused(by, { requestId: idAt(clock.now() - agoMs) });
      else await used({ agoMs, by, model: asId(random.pick(["small-24b", "coder-next"])) });
    }
    const span = { accountId: ada.accountId, fromMs: clock.now() - 30 * dayMs, toMs: clock.now() + 1 };
    for (const filter of [
      span,
      { ...span, userId: ben.id },
      { ...span, model: "coder-next" },
      { ...span, outcome: "refused" as const },
    ]) {
      const whole = await readRequests(portal.database, filter, { limit: 1_000 });
      expect(whole.next).toBeUndefined();
      for (const [limit, rowsMax] of [
        [1, 1],
        [3, 2],
        [7, 5],
        [5, 1_000],
      ] as const) {
        const found: ListedRequest[] = [];
        let before: string | undefined;
        let steps = 0;
        do {
          const step = await readRequests(portal.database, filter, { limit, rowsMax, before });
          found.push(...step.items);
          before = step.next;
        } while (before !== undefined && ++steps < 200);
        expect(found).toEqual(whole.items);
      }
    }
  });

  test("goes back as many days as the operator keeps it, whatever is asked for", async () => {
    await used({ agoMs: 31 * dayMs });
    const kept = await used({ agoMs: 29 * dayMs });
    expect(idsOf(await list("from=2026-01-01T00:00:00Z"))).toEqual([kept]);
    const old = await refused(ada, { requestId: idAt(clock.now() - 31 * dayMs) });
    const young = await refused(ada);
    await forgetUnanswered(pool, clock.now() - 30 * dayMs);
    const left = await pool.query("select request_id from unanswered_requests where account_id = $1", [ada.accountId]);
    expect(left.rows).toEqual([{ request_id: young }]);
    expect(old).not.toBe(young);
  });

  test("is exported as CSV without formulas, in the order of the list [H4]", async () => {
    const first = await used({ agoMs: 1_000 });
    const second = await refused(ada);
    const { text } = await portal.get("/requests.csv?outcome=answered", ada);
    expect(text.split("\r\n")[1]).toContain(first);
    const [head, one, two, end] = (await portal.get("/requests.csv", ada)).text.split("\r\n");
    expect(head).toBe(
      "at,requestId,model,keyId,keyKind,keyName,user,outcome,status,refusal,requests,promptTokens,completionTokens,credits,firstTokenSeconds,seconds",
    );
    expect(one).toBe(
      `2026-11-14T09:00:00Z,${second},small-24b,${adasKey},api,'=cmd()|'x',${ada.email},refused,429,rate_limit_minute,1,,,,,0.003`,
    );
    expect([two, end]).toEqual([expect.stringContaining(`${first},small-24b`), ""]);
  });
});

describe("requests without an answer", () => {
  test("of an account get a bounded number of rows in a minute, which still stand for all of them", async () => {
    const requests = new UnansweredRequests(pool, clock);
    for (let n = 0; n < 1_000; n++) requests.add(unansweredBy(n % 10 === 0 ? ben : ada));
    requests.add(unansweredBy(ada, { code: "invalid_request", status: 400 }));
    await requests.flush();
    const { items } = await list("limit=1000");
    expect(items).toHaveLength(rowsPerMinuteMax + 3);
    expect(items.reduce((sum: number, one: { requests: number }) => sum + one.requests, 0)).toBe(1_001);
    clock.advance(60_000);
    for (let n = 0; n < 2; n++) requests.add(unansweredBy(ada));
    await requests.flush();
    expect((await list("limit=2")).items).toMatchObject([{ requests: 1 }, { requests: 1 }]);
  });

  test("take a bounded amount of memory, also of many accounts", async () => {
    const requests = new UnansweredRequests(pool, clock, 2);
    const accounts = [ada, await portal.newAccount("Globex"), await portal.newAccount("Initech")];
    for (const person of accounts) requests.add(unansweredBy(person));
    await requests.flush();
    const rows = await pool.query("select from unanswered_requests where account_id = any($1)", [
      accounts.map(({ accountId }) => accountId),
    ]);
    expect(rows.rowCount).toBe(2);
  });

  test("wait in memory while they cannot be stored, and are stored once later", async () => {
    const requests = new UnansweredRequests(pool, clock);
    requests.add(unansweredBy(ada));
    await pool.query("alter table unanswered_requests rename to away");
    await expect(requests.flush()).rejects.toThrow("unanswered_requests");
    requests.add(unansweredBy(ada));
    await pool.query("alter table away rename to unanswered_requests");
    await requests.flush();
    await requests.flush();
    expect((await list()).items).toHaveLength(2);
  });
});
