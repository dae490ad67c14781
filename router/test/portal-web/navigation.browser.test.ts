/** Goes from page to page as each role, and tests the entries of the navigation and the focus. */
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { createFormat } from "../../portal-web/src/messages/format.ts";
import type { Person } from "../surface/portal-rig.ts";
import { axeFindings, openTab } from "./browser.ts";
import { hands } from "./hands.ts";
import { pagesOf, startVisited } from "./page-visits.ts";

const { browser, portal, people, newcomers } = await forThisFile(startVisited());

test("a role's navigation has only its pages, and addresses of other pages are not shown [H2]", async () => {
  const names = async (who: Person) => {
    await using tab = await openTab(browser, portal.origin, { cookie: who.cookie });
    await tab.page.goto("/");
    const links = tab.page.getByRole("navigation", { name: "Pages" }).getByRole("link");
    await links.first().waitFor();
    return await links.allTextContents();
  };
  const all = [
    "Overview",
    "Keys",
    "Usage",
    "Requests",
    "Models",
    "Playground",
    "Package",
    "Invoices",
    "Users",
    "Settings",
    "Audit log",
    "First call",
    "Help",
  ];
  expect(await names(people.owner)).toEqual(all);
  const ofOwners = ["Invoices", "Settings"];
  const without = (hidden: readonly string[]) => all.filter((name) => !hidden.includes(name));
  expect(await names(people.admin)).toEqual(without(ofOwners));
  expect(await names(people.member)).toEqual(without([...ofOwners, "Users", "Audit log"]));
  await using tab = await openTab(browser, portal.origin, { cookie: people.member.cookie });
  await tab.page.goto("/audit");
  await tab.page.getByRole("heading", { name: "There is no such page" }).waitFor();
  await tab.page.goto("/package");
  await tab.page.getByText("Owners of the account order and change the package.").waitFor();
  expect(await tab.page.getByRole("button", { name: /Upgrade|Cancel/ }).count()).toBe(0);
});

/** Nightly runs try every role; the pages of roles differ, but the way to them does not. */
const everyRole = process.env["WEICHE_NIGHTLY"] ? (["owner", "admin", "member"] as const) : (["owner"] as const);

test.each(hands.flatMap((hand) => everyRole.map((role) => [...hand, role] as const)))(
  "%s, $2: every page of the role can be reached, and the focus is on its heading [H6]",
  async (_way, hand, role) => {
    await using tab = await openTab(browser, portal.origin, { cookie: people[role].cookie });
    const { page } = tab;
    await page.goto("/help");
    const links = page.getByRole("navigation", { name: "Pages" }).getByRole("link");
    await links.first().waitFor();
    const reached = new Set<string>();
    const arrived = async (title: string) => {
      await page.getByRole("heading", { name: title, exact: true, level: 1 }).waitFor();
      await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe(title);
      reached.add(new URL(page.url()).pathname);
    };
    for (const title of await links.allTextContents()) {
      await hand.goTo(page, title);
      await arrived(title);
      if (title !== "Models") continue;
      await hand.press(page, /^Changelog$/);
      await arrived("Changelog");
    }
    await hand.press(page, /^Notices, /);
    await arrived("Notices");
    await hand.press(page, /^Signed in as/);
    await page.getByRole("menu").waitFor();
    await hand.choose(page, "My profile");
    await arrived("My profile");
    expect([...reached].toSorted()).toEqual(pagesOf(role).toSorted());
    tab.check();
  },
);

test("navigation puts the focus on the heading and closes the menu of narrow screens", async () => {
  const options = { viewport: { width: 390, height: 800 } };
  await using tab = await openTab(browser, portal.origin, { cookie: people.owner.cookie, options });
  const { page } = tab;
  await page.goto("/");
  await page.getByRole("button", { name: "Menu" }).click();
  expect(await axeFindings(page)).toEqual([]);
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Keys" }).click();
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("Keys");
  expect(await page.title()).toBe("Keys · Weiche");
  expect(await page.getByRole("navigation", { name: "Pages" }).isVisible()).toBe(false);
  tab.check();
});

