/** Every page for every role; by night also in every theme, language and width. */
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { axeFindings, openTab } from "./browser.ts";
import { entrances, faultyPages, fetchedByPages, pagesOf, startVisited } from "./page-visits.ts";

const visited = await forThisFile(startVisited());
const { browser, portal, people } = visited;

test.each([
  ["owner", "light", "en", 1280],
  ["admin", "dark", "de", 1280],
  ["member", "light", "de", 320],
] as const)(
  "of the %s, every page in %s, %s, %i pixels wide is clean [H1 H6]",
  async (role, theme, language, width) => {
    const look = { cookie: people[role].cookie, theme, language, width };
    expect(await faultyPages(browser, portal, pagesOf(role), look)).toEqual([]);
  },
);

/** Tests each state in another role and theme. The nightly run tests all combinations. */
test.each([
  ["loading", "member", "dark", "de", 1280],
  ["failing", "owner", "dark", "de", 320],
  ["forbidden", "admin", "light", "de", 390],
] as const)(
  "every page in the state %s, for the %s, in %s, %s, %i pixels wide, is without faults and shows its state [H1]",
  async (...state) => {
    const [trouble, role, theme, language, width] = state;
    const visit = { cookie: people[role].cookie, theme, language, width, trouble };
    expect(await faultyPages(browser, portal, pagesOf(role), visit)).toEqual([]);
  },
);

test("a placeholder is shown after 300 ms without data, not earlier", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: people.member.cookie });
  const { page } = tab;
  await page.route("**/api/keys?*", () => {}); // no answer
  await page.goto("/keys");
  await page.locator("main .skeleton").waitFor();
  const opacityAfter = (ms: number) =>
    page.evaluate(`(() => {
      const placeholder = document.querySelector("main .skeleton");
      const [shown] = placeholder.getAnimations();
      shown.pause();
      shown.currentTime = ${ms};
      return getComputedStyle(placeholder).opacity;
    })()`);
  for (const reducedMotion of ["no-preference", "reduce"] as const) {
    await page.emulateMedia({ reducedMotion });
    expect([await opacityAfter(299), await opacityAfter(600)]).toEqual(["0", "1"]);
  }
  tab.check();
});

const narrow = { theme: "dark", language: "de", width: 320 } as const;

test.each([
  ["owner", narrow],
  ["admin", { theme: "light", language: "en", width: 390 }],
  ["member", { theme: "light", language: "de", width: 1280 }],
] as const)("of an account in which nothing has happened, every page of the %s is clean [H1]", async (role, look) => {
  const visit = { cookie: visited!.newcomers[role].cookie, ...look };
  expect(await faultyPages(browser, portal, pagesOf(role), visit)).toEqual([]);
});

test("in German the models page is never too wide, and no word of its table is broken", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: people.owner.cookie, language: "de" });
  const { page } = tab;
  await page.goto("/models");
  await page.locator("main tbody tr").first().waitFor();
  const found: string[] = [];
  for (const width of [1280, 1100, 1024, 920, 800, 769, 360]) {
    await page.setViewportSize({ width, height: 800 });
    await tab.settled();
    const { sideways, broken } = (await page.evaluate(layoutOfTable)) as { sideways: number; broken: string[] };
    found.push(
      ...broken.map((word) => `${width}: ${word}`),
      ...(sideways > 0 ? [`${width}: ${sideways} too wide`] : []),
    );
  }
  expect(found).toEqual([]);
});

/** Words on two lines, and how many pixels the page is too wide. */
const layoutOfTable = `(() => {
  const broken = [];
  const texts = document.createTreeWalker(document.querySelector("main table"), NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode())
    for (const { 0: word, index } of text.data.matchAll(/[\\p{L}\\d.,]+/gu)) {
      const range = new Range();
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      if (text.parentElement.checkVisibility() && new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1)
        broken.push(word);
    }
  return { broken, sideways: document.documentElement.scrollWidth - innerWidth };
})()`;

test("every page without a sign-in is without faults [H1]", async () => {
  expect(await faultyPages(browser, portal, entrances, narrow)).toEqual([]);
});

test("pages fetch what they may: 130 kB for sign-in, 150 for the overview and 190 for any other, by three calls", async () => {
  const signIn = await fetchedByPages(browser, portal, ["/"]);
  expect(signIn.get("/")!.weight).toBeLessThanOrEqual(130);
  const pages = await fetchedByPages(browser, portal, pagesOf("owner"), people.owner.cookie);
  expect(pages.get("/")!.weight).toBeLessThanOrEqual(150);
  expect(pages.get("/usage")!.weight).toBeGreaterThan(pages.get("/")!.weight); // cached files are counted, too
  expect([...pages].filter(([, { weight }]) => weight > 190)).toEqual([]);
  expect([...pages].filter(([, { calls }]) => calls.length > 3)).toEqual([]);
});

test.each([
  [
    "a style of its own",
    "document.head.append(Object.assign(document.createElement('style'), { textContent: 'p {}' }))",
  ],
  ["a script as text", "document.body.innerHTML = '<b></b>'"],
  ["an error", "console.error('broken')"],
  ["a foreign address", "fetch('https://example.com/').catch(() => {})"],
])("the tests notice a page with %s [H1]", async (_what, script) => {
  await using tab = await openTab(browser, portal.origin);
  await tab.page.goto("/");
  await tab.page.getByRole("heading", { name: "Sign in" }).waitFor();
  // Runs in the page itself, because the page's policy does not apply to code from the debugger.
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

test("axe reports unreadable text [H6]", async () => {
  await using tab = await openTab(browser, portal.origin);
  await tab.page.goto("/");
  await tab.page.getByRole("heading", { name: "Sign in" }).waitFor();
  await tab.page.evaluate("document.querySelector('main h1').style.color = '#eee'");
  await tab.page.evaluate("document.querySelector('label').remove()");
  expect((await axeFindings(tab.page)).map((finding) => finding.split(":")[0])).toEqual(["color-contrast", "label"]);
});
