/** Usage, package and audit log in a real browser: the server computes sums, and an order costs the shown price. */
import { beforeAll, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { servicePackages, type PackageTerms } from "@weiche/shared/packages.ts";
import { createFormat } from "../../portal-web/src/messages/format.ts";
import { endOfGermanDay, germanDay } from "../../portal-web/src/time/german-day.ts";
import { trialEndMs } from "../../src/subscriptions/billing-period.ts";
import { publishPackages } from "../../src/subscriptions/publish-packages.ts";
import { startPortal, type Person } from "../surface/portal-rig.ts";
import { axeFindings, openTab, startBrowser } from "./browser.ts";
import { fillAccount, ShiftedClock } from "./busy-account.ts";
import { hands } from "./hands.ts";

let ada: Person;

const clock = new ShiftedClock();
const browser = await forThisFile(startBrowser());
const portal = await forThisFile(startPortal({ clock }));
beforeAll(async () => {
  ada = await fillAccount(portal, clock);
});

test("rows, totals, chart and CSV have the same numbers [H4]", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  const { page } = tab;
  await page.goto("/usage?by=key");
  const total = page.getByRole("row", { name: /^Total/ });
  await total.waitFor();
  expect(await axeFindings(page)).toEqual([]);
  expect(tab.asked().length).toBeLessThanOrEqual(4);
  const { totals } = (await portal.get("/usage?by=key", ada)).json;
  for (const [title, name] of [
    ["Requests", "requests"],
    ["Tokens in", "promptTokens"],
    ["Tokens out", "completionTokens"],
    ["Credits", "credits"],
  ] as const) {
    const texts = await page.locator(`[data-label="${title}"]`).allTextContents();
    const [shown, ...rows] = texts.map((text) => Number(text.replaceAll(",", ""))).toReversed();
    expect(rows).toHaveLength(5);
    expect(rows.reduce((sum, row) => sum + row, 0)).toBeCloseTo(shown!, 2);
    expect(shown).toBe(Number(totals[name]));
  }

  const href = await page.getByRole("link", { name: "CSV" }).getAttribute("href");
  const lines = (await portal.get(href!.slice("/api".length), ada)).text.trim().split("\r\n");
  expect(lines).toHaveLength(6);
  const names = lines[0]!.split(/[;,]/);
  const credits = lines
    .slice(1)
    .map((line) => Number(line.split(/[;,]/)[names.indexOf("credits")]!.replaceAll('"', "")));
  expect(credits.reduce((sum, one) => sum + one, 0)).toBeCloseTo(Number(totals.credits), 2);

  const slider = page.getByRole("slider", { name: /Credits per day/ });
  const before = await slider.getAttribute("aria-valuetext");
  await slider.press("ArrowLeft");
  expect(await slider.getAttribute("aria-valuetext")).not.toBe(before);
  await page.getByRole("combobox", { name: "Days" }).selectOption("own");
  await page.getByLabel("From", { exact: true }).fill("2020-01-01");
  await page.getByLabel("To", { exact: true }).fill("2020-01-31");
  await page.getByRole("heading", { name: "Nothing in these days" }).waitFor();
  expect(await axeFindings(page)).toEqual([]);
  tab.check();
});

