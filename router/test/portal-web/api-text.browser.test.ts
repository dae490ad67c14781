/** docs/api.md in the portal: the whole text, with working links. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readPage } from "../../portal-web/src/pages/help/page-text.ts";
import { startPortal, type Person, type PortalRig } from "../surface/portal-rig.ts";
import { openTab, startBrowser, type Browser } from "./browser.ts";
import { faultyPages } from "./page-visits.ts";

const source = readFileSync(join(import.meta.dirname, "../../../docs/api.md"), "utf8");
let browser: Browser;
let portal: PortalRig;
let cleo: Person;

beforeAll(async () => {
  [browser, portal] = await Promise.all([startBrowser(), startPortal()]);
  cleo = await portal.newUser(await portal.newAccount("ACME GmbH", { package: "Pro" }), "member");
});
afterAll(async () => {
  await browser?.close();
  await portal?.[Symbol.asyncDispose]();
});

/** Returns the page's letters without markup, white space, and the pipes and backslashes of tables. */
function letters(text: string): string {
  return text.replaceAll(/[\s|\\]/g, "");
}

test("the help page links to a page with every word of api.md and working links", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: cleo.cookie });
  const { page } = tab;
  await page.goto("/help");
  await page.getByRole("link", { name: "For API clients" }).click();
  await page.getByRole("heading", { name: "For API clients", level: 1 }).waitFor();
  const [, text] = /^# For API clients\n(.+)$/s.exec(source)!;
  const words = text!
    .replaceAll(/^<!-- .* -->$/gm, "")
    .replaceAll(/^(#+ |- |\|[-|]+\|$)/gm, "")
    .replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1")
    .replaceAll("`", "");
  const shown = await page.evaluate(`(() => {
    const article = document.querySelector("article").cloneNode(true);
    article.querySelectorAll("caption").forEach((caption) => caption.remove());
    return article.textContent;
  })()`);
  const there = letters(String(shown));
  expect(words.split("\n").filter((line) => !there.includes(letters(line)))).toEqual([]);
  expect(there.length).toBe(letters(words).length);

  const links = (await page.evaluate(
    "[...document.querySelectorAll('article a')].map((link) => link.getAttribute('href'))",
  )) as string[];
  expect([...new Set(links)].toSorted()).toEqual(["#what-a-json-schema-may-cost", "/openapi.json"]);
  expect(await page.locator("#what-a-json-schema-may-cost").count()).toBe(1);
  expect((await fetch(`${portal.origin}/openapi.json`)).status).toBe(200);
  tab.check();
});

test("an address with a heading's anchor shows that part first", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: cleo.cookie });
  await tab.page.goto("/help/api#what-a-json-schema-may-cost");
  await tab.page.getByRole("heading", { name: "What a JSON Schema may cost" }).waitFor();
  await tab.settled();
  const top = Number(
    await tab.page.evaluate("document.getElementById('what-a-json-schema-may-cost').getBoundingClientRect().top"),
  );
  expect(top).toBeGreaterThan(0);
  expect(top).toBeLessThan(200);
  tab.check();
});

test.each([
  ["light", "en", 1280],
  ["dark", "de", 1280],
  ["dark", "en", 320],
  ["light", "de", 320],
] as const)("it is clean in %s, %s, %i pixels wide", async (theme, language, width) => {
  const visit = { cookie: cleo.cookie, theme, language, width };
  expect(await faultyPages(browser, portal, ["/help/api"], visit)).toEqual([]);
});

test("the German page marks the text as English, also for screen readers", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: cleo.cookie, language: "de" });
  await tab.page.goto("/help/api");
  await tab.page.getByText("Diesen Text gibt es nur auf Englisch.").waitFor();
  expect(await tab.page.locator("article[lang=en]").count()).toBe(1);
  tab.check();
});

test.each(["> quoted", "1. first", "```\ncode\n```", "#### small", "some **bold** word", "| a |\n| b |\nrest"])(
  "unsupported Markdown is refused instead of shown as plain text: %j",
  (markdown) => expect(() => readPage(markdown)).toThrow("cannot show this part of api.md"),
);
