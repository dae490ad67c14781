/**
 * Tests usage and requests in a real browser: chart, table, total and the downloaded CSV agree for every filter, also when
 * clocks change.
 */
import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type KeyId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { timeZone } from "../../src/subscriptions/billing-period.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import { UnansweredRequests } from "../../src/usage/requests/unanswered-requests.ts";
import { createRefusals } from "../../src/usage/refusal-counts.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { startPortal, type Person } from "../surface/portal-rig.ts";
import { makeRecord } from "../usage/usage-records.ts";
import { press, tabTo } from "./keyboard.ts";
import { axeFindings, openTab, startBrowser, type Page } from "./browser.ts";

let ada: Person;
let ben: Person;
let keys: Readonly<Record<"ada" | "ben", KeyId>>;

const browser = await forThisFile(startBrowser());
const portal = await forThisFile(startPortal());
beforeAll(async () => {
  ada = await portal.newAccount("ACME GmbH", { package: "Pro" });
  ben = await portal.newUser(ada, "member");
  const make = async ({ id }: Person, name: string) => (await portal.accounts.keys.create(id, { name })).id;
  keys = { ada: await make(ada, "ci"), ben: await make(ben, "batch") };
});

/** A request that costs as many credits as it has tokens, at a German time. */
async function spend(at: string, credits: number, by: "ada" | "ben" = "ada", model = "small-24b"): Promise<void> {
  const atMs = Temporal.PlainDateTime.from(at).toZonedDateTime(timeZone).epochMilliseconds;
  await makeUsageDays(portal.database.pool, [atMs]);
  const record = makeRecord(createRandom(1), atMs, {
    requestId: asId(uuidv7({ now: () => atMs })),
    accountId: ada.accountId,
    userId: (by === "ada" ? ada : ben).id,
    keyId: keys[by],
    model: asId(model),
    factor: millicredits(1_000n),
    ...{ promptTokens: credits, completionTokens: 0 },
  });
  await commitUsage(portal.database.pool, [{ node: asId("node-1"), record }]);
}

/** The credits that the page shows, in each of its ways. */
async function shown(page: Page) {
  const total = page.getByRole("row", { name: /^Total/ });
  await total.waitFor();
  const credits = (cells: readonly string[]) => Number(cells[4]!.replaceAll(",", ""));
  const rows = await page.getByRole("table").locator("tbody").getByRole("row").all();
  const listed = await Promise.all(rows.map(async (row) => credits(await row.getByRole("cell").allTextContents())));
  const slider = page.getByRole("slider", { name: /Credits per day/ });
  await tabTo(page, /Credits per day/);
  await page.keyboard.press("Home");
  const bars = [];
  for (let bar = Number(await slider.getAttribute("max")); bar >= 0; bar--) {
    bars.push(Number(/: (\d+) credits/.exec((await slider.getAttribute("aria-valuetext"))!)![1]));
    await page.keyboard.press("ArrowRight");
  }
  const download = page.waitForEvent("download");
  await press(page, /^CSV$/);
  const lines = readFileSync(await (await download).path(), "utf8")
    .trim()
    .split("\r\n");
  const column = lines[0]!.split(",").indexOf("credits");
  return {
    rows: listed,
    total: credits(await total.getByRole("cell").allTextContents()),
    bars,
    csv: lines.slice(1).map((line) => Number(line.split(",")[column])),
  };
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);

test.each([
  ["forward, a day of 23 hours", "2025-03-30", ["00:00", "01:59", "03:00", "23:59"]],
  ["back, a day of 25 hours", "2025-10-26", ["00:00", "01:59", "02:30", "03:00", "23:59"]],
] as const)("when clocks go %s, each request is on its day, and all sums agree [H4]", async (_name, day, times) => {
  const [before, after] = [-1, 1].map((days) => Temporal.PlainDate.from(day).add({ days }).toString());
  await spend(`${before}T23:59`, 1);
  for (const [index, time] of times.entries()) await spend(`${day}T${time}`, 10 * 2 ** index);
  await spend(`${after}T00:00`, 3);
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  await tab.page.goto(`/usage?from=${before}&to=${after}&by=day&sort=day&order=asc`);
  const here = 10 * (2 ** times.length - 1);
  const days = [1, here, 3];
  expect(await shown(tab.page)).toEqual({ rows: days, total: sum(days), bars: days, csv: days });
  tab.check();
});

test("the period's use says that its first day began earlier, and whole days do not", async () => {
  await spend(Temporal.Now.plainDateTimeISO(timeZone).toString(), 1);
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  const { page } = tab;
  await page.goto("/usage");
  await page.getByText("What was used earlier on that day belongs to the period before").waitFor();
  await page.getByRole("combobox", { name: "Days" }).selectOption("7");
  await page.getByText("What was used earlier").waitFor({ state: "detached" });
  expect(await axeFindings(page)).toEqual([]);
  tab.check();
});