test.each(hands)(
  "%s: an upgrade whose price changes at midnight is shown again with the new price, and charged as shown [H5]",
  async (...way) => {
    const hand = way[1];
    const [minuteMs, dayMs] = [60_000, 86_400_000];
    const midnightMs = Date.parse(endOfGermanDay(germanDay(Date.now())));
    clock.earlierMs = 10 * dayMs;
    const { email, ...owner } = await portal.newAccount("Midnight", { package: "Pro" });
    clock.earlierMs = Date.now() - (midnightMs - 2 * minuteMs);
    const eve = await portal.signIn({ email, ...owner });
    await using tab = await openTab(browser, portal.origin, { cookie: eve.cookie });
    const { page } = tab;
    await page.goto("/package");
    await page.getByRole("heading", { name: "Business", exact: true }).waitFor();
    await hand.press(page, /^Upgrade: Business Upgrade$/);
    const order = page.getByRole("button", { name: /^Order for €[\d.]+ net$/ });
    await order.waitFor();
    expect(await axeFindings(page)).toEqual([]);
    const sum = async () => Number(/€([\d.]+)/.exec((await order.textContent())!)![1]);
    const shown = await sum();
    clock.earlierMs -= 5 * minuteMs;
    await hand.press(page, /^Order for/);
    await page.getByRole("alert").getByText("The price changed meanwhile").waitFor();
    const later = await sum();
    expect(later).toBeLessThan(shown);
    const lines = async () => (await portal.get("/package/invoice-lines", eve)).json.items;
    expect(await lines()).toHaveLength(1);
    await hand.press(page, /^Order for/);
    await page.getByText("The larger package holds now").waitFor();
    await page.getByRole("cell", { name: `€${later.toFixed(2)}`, exact: true }).waitFor();
    expect((await lines()).at(-1).amountCents).toBe(Math.round(later * 100));
    clock.earlierMs = 0;
    tab.check();
  },
);

test.each(hands)(
  "%s: a downgrade and a cancellation are announced, and each can be withdrawn [H6]",
  async (_way, hand) => {
    const owner = await portal.newAccount("Other", { package: "Business" });
    await using tab = await openTab(browser, portal.origin, { cookie: owner.cookie });
    const { page } = tab;
    await page.goto("/package");
    await page.getByRole("heading", { name: "Starter" }).waitFor();
    await hand.press(page, /^Downgrade: Starter/);
    await page.getByRole("button", { name: "Confirm" }).waitFor();
    await hand.press(page, /^Confirm$/);
    await page.getByText(/Changes to Starter on/).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await hand.press(page, /^Withdraw$/);
    await page.getByRole("button", { name: "Confirm" }).waitFor();
    await hand.press(page, /^Confirm$/);
    await page.getByText(/Changes to Starter on/).waitFor({ state: "detached" });
    await hand.press(page, /^Cancel the package$/);
    await page.getByText(/After that the API answers 403 no_package/).waitFor();
    await hand.press(page, /^Cancel at the end of the period$/);
    const ended = page.getByText(/^(Your package|Business) is cancelled/);
    await ended.waitFor();
    await hand.goTo(page, "Overview");
    await ended.waitFor();
    await hand.goTo(page, "Package");
    await hand.press(page, /^Withdraw$/);
    await page.getByRole("button", { name: "Confirm" }).waitFor();
    await hand.press(page, /^Confirm$/);
    await page.getByText(/is cancelled/).waitFor({ state: "detached" });
    tab.check();
  },
);

test.each(hands)(
  "%s: a new account starts its trial and goes on to Pro at the full price [H5 H6]",
  async (_way, hand) => {
    const owner = await portal.newAccount("New");
    await using tab = await openTab(browser, portal.origin, { cookie: owner.cookie, language: "de" });
    const { page } = tab;
    for (const path of ["/", "/start"]) {
      await page.goto(path);
      await page.getByRole("main").getByRole("link", { name: "Paket" }).waitFor(); // what to do next
    }
    await page.getByRole("main").getByRole("link", { name: "Paket" }).click();
    await page.getByRole("button", { name: "Test beginnen" }).waitFor();
    await hand.press(page, /^Test beginnen$/);
    const end = createFormat("de").lastDay(new Date(trialEndMs(Date.now(), 30)).toISOString());
    await page.getByRole("dialog").getByText(`Der Test ist bis ${end} kostenlos.`).waitFor();
    await hand.press(page, /^Test beginnen$/);
    await page.getByText("Der Test hat begonnen").waitFor();
    await hand.press(page, /^Hochstufen: Pro /);
    await page.getByRole("button", { name: /Für 35,00.€ netto bestellen/ }).waitFor();
    await page.getByText("5.000.000 → 80.000.000; ein neuer Zeitraum beginnt, noch ohne Verbrauch").waitFor();
    await hand.press(page, /^Für 35,00.€ netto bestellen$/);
    await page.getByText(/^Pro, 35,00.€ netto im Monat/).waitFor();
    const lines = (await portal.get("/package/invoice-lines", owner)).json.items;
    expect(lines.map(({ amountCents }: { amountCents: number }) => amountCents)).toEqual([3_500]);
    tab.check();
  },
);

