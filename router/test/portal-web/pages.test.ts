/** Every page for every role; by night also in every theme, language and width. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Person } from "../surface/portal-rig.ts";
import { axeFindings, openTab } from "./browser.ts";
import { entrances, faultyPages, fetchedByPages, pagesOf, startVisited, type Visited } from "./page-visits.ts";

let browser: Visited["browser"];
let portal: Visited["portal"];
let people: Visited["people"];
let visited: Visited | undefined;

beforeAll(async () => {
  visited = await startVisited();
  ({ browser, portal, people } = visited);
});
afterAll(() => visited?.[Symbol.asyncDispose]());

test.each([
  ["owner", "light", "en", 1280],
  ["admin", "dark", "de", 1280],
  ["member", "light", "de", 320],
] as const)("of the %s, every page in %s, %s, %i pixels wide is clean", async (role, theme, language, width) => {
  const look = { cookie: people[role].cookie, theme, language, width };
  expect(await faultyPages(browser, portal, pagesOf(role), look)).toEqual([]);
});

test("a role's navigation has the pages that it may use, and their addresses show no others", async () => {
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
    "Models",
    "Test chat",
    "Package",
    "Users",
    "Audit log",
    "First call",
    "Help",
  ];
  expect(await names(people.owner)).toEqual(all);
  expect(await names(people.admin)).toEqual(all);
  expect(await names(people.member)).toEqual(all.filter((name) => !["Users", "Audit log"].includes(name)));
  await using tab = await openTab(browser, portal.origin, { cookie: people.member.cookie });
  await tab.page.goto("/audit");
  await tab.page.getByRole("heading", { name: "There is no such page" }).waitFor();
  await tab.page.goto("/package");
  await tab.page.getByText("Owners of the account order and change the package.").waitFor();
  expect(await tab.page.getByRole("button", { name: /Upgrade|Cancel/ }).count()).toBe(0);
});

test.each([
  ["loading", "light", "de", 390],
  ["failing", "dark", "en", 320],
] as const)("of pages that are %s, in %s, %s, %i pixels wide, each is clean and says so", async (...state) => {
  const [trouble, theme, language, width] = state;
  const visit = { cookie: people.owner.cookie, theme, language, width, trouble };
  expect(await faultyPages(browser, portal, pagesOf("owner"), visit)).toEqual([]);
});

const narrow = { theme: "dark", language: "de", width: 320 } as const;

test("of an account in which nothing has happened, every page is clean", async () => {
  const visit = { cookie: visited!.newcomer.cookie, ...narrow };
  expect(await faultyPages(browser, portal, pagesOf("owner"), visit)).toEqual([]);
});

test("of those who are not signed in, every page is clean", async () => {
  expect(await faultyPages(browser, portal, entrances, narrow)).toEqual([]);
});

test("pages fetch what they may: 130 kB for sign-in and overview, 190 for any other, by three calls", async () => {
  const signIn = await fetchedByPages(browser, portal, ["/"]);
  expect(signIn.get("/")!.weight).toBeLessThanOrEqual(130);
  const pages = await fetchedByPages(browser, portal, pagesOf("owner"), people.owner.cookie);
  expect(pages.get("/")!.weight).toBeLessThanOrEqual(130);
  expect(pages.get("/usage")!.weight).toBeGreaterThan(pages.get("/")!.weight); // what the browser has kept is counted, too
  expect([...pages].filter(([, { weight }]) => weight > 190)).toEqual([]);
  expect([...pages].filter(([, { calls }]) => calls.length > 3)).toEqual([]);
});

test("moving between pages puts the focus on the heading, and the menu of narrow screens closes", async () => {
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

test.each([
  [
    "a style of its own",
    "document.head.append(Object.assign(document.createElement('style'), { textContent: 'p {}' }))",
  ],
  ["a script as text", "document.body.innerHTML = '<b></b>'"],
  ["an error", "console.error('broken')"],
  ["a foreign address", "fetch('https://example.com/').catch(() => {})"],
])("the tests notice a page with %s", async (_what, script) => {
  await using tab = await openTab(browser, portal.origin);
  await tab.page.goto("/");
  await tab.page.getByRole("heading", { name: "Sign in" }).waitFor();
  // In the page itself: what comes through the debugger is beyond its policy.
  await tab.page.evaluate(`setTimeout(() => { ${script} })`);
  await expect
    .poll(() => {
      try {
        return tab.check();
      } catch {
        return "noticed";
      }
    })
    .toBe("noticed");
});

test("axe notices what nobody can read", async () => {
  await using tab = await openTab(browser, portal.origin);
  await tab.page.goto("/");
  await tab.page.getByRole("heading", { name: "Sign in" }).waitFor();
  await tab.page.evaluate("document.querySelector('main h1').style.color = '#eee'");
  await tab.page.evaluate("document.querySelector('label').remove()");
  expect((await axeFindings(tab.page)).map((finding) => finding.split(":")[0])).toEqual(["color-contrast", "label"]);
});