test("a filter by key, user or model applies everywhere, and can be removed [H4]", async () => {
  const [first, second] = ["2025-06-02", "2025-06-03"];
  await spend(`${first}T10:00`, 1);
  await spend(`${first}T11:00`, 20, "ada", "coder-next");
  await spend(`${first}T12:00`, 300, "ben");
  await spend(`${second}T10:00`, 4, "ben", "coder-next");
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  const { page } = tab;
  const from = `from=${first}&to=${second}`;
  const only = page.getByRole("list", { name: "Restricted to" });
  const expectDays = async (...days: readonly number[]) => {
    const { rows, total, bars, csv } = await shown(page);
    expect({ rows, total, csv }).toEqual({ rows: days, total: sum(days), csv: days });
    expect(bars.filter((bar) => bar > 0)).toEqual(days);
  };
  for (const [by, name, chip, days] of [
    ["key", "ci", /^Key: ci …\w{4}$/, [21]],
    ["user", ben.email, `User: ${ben.email}`, [300, 4]],
    ["model", "coder-next", "Model: coder-next", [20, 4]],
  ] as const) {
    await page.goto(`/usage?${from}&by=${by}`);
    await page.getByRole("link", { name, exact: true }).click();
    await only.getByText(chip).waitFor();
    await page.goto(`${page.url()}&sort=day&order=asc`);
    await expectDays(...days);
  }
  await page.goto(`/usage?${from}&by=day&sort=day&order=asc&key=${keys.ben}&user=${ben.id}&model=coder-next`);
  await only.getByText("Key: batch").waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await expectDays(4);
  await page.getByRole("button", { name: "Remove the restriction: Model: coder-next" }).click();
  await only.getByText("Model:").waitFor({ state: "detached" });
  await expectDays(300, 4);
  tab.check();
});

test("the lists of keys and users link to their usage", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  const { page } = tab;
  for (const [path, of, chip] of [
    ["/keys", "ci", "Key: ci"],
    ["/users", ben.email, `User: ${ben.email}`],
  ] as const) {
    await page.goto(path);
    await page.getByRole("button", { name: `Actions for ${of}` }).click();
    await page.getByRole("menuitem", { name: "Usage" }).click();
    await page.getByRole("list", { name: "Restricted to" }).getByText(chip).waitFor();
    expect(new URL(page.url()).pathname).toBe("/usage");
  }
  tab.check();
});

/** A request of Ada's that is refused now. Returns its id. */
async function refuse(code: "rate_limit_minute" | "timeout", status: number): Promise<string> {
  const { pool } = portal.database;
  const of = { accountId: ada.accountId, userId: ada.id, keyId: keys.ada };
  const unanswered = new UnansweredRequests(pool, systemClock);
  const refusals = createRefusals(pool, systemClock);
  const requestId = asId<never>(uuidv7(systemClock));
  unanswered.add({ requestId, ...of, model: asId("small-24b"), code, status, durationMs: 4 });
  refusals.count(of, code);
  await Promise.all([unanswered.flush(), refusals.flush()]);
  return requestId;
}

const german = (ms: number) =>
  Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone).toPlainDateTime();

test("the count of a refusal leads to its requests, each with its id, its reason and what helps [H4]", async () => {
  await spend(german(Date.now() - 60_000).toString(), 321);
  const slow = await refuse("timeout", 504);
  const refused = await refuse("rate_limit_minute", 429);
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  const { page } = tab;
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto("/");
  await page.getByRole("link", { name: "1 × 429 too many per minute" }).click();
  await page.getByRole("heading", { name: "Requests", level: 1 }).waitFor();
  const only = page.getByRole("list", { name: "Restricted to" });
  await only.getByText("Reason: too many per minute").waitFor();
  const rows = page.locator("tbody").getByRole("row");
  expect(await rows.count()).toBe(1);
  await page.getByRole("button", { name: /^Details of the request at / }).click();
  const dialog = page.getByRole("dialog", { name: "Request" });
  await dialog.getByText(refused, { exact: true }).waitFor();
  await dialog.getByText("Send fewer requests per minute", { exact: false }).waitFor();
  await dialog.getByRole("button", { name: "Copy" }).click();
  await dialog.getByRole("button", { name: "Copied" }).waitFor();
  expect(await page.evaluate("navigator.clipboard.readText()")).toBe(refused);
  expect(await axeFindings(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Remove the restriction: Reason: too many per minute" }).click();
  await page.getByRole("row", { name: /small-24b .* 321 \/ 0 321 .* answered 200/ }).waitFor();
  await page.getByLabel("Result").selectOption("refused");
  await expect.poll(() => rows.count()).toBe(2);
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "CSV" }).click();
  const csv = readFileSync(await (await download).path(), "utf8").split("\r\n");
  expect(csv.slice(1, -1).map((line) => line.split(",")[1])).toEqual([refused, slow]);
  tab.check();
});

test("by keyboard alone, older requests are shown, one is opened and closed, and a search without a match is cleared", async () => {
  for (let n = 0; n < 51; n++)
    await spend(german(Date.now() - 7_200_000 - n * 1_000).toString(), 1_000 + n, "ben", "coder-next");
  await using tab = await openTab(browser, portal.origin, { cookie: ben.cookie });
  const { page } = tab;
  await page.goto("/requests?time=24h&model=coder-next");
  await page.getByRole("row", { name: /1,000 \/ 0/ }).waitFor();
  expect(await page.locator("tbody").getByRole("row").count()).toBe(50);
  expect(await page.locator("table").getByText(ben.email).count()).toBe(0); // members see their own requests only
  await press(page, /^Older$/, 250);
  await page.getByRole("row", { name: /1,050 \/ 0/ }).waitFor();
  expect(await page.locator("tbody").getByRole("row").count()).toBe(1);
  await press(page, /^Details of the request at /);
  await page.getByRole("dialog", { name: "Request" }).getByText("The whole answer was sent.").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Request" }).waitFor({ state: "detached" });
  expect(await page.evaluate("document.activeElement.getAttribute('aria-label')")).toMatch(
    /^Details of the request at /,
  );
  await page.goto("/requests?result=broken");
  await page.getByRole("heading", { name: "No request matches" }).waitFor();
  await press(page, /^Show all requests$/);
  await page.getByRole("row", { name: /1,000 \/ 0/ }).waitFor();
  tab.check();
});