test("the first steps lead a newcomer from a package to a key, and stay away once they are hidden", async () => {
  const { owner, member } = newcomers;
  await using tab = await openTab(browser, portal.origin, { cookie: owner.cookie });
  const { page } = tab;
  await page.goto("/");
  const steps = page.getByRole("region", { name: "Welcome" });
  await steps.waitFor();
  expect(await steps.getByRole("listitem").allTextContents()).toEqual([
    "Package",
    "Key",
    "First call",
    "Colleaguesdone",
  ]);
  expect(await page.locator(".button.primary").allTextContents()).toEqual(["Choose a package"]);
  await steps.getByRole("link", { name: "Choose a package" }).click();
  await page.getByRole("heading", { name: "Package", level: 1 }).waitFor();

  await using his = await openTab(browser, portal.origin, { cookie: member.cookie, language: "de" });
  await his.page.goto("/");
  await his.page.getByText("Bitten Sie einen Owner Ihres Kontos, ein Paket zu wählen.").waitFor();
  expect(await his.page.locator(".button.primary").count()).toBe(0);

  await portal.accounts.subscriptions.change(owner.accountId, { action: "trial" });
  await page.goto("/");
  const next = page.getByRole("region", { name: "First steps" });
  await next.getByRole("link", { name: "First call" }).waitFor();
  await page.getByText(/^Trial of Starter: \d+ days left, until .*unless you cancel\.$/).waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await next.getByRole("button", { name: "Hide" }).click();
  await next.waitFor({ state: "detached" });
  await page.reload();
  await page.getByRole("region", { name: "Credits of the package Starter" }).waitFor();
  expect(await next.count()).toBe(0);
  await his.page.reload();
  await his.page.getByRole("region", { name: "Erste Schritte" }).waitFor(); // of his own
  for (const each of [tab, his]) each.check();
});

test("each mail can be turned off, and stays off", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: people.member.cookie });
  const { page } = tab;
  await page.goto("/account");
  const topic = page.getByRole("checkbox", { name: "my keys that expire" });
  await topic.press("Space");
  await tab.settled();
  expect(await topic.evaluate((one) => one === one.ownerDocument.activeElement)).toBe(true);
  expect((await portal.get("/profile", people.member)).json.mailsOff).toEqual(["keys"]);
  await page.reload();
  await topic.waitFor();
  expect([await topic.isChecked(), await page.getByRole("checkbox", { checked: true }).count()]).toEqual([false, 4]);
  tab.check();
});

test("the overview shows the use of 30 days, and what will be used by the end of the period", async () => {
  const { pool } = portal.database;
  await pool.query("insert into limit_peaks values ($1, date_trunc('hour', now()), 48, 7) on conflict do nothing", [
    people.owner.accountId,
  ]);
  await using tab = await openTab(browser, portal.origin, { cookie: people.owner.cookie });
  const { page } = tab;
  await page.goto("/");
  const now = page.getByRole("region", { name: "Now" });
  await now.getByText("peak of the last 24 hours: 48").waitFor();
  await now.getByText("peak of the last 24 hours: 7").waitFor();
  const widths = await now
    .locator("rect.quota-expected")
    .evaluateAll((all) => all.map((one) => one.getAttribute("width")));
  expect(widths).toEqual(["80", "70"]);
  const { forecast, quota, used } = (await portal.get("/credits", people.owner)).json;
  const bar = page.getByRole("region", { name: /^Credits of the package/ }).locator("rect.quota-expected");
  const expected = Number(await bar.getAttribute("width"));
  expect(expected).toBeGreaterThan((used / quota) * 100);
  expect(Math.abs(expected - Math.min(100, (forecast.atEnd / quota) * 100))).toBeLessThan(0.5);
  const days = page.getByRole("region", { name: "Credits of the last 30 days" });
  expect(await days.locator("svg rect").count()).toBe(30);
  const { totals } = (await portal.get("/usage?by=day", people.owner)).json;
  await days.getByText(`${createFormat("en").short(totals.credits)} in all, most on`, { exact: false }).waitFor();
  await days.getByRole("link", { name: "Usage in detail" }).click();
  await page.getByRole("heading", { name: "Usage", level: 1 }).waitFor();
  tab.check();
});

test("without a network, a page that was not loaded says so, and a filter does not leave other rows", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: people.owner.cookie });
  const { page } = tab;
  await page.goto("/keys");
  await page.getByRole("cell", { name: /^ci/ }).waitFor();
  await page.context().setOffline(true);
  await page.getByRole("combobox", { name: "State" }).selectOption("revoked");
  await page.getByRole("main").getByText("Loading …").waitFor();
  await page.getByRole("alert").getByText("The portal does not answer.").waitFor();
  expect(await page.getByRole("row").count()).toBe(0);
  await page.getByRole("link", { name: "Audit log" }).click();
  await page.getByText("The portal does not answer. Check your connection.").waitFor();
  await page.context().setOffline(false);
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByRole("heading", { name: "Audit log" }).waitFor();
});
