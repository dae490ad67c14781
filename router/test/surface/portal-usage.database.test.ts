/** Usage in the portal: rows, totals and CSV. */
import { beforeEach, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { formatCredits, millicredits, type Millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type KeyId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { timeZone } from "../../src/subscriptions/billing-period.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { usageSums } from "../../src/usage/usage-columns.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import { startPortal, type Person } from "./portal-rig.ts";
import { makeRecord } from "../usage/usage-records.ts";

const berlin = (text: string) => Temporal.PlainDateTime.from(text).toZonedDateTime(timeZone).epochMilliseconds;
const dayMs = 86_400_000;
let ada: Person;
let ben: Person;
let adasKey: KeyId;
let bensKey: KeyId;
const clock = new VirtualClock(berlin("2026-11-14T09:00"));
const portal = await forThisFile(startPortal({ clock }));
beforeEach(async () => {
  ada = await portal.newAccount("ACME", { package: "Starter" });
  ben = await portal.newUser(ada, "member");
  adasKey = (await portal.accounts.keys.create(ada.id, { name: "=cmd()|'x'" })).id;
  bensKey = (await portal.accounts.keys.create(ben.id, { name: "batch, at night" })).id;
});

interface Spent {
  readonly prompt?: number;
  readonly completion?: number;
  readonly estimated?: number;
  readonly by?: Person;
  readonly key?: KeyId;
  readonly model?: string;
}

/** Records one finished request at factor 1.5. */
async function spend(
  atMs: number,
  { prompt = 10, completion = 5, estimated = 0, by = ada, key = adasKey, model = "small-24b" }: Spent = {},
) {
  await makeUsageDays(portal.database.pool, [atMs]);
  const record = makeRecord(createRandom(1), atMs, {
    requestId: asId(uuidv7({ now: () => atMs })),
    accountId: by.accountId,
    userId: by.id,
    keyId: key,
    model: asId(model),
    promptTokens: prompt,
    completionTokens: completion,
    estimatedTokens: estimated,
    factor: millicredits(1_500n),
  });
  await commitUsage(portal.database.pool, [{ node: asId("node-1"), record }]);
}

const usage = async (query: string, who = ada) => (await portal.get(`/usage?${query}`, who)).json;

/** Reads a CSV without quoted line ends. */
async function csvOf(query: string, who = ada): Promise<Record<string, string>[]> {
  const { text, status, headers } = await portal.get(`/usage.csv?${query}`, who);
  expect(status).toBe(200);
  expect(headers.get("content-type")).toContain("text/csv");
  const [head, ...lines] = text
    .split("\r\n")
    .slice(0, -1)
    .map((line) => line.match(/("([^"]|"")*"|[^,]*)(,|$)/g)!.slice(0, -1));
  const unquoted = (cell: string) =>
    cell
      .replace(/,$/, "")
      .replace(/^"(.*)"$/s, "$1")
      .replaceAll('""', '"');
  const cells = (line: RegExpMatchArray | string[]) => line.map(unquoted);
  return lines.map((line) => Object.fromEntries(cells(head!).map((name, n) => [name, cells(line)[n] ?? ""])));
}

const sum = (rows: readonly { readonly credits: string }[]): string =>
  formatCredits(rows.reduce((total, { credits }) => total + BigInt(credits.replace(".", "")), 0n) as Millicredits);

describe("usage", () => {
  test.each([
    [
      "forward",
      "2026-03-29",
      [
        "2026-03-28T23:59",
        "2026-03-29T00:00",
        "2026-03-29T01:59",
        "2026-03-29T03:00",
        "2026-03-29T23:59",
        "2026-03-30T00:00",
      ],
    ],
    [
      "back",
      "2026-10-25",
      [
        "2026-10-24T23:59",
        "2026-10-25T00:00",
        "2026-10-25T02:30",
        "2026-10-25T03:00",
        "2026-10-25T23:59",
        "2026-10-26T00:00",
      ],
    ],
  ])("on the day when the clock goes %s has equal sums in rows, totals and CSV [H4]", async (_name, day, times) => {
    for (const [n, time] of times.entries()) await spend(berlin(time), { prompt: 1 + n });
    const oneDay = await usage(`from=${day}&to=${day}&by=day,model`);
    expect(oneDay).toMatchObject({
      items: [{ day, requests: 4 }],
      totals: { requests: 4, promptTokens: 14, credits: "51.000" },
    });
    const range = `from=${times[0]!.slice(0, 10)}&to=${times.at(-1)!.slice(0, 10)}`;
    const days = await usage(`${range}&by=day`);
    expect(days.items.map((row: { requests: number }) => row.requests)).toEqual([1, 4, 1]);
    expect(sum(days.items)).toBe(days.totals.credits);
    expect(sum((await csvOf(`${range}&by=day`)) as never)).toBe(days.totals.credits);
  });

  test("has the same sums as its CSV, for any parts, filters and pages [H4]", async () => {
    const random = createRandom(7);
    for (let n = 0; n < 60; n++) {
      const by = random.pick([ada, ben]);
      const key = random.chance(0.2) ? asId<KeyId>(by.id) : by === ada ? adasKey : bensKey;
      const model = random.pick(["small-24b", "coder-next", "general-4-31b"]);
      await spend(clock.now() - random.below(5 * dayMs), { prompt: random.below(30_000), by, key, model });
    }
    const whole = await usage("from=2026-11-01&to=2026-11-30&by=model");
    for (const by of ["day", "key", "day,model,key,user", "user,model"]) {
      expect((await usage(`from=2026-11-01&to=2026-11-30&by=${by}`)).totals).toEqual(whole.totals);
      for (const filter of [
        "",
        "&model=small-24b",
        `&keyId=${bensKey}`,
        `&userId=${ada.id}`,
        "&search=BATCH",
        "&sort=requests&order=asc",
      ]) {
        const query = `from=2026-11-01&to=2026-11-30&by=${by}${filter}`;
        const { items, totals, total } = await usage(`${query}&pageSize=200`);
        expect(items).toHaveLength(total);
        expect(sum(items)).toBe(totals.credits);
        expect(items.reduce((n: number, row: { requests: number }) => n + row.requests, 0)).toBe(totals.requests);
        const csv = await csvOf(query);
        expect(csv).toHaveLength(total);
        expect(sum(csv as never)).toBe(totals.credits);
        const paged = [await usage(`${query}&pageSize=3`), await usage(`${query}&pageSize=3&page=2`)];
        expect(paged.flatMap((page) => page.items)).toEqual(items.slice(0, 6));
        expect(paged[1].totals).toEqual(totals);
      }
    }
    expect(await usage("from=2026-11-01&to=2026-11-30&page=9")).toMatchObject({ items: [], totals: whole.totals });
  });

  test("shows each sum under its own name in rows, totals and CSV, in the order of the declaration", async () => {
    for (const key of [adasKey, asId<KeyId>(ada.id)]) await spend(clock.now(), { key, estimated: 3 });
    const one = { requests: 1, promptTokens: 10, completionTokens: 5, totalTokens: 15, estimatedTokens: 3 };
    const { items, totals } = await usage("by=key");
    expect(items).toMatchObject([1, 2].map(() => ({ key: expect.any(Object), ...one, credits: "22.500" })));
    expect(totals).toMatchObject({
      ...{ requests: 2, promptTokens: 20, completionTokens: 10, totalTokens: 30, estimatedTokens: 6 },
      credits: "45.000",
    });
    const csv = await csvOf("by=key");
    const texts = Object.entries(one).map(([name, value]) => [name, String(value)] as const);
    expect(csv).toMatchObject([1, 2].map(() => ({ ...Object.fromEntries(texts), credits: "22.500" })));
    expect(Object.keys(csv[0]!).slice(-usageSums.length)).toEqual(usageSums);
  });

  test("shows the playground as a separate key, and keys by their names", async () => {
    await spend(clock.now(), { key: asId(ada.id) });
    await spend(clock.now(), { prompt: 100 });
    const { items } = await usage("by=key");
    expect(items.map(({ key }: any) => key)).toEqual([
      { id: adasKey, kind: "api", name: "=cmd()|'x'", lastFour: expect.any(String), userEmail: ada.email },
      { id: ada.id, kind: "test-chat", name: null, lastFour: null, userEmail: ada.email },
    ]);
  });

  test("names the model, key and user to which it is restricted, unless the asker may not see them", async () => {
    const filterOf = async (query: string, who = ada) => (await usage(query, who)).filter;
    expect(await filterOf("")).toEqual({ model: null, key: null, user: null });
    const bens = {
      id: bensKey,
      kind: "api",
      name: "batch, at night",
      lastFour: expect.any(String),
      userEmail: ben.email,
    };
    const asked = `model=coder-next&keyId=${bensKey}&userId=${ben.id}`;
    const whole = { model: "coder-next", key: bens, user: { id: ben.id, email: ben.email } };
    expect(await filterOf(asked)).toEqual(whole);
    expect(await filterOf(asked, ben)).toEqual(whole);
    expect((await filterOf(`keyId=${ada.id}`)).key).toEqual({
      ...{ id: ada.id, kind: "test-chat", name: null, lastFour: null, userEmail: ada.email },
    });
    const nameless = { id: adasKey, kind: "api", name: null, lastFour: null, userEmail: null };
    const strangers = [ben, await portal.newAccount("Other")];
    for (const who of strangers)
      expect(await filterOf(`keyId=${adasKey}&userId=${ada.id}`, who)).toEqual({
        ...{ model: null, key: nameless, user: { id: ada.id, email: null } },
      });
  });

  test("of others does not exist for a member", async () => {
    await spend(clock.now());
    await spend(clock.now(), { by: ben, key: bensKey });
    expect((await usage("by=user", ben)).items).toMatchObject([{ user: { id: ben.id }, requests: 1 }]);
    expect((await usage(`by=user&userId=${ada.id}`, ben)).items).toEqual([]);
    expect((await usage(`by=key&keyId=${adasKey}`, ben)).items).toEqual([]);
    expect(await csvOf("by=user", ben)).toMatchObject([{ userId: ben.id, requests: "1" }]);
  });

  test("of another account does not exist", async () => {
    await spend(clock.now());
    const eve = await portal.newAccount("Other", { package: "Pro" });
    for (const query of ["by=key", `keyId=${adasKey}`, `userId=${ada.id}`])
      expect(await usage(query, eve)).toMatchObject({ items: [], totals: { requests: 0, credits: "0.000" } });
  });

  test("covers the billing period unless days are given, and wrong days are refused by name", async () => {
    expect(await usage("")).toMatchObject({
      from: "2026-11-14",
      to: "2026-12-13",
      periodStart: "2026-11-14T08:00:00Z",
    });
    for (const [query, param] of [
      ["from=2026-02-30", "from"],
      ["from=2026-11-02&to=2026-11-01", "to"],
      ["by=hour", "by"],
      ["sort=colour", "sort"],
    ])
      expect(await portal.get(`/usage?${query}`, ada)).toMatchObject({ status: 400, json: { error: { param } } });
  });
});