test("announced terms are shown at their package, a longer trial only to accounts that can have it", async () => {
  const validFromMs = Date.parse("2099-01-01T00:00:00+01:00");
  const coming = (name: string): Partial<PackageTerms> =>
    name === "Starter" ? { trialDays: 60 } : name === "Pro" ? { priceCents: 4_000 } : {};
  const announced = servicePackages.map(({ versions, ...one }) => {
    return { ...one, versions: [...versions, { ...versions[0]!, ...coming(one.name), validFromMs }] };
  });
  await publishPackages(portal.database, announced, clock.now());
  const newcomer = await portal.newAccount("Newcomer");
  const shown = async ({ cookie }: Person, language: "de" | "en") => {
    await using tab = await openTab(browser, portal.origin, { cookie, language });
    await tab.page.goto("/package");
    await tab.page.getByRole("heading", { name: "Business Plus" }).waitFor();
    expect(await axeFindings(tab.page)).toEqual([]);
    tab.check();
    const texts = await tab.page.getByRole("article").getByText(/2099/).allTextContents();
    return [await tab.page.getByText(/^\d+ (days of free trial|Tage kostenlos)/).allTextContents(), texts];
  };
  const from = "From the period that begins on 1 Jan 2099 or later";
  const pro = `${from}: €40.00 net a month, 80M credits, 60 requests per minute, 10 in parallel, with e-mail support`;
  expect(await shown(ada, "en")).toEqual([[], [pro]]);
  const [trial, [starter, ...more]] = (await shown(newcomer, "de")) as [string[], string[]];
  expect(trial).toEqual(["30 Tage kostenlos testen"]);
  expect(starter).toMatch(/^Ab dem Zeitraum, der am 01.01.2099 .* ohne E-Mail-Support, 60 Tage kostenlos testen$/);
  expect(more).toEqual([expect.stringContaining("40,00")]);
  await publishPackages(portal.database, servicePackages, clock.now());
});

test("the package's print view has only the invoice lines with the account's name", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: (await portal.signIn(ada)).cookie });
  const { page } = tab;
  await page.goto("/package");
  const lines = page.getByRole("table", { name: "Invoice lines" });
  const [account, packages] = [page.locator(".print-only"), page.getByRole("heading", { name: "Business Plus" })];
  await Promise.all([lines.waitFor(), packages.waitFor()]);
  expect([await account.isVisible(), await packages.isVisible()]).toEqual([false, true]);
  await page.emulateMedia({ media: "print" });
  expect([await account.isVisible(), await packages.isVisible()]).toEqual([true, false]);
  expect(await account.textContent()).toBe("ACME GmbH");
  expect(await lines.getByRole("row", { name: /^Total/ }).isVisible()).toBe(true);
  for (const other of ["navigation", "banner", "button"] as const)
    for (const one of await page.getByRole(other).all()) expect(await one.isVisible()).toBe(false);
  tab.check();
});

test("the audit log can be opened and searched only by Owners and Admins", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  const { page } = tab;
  await page.goto("/audit?search=old+laptop");
  await page.getByRole("cell", { name: "key.revoke" }).waitFor();
  expect(await page.getByRole("row").count()).toBe(3);
  await page.getByText("Details").first().click();
  expect(await axeFindings(page)).toEqual([]);
  await page.getByLabel("To").fill("2020-01-01");
  await page.getByRole("heading", { name: "No entry matches" }).waitFor();
  tab.check();
});
