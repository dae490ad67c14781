/** Exports hold database connections: few run at once, one per account, and none for clients that have left. */
import { beforeAll, beforeEach, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { exportMsMax, unreadMsMax } from "../../src/surface/routes/csv-answer.ts";
import { waitMsMax } from "../../src/surface/routes/export-places.ts";
import { until } from "../db/database-fixture.ts";
import { startPortal, type Answer, type Person } from "./portal-rig.ts";

const rows = 20_000;
const soonMs = 20_000;
let [ada, eve, cy] = [] as unknown as Person[];
const clock = new VirtualClock(Date.parse("2026-11-14T08:00:00Z"));
const portal = await forThisFile(startPortal({ clock }));
beforeAll(async () => {
  [ada, eve, cy] = await Promise.all(
    ["ACME", "Other", "Third"].map((name) => portal.newAccount(name, { package: "Starter" })),
  );
  for (const { id, accountId } of [ada!, eve!]) {
    const key = (await portal.accounts.keys.create(id, { name: "=cmd()|'x'" })).id;
    await portal.database.pool.query(
      `insert into usage_days select $1, '2026-11-14', '2026-11-14T08:00:00Z', $2, $3, repeat('m', 900) || n, 1, n, 1, n + 1
       from generate_series(1, ${rows}) n`,
      [accountId, id, key],
    );
  }
});

const path = "/usage.csv?by=model,key";
const open = (who: Person, init: RequestInit = {}) =>
  fetch(`${portal.origin}/api${path}`, { ...init, headers: { cookie: who.cookie } });
const leave = (...answers: Response[]) => Promise.allSettled(answers.map(({ body }) => body!.cancel()));
const isServed = async (who: Person) => (await portal.get("/usage.csv", who)).status === 200;

/** Advances the time while it waits. */
async function afterTheWait(asked: Promise<Answer>): Promise<Answer> {
  let isOver = false;
  void asked.finally(() => (isOver = true));
  await expect.poll(() => isOver || (clock.advance(waitMsMax), false), { interval: 300, timeout: soonMs }).toBe(true);
  return asked;
}

beforeEach(async () => {
  await until("both places are free", soonMs, async () => (await isServed(cy!)) && (await isServed(cy!)));
});

test("exports of any length are sent row by row, two at once, and a third waits for a limited time", async () => {
  const [slow, slower] = [await open(ada!), await open(eve!)];
  const refused = await afterTheWait(portal.get("/usage.csv?by=day", cy));
  expect(refused).toMatchObject({ status: 503, json: { error: { code: "overloaded" } } });
  const waiting = portal.get("/usage.csv?by=day", cy);
  await leave(slower);
  expect((await waiting).status).toBe(200);
  const lines = (await slow.text()).split("\r\n").slice(1, -1);
  expect(lines).toHaveLength(rows);
  expect(lines[0]).toContain(",'=cmd()|'x',");
  const { totals } = (await portal.get("/usage?by=day", ada)).json;
  expect(totals.requests).toBe(rows);
});

test("an account has one export at a time, however often it asks, and leaves the other place to others", async () => {
  const first = await open(ada!);
  const more = Array.from({ length: 5 }, () => open(ada!));
  expect((await portal.get("/usage.csv", cy)).status).toBe(200);
  expect((await portal.get("/audit.csv", cy)).status).toBe(200);
  const ended: number[] = [];
  for (const one of more) void one.then(({ status }) => ended.push(status));
  await until("all but one are refused", soonMs, async () => ended.length === 4);
  await leave(first);
  const answers = await Promise.all(more);
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 503, 503, 503, 503]);
  await leave(...answers);
});

test("an export ends if its client reads nothing for half a minute, and in any case after ten minutes", async () => {
  const unread = [await open(ada!), await open(eve!)];
  clock.advance(unreadMsMax);
  await expect
    .poll(async () => (await afterTheWait(portal.get("/usage.csv", cy))).status, { timeout: soonMs })
    .toBe(200);
  await leave(...unread);
  const steady = await open(ada!);
  const reader = steady.body!.getReader();
  await reader.read();
  clock.advance(exportMsMax);
  const rest = (async () => {
    while (!(await reader.read()).done);
  })();
  await expect(rest).rejects.toThrow("terminated");
});

test("one of two slow exports gives way when another account waits [D10]", async () => {
  const timersBefore = clock.pending;
  const slow = [await open(ada!), await open(eve!)];
  const asked = portal.get("/usage.csv", cy);
  let isOver = false;
  void asked.finally(() => (isOver = true));
  // Advances the time only while both exports wait for their readers. Then each export has two timers, and a waiter has
  // two, too.
  const step = () => clock.pending >= timersBefore + 6 && clock.advance(500);
  await expect.poll(() => isOver || (step(), false), { interval: 50, timeout: 3 * soonMs }).toBe(true);
  expect((await asked).status).toBe(200);
  await leave(...slow);
});

test("an export whose client has left is stopped in the database, and its place is free at once", async () => {
  const other = await portal.database.pool.connect();
  using _released = { [Symbol.dispose]: () => other.release(true) };
  await other.query("begin; lock table usage_days in access exclusive mode");
  const running = async () => {
    const sql = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      and query like 'declare usage_rows%'`;
    return (await portal.database.pool.query(sql)).rowCount;
  };
  for (let n = 0; n < 4; n++) {
    const client = new AbortController();
    const asked = open(n % 2 ? ada! : eve!, { signal: client.signal });
    const answered = asked.then((answer) => answer.text()).catch(() => "left");
    await until("its query runs", soonMs, async () => (await running()) === 1);
    client.abort();
    expect(await answered).toBe("left");
    await until("its query is stopped", soonMs, async () => (await running()) === 0);
  }
  await other.query("rollback");
  expect(await isServed(ada!)).toBe(true);
});
