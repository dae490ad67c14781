/** The package and the audit log in the portal's API. */
import { beforeEach, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { startPortal, type Person } from "./portal-rig.ts";

let ada: Person;
const clock = new VirtualClock(Date.parse("2026-11-14T10:30:00Z"));
const portal = await forThisFile(startPortal({ clock }));

function until(german: string): void {
  clock.advance(Temporal.PlainDateTime.from(german).toZonedDateTime("Europe/Berlin").epochMilliseconds - clock.now());
}

const quote = (wish: object) => portal.send("POST", "/package/quotes", wish, ada);
const change = (wish: object) => portal.send("POST", "/package/changes", wish, ada);
const lines = async () => (await portal.get("/package/invoice-lines", ada)).json;

describe("the package", () => {
  beforeEach(async () => {
    ada = await portal.newAccount("ACME");
  });

  async function order(wish: { action: string; package?: string }): Promise<any> {
    const { quoteId } = (await quote(wish)).json;
    return (await change({ ...wish, quoteId })).json;
  }

  test("an account without a package sees the packages it may order, and can start a trial", async () => {
    const { json } = await portal.get("/package", ada);
    expect(json).toMatchObject({
      subscription: { package: null, state: "no package" },
      quota: null,
      actions: ["trial"],
    });
    expect(json.packages.map(({ name, priceCents, actions }: any) => [name, priceCents, ...actions])).toEqual([
      ["Starter", 700, "order"],
      ["Pro", 3500, "order"],
      ["Business", 12_900, "order"],
      ["Business Plus", 24_900, "order"],
    ]);
    expect(json.packages.map(({ trialDays }: any) => trialDays)).toEqual([30, null, null, null]);
    expect(json.packages[3]).toMatchObject({
      creditsPerMonth: "650000000.000",
      requestsPerMinute: 150,
      parallelRequests: 20,
    });
  });

  test("can be tried, ordered, upgraded, downgraded, cancelled and withdrawn, as its listed actions allow", async () => {
    expect(await order({ action: "trial" })).toMatchObject({ package: "Starter", state: "trial" });
    expect((await portal.get("/package", ada)).json).toMatchObject({
      quota: { credits: "5000000.000", used: "0.000", left: "5000000.000", exhausted: false },
      actions: ["cancel"],
    });
    expect(await order({ action: "order", package: "Business" })).toMatchObject({
      package: "Business",
      state: "active",
    });
    expect(await order({ action: "downgrade", package: "Pro" })).toMatchObject({ pending: { change: "downgrade" } });
    const { json } = await portal.get("/package", ada);
    expect(json.actions).toEqual(["cancel", "withdraw"]);
    expect(json.packages.map(({ actions }: any) => actions)).toEqual([["downgrade"], ["downgrade"], [], ["upgrade"]]);
    expect(await order({ action: "withdraw" })).toMatchObject({ pending: null });
    expect(await order({ action: "cancel" })).toMatchObject({ pending: { change: "cancellation", package: null } });
    expect(await order({ action: "withdraw" })).toMatchObject({ pending: null });
    expect(await order({ action: "upgrade", package: "Business Plus" })).toMatchObject({ package: "Business Plus" });
    expect(await lines()).toMatchObject({ total: 2, totalCents: 12_900 + 12_000 });
  });

  test("an order is charged exactly as quoted, once however often it is sent", async () => {
    const wish = { action: "order", package: "Pro" };
    const { status, json: quoted } = await quote(wish);
    expect([status, quoted.dueCents, quoted.thenCents]).toEqual([201, 3500, 3500]);
    expect((await lines()).total).toBe(0);
    const answers = await Promise.all(Array.from({ length: 10 }, () => change({ ...wish, quoteId: quoted.quoteId })));
    expect(answers.map(({ status: each }) => each)).toEqual(Array.from({ length: 10 }, () => 200));
    expect(await lines()).toMatchObject({ total: 1, totalCents: quoted.dueCents, items: quoted.charges });
  });

  test("a quote from before midnight is refused with `price_changed` without a charge, and a new quote is charged", async () => {
    await order({ action: "order", package: "Pro" });
    const wish = { action: "upgrade", package: "Business" };
    const { json: quoted } = await quote(wish);
    const day = Temporal.Instant.fromEpochMilliseconds(clock.now()).toZonedDateTimeISO("Europe/Berlin").toPlainDate();
    until(`${day.add({ days: 1 }).toString()}T00:00`);
    ada = await portal.signIn(ada);
    const late = await change({ ...wish, quoteId: quoted.quoteId });
    expect([late.status, late.json.error.code]).toEqual([409, "price_changed"]);
    expect((await lines()).total).toBe(1);
    const { json: renewed } = await quote(wish);
    expect(renewed.dueCents).toBeLessThan(quoted.dueCents);
    expect((await change({ ...wish, quoteId: renewed.quoteId })).status).toBe(200);
    expect((await lines()).items[1].amountCents).toBe(renewed.dueCents);
  });

  test("a change against the rules is refused with its reason", async () => {
    expect((await quote({ action: "cancel" })).json.error).toMatchObject({
      code: "409",
      message: "The account has no package.",
    });
    expect((await quote({ action: "order" })).status).toBe(400);
    expect((await quote({ action: "order", package: "Gold" })).json.error.details).toEqual([
      { param: "package", code: "not_allowed" },
    ]);
    expect((await change({ action: "order", package: "Pro" })).json.error.details).toEqual([
      { param: "quoteId", code: "missing" },
    ]);
  });
});

describe("the audit log", () => {
  test("can be filtered by person, object, action and time, with exact totals on every page", async () => {
    ada = await portal.newAccount("ACME", { package: "Pro" });
    const cleo = await portal.newUser(ada, "admin");
    const keys = [];
    for (let n = 0; n < 4; n++) {
      clock.advance(60_000);
      keys.push((await portal.send("POST", "/keys", { name: `key ${n}` }, n % 2 ? cleo : ada)).json.key);
    }
    const noon = Temporal.Instant.fromEpochMilliseconds(clock.now()).toString();
    clock.advance(60_000);
    await portal.send("POST", `/keys/${keys[0].id}/revoke`, {}, cleo);
    await portal.send("PATCH", `/users/${ada.id}`, { role: "member" }, cleo);
    const list = async (query: string) => (await portal.get(`/audit?${query}`, ada)).json;
    expect((await list("")).items[1]).toMatchObject({
      action: "key.revoke",
      actor: cleo.id,
      actorName: cleo.email,
      source: "127.0.0.1",
      object: { kind: "key", id: keys[0].id, name: "key 0" },
      result: "done",
    });
    expect((await list("action=user.update")).items).toMatchObject([
      { result: "refused: forbidden", actorName: cleo.email },
    ]);
    expect(await list(`actor=${cleo.id}&action=key.create`)).toMatchObject({ total: 2, page: 1, pageSize: 50 });
    expect((await list(`object=${keys[0].id}`)).items.map(({ action }: any) => action)).toEqual([
      "key.revoke",
      "key.create",
    ]);
    expect((await list(`from=${noon}&action=key.create`)).total).toBe(1);
    expect((await list(`to=${noon}&action=key.create`)).total).toBe(3);
    const { total } = await list("");
    const numbers: number[] = [];
    for (let page = 1; numbers.length < total; page++) {
      const { items, ...counts } = await list(`pageSize=3&page=${page}`);
      expect(counts).toEqual({ total, page, pageSize: 3, isCut: false });
      numbers.push(...items.map(({ number }: { number: number }) => number));
    }
    expect(numbers).toEqual(Array.from({ length: total }, (_, n) => total - n));
    expect((await portal.get("/audit?from=2026-99-01T00:00:00Z", ada)).status).toBe(400);
    expect((await portal.get("/audit?sort=hash", ada)).status).toBe(400);
    expect(await list("page=99")).toMatchObject({ total, items: [] });
  });

  test("is searched and sorted by the server, also in the CSV", async () => {
    ada = await portal.newAccount("ACME", { package: "Pro" });
    const cleo = await portal.newUser(ada, "admin");
    for (const [name, who] of [
      ["b 100%_", cleo],
      ["a", ada],
    ] as const)
      await portal.send("POST", "/keys", { name }, who);
    await portal.send("PATCH", `/users/${ada.id}`, { role: "member" }, cleo);
    const list = async (query: string) => {
      const { items, total } = (await portal.get(`/audit?${query}`, ada)).json;
      return [total, items.map((entry: any) => `${entry.action} ${entry.object.name}`)];
    };
    const [created, other] = ["key.create b 100%_", "key.create a"];
    expect(await list("search=100%25_")).toEqual([1, [created]]);
    expect(await list(`search=${cleo.email.toUpperCase()}&action=key.create`)).toEqual([1, [created]]);
    expect(await list("search=KEY.create")).toEqual([2, [other, created]]);
    expect(await list("search=forbidden")).toEqual([1, [`user.update ${ada.email}`]]);
    expect(await list("search=key.create&sort=at&order=asc")).toEqual([2, [created, other]]);
    expect(await list("search=key.create&sort=object")).toEqual([2, [other, created]]);
    expect(await list("search=key.create&sort=object&order=desc&pageSize=1&page=2")).toEqual([2, [other]]);
    expect(await list("action=key.create&sort=actor")).toEqual([2, [created, other]]); // admin… before owner…
    expect((await list("sort=result&order=desc&pageSize=1"))[1]).toEqual([`user.update ${ada.email}`]);
    const csv = (await portal.get("/audit.csv?search=100%25_", ada)).text.trimEnd().split("\r\n");
    expect(csv).toHaveLength(2);
  });

  test("is complete as CSV, and formulas of spreadsheets become text", async () => {
    ada = await portal.newAccount("ACME", { package: "Pro" });
    for (const name of ['=HYPERLINK("x")', "+1", "-1", "@x", "plain, with comma"])
      await portal.send("POST", "/keys", { name }, ada);
    const csv = await portal.get("/audit.csv?action=key.create", ada);
    expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(csv.headers.get("content-disposition")).toMatch(/^attachment; filename="audit-\d{4}-\d\d-\d\d\.csv"$/);
    expect(csv.headers.get("cache-control")).toBe("no-store");
    const rows = csv.text.trimEnd().split("\r\n");
    expect(rows.length).toBe(6);
    for (const cell of [`"'=HYPERLINK(""x"")"`, ",'+1,", ",'-1,", ",'@x,", '"plain, with comma"'])
      expect(csv.text).toContain(cell);
    for (const row of rows) expect(row).not.toMatch(/(^|,)"?[=+\-@]/);
  });

  test("has each entry once in the CSV, newest first, however many pages are read", async () => {
    ada = await portal.newAccount("ACME", { package: "Pro" });
    await portal.database.pool.query(
      `insert into audit_log select (jsonb_populate_record(l, jsonb_build_object('number', l.number + n))).*
       from audit_log l, generate_series(1, 1100) n
       where account_id = $1 and number = (select max(number) from audit_log where account_id = $1)`,
      [ada.accountId],
    );
    const [, ...rows] = (await portal.get("/audit.csv", ada)).text.trimEnd().split("\r\n");
    const numbers = rows.map((row) => Number(row.split(",")[0]));
    expect(numbers[0]).toBeGreaterThan(1_100);
    expect(numbers).toEqual(numbers.map((_, index) => numbers[0]! - index));
    expect(numbers.at(-1)).toBe(1);
  });
});
