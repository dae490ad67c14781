/**
 * Tests help and changelog in a real browser: every refusal has a text, limits equal the router's limits, and changes
 * are in the reader's language.
 */
import { beforeAll, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { apiErrors } from "@weiche/shared/errors.ts";
import { pageRefusals } from "../../src/edge/html-pages.ts";
import { startPortal, type Person } from "../surface/portal-rig.ts";
import { openTab, startBrowser } from "./browser.ts";
import { someChanges } from "./some-changes.ts";

let cleo: Person;

const browser = await forThisFile(startBrowser());
const portal = await forThisFile(startPortal({ parts: () => ({ changes: () => someChanges }) }));
beforeAll(async () => {
  cleo = await portal.newUser(await portal.newAccount("ACME GmbH", { package: "Pro" }), "member");
});

test("the help page explains every refusal, the address, the limits and LangChain's setting [H7]", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: cleo.cookie });
  const { page } = tab;
  await page.goto("/help");
  const errors = page.getByRole("table", { name: "When an answer is an error" });
  await errors.waitFor();
  const rows = await errors.getByRole("row").allTextContents();
  expect(rows).toHaveLength(1 + Object.keys(apiErrors).length + Object.keys(pageRefusals).length);
  for (const text of rows) expect(text.length).toBeGreaterThan(40);
  const codes = new Set(Object.values(apiErrors).flatMap(({ code }) => (/^\d+$/.test(code) ? [] : [code])));
  for (const code of codes) expect(await errors.getByText(code, { exact: true }).count()).toBe(1);
  await page.getByText("https://api.example/<x>/v1", { exact: true }).waitFor();
  await page.getByText(/may send 20 requests at once, and 10 a second/).waitFor();
  await page.getByText(/503 with an HTML page/).waitFor();
  for (const title of ["Streaming", "What a request costs", "What a JSON Schema may cost"])
    await page.getByRole("heading", { name: title }).waitFor();
  await page.getByText("data: [DONE]", { exact: true }).waitFor();
  await page.getByRole("row", { name: /^size when everything is written out.*1,000,000.*500,000$/ }).waitFor();
  await page.getByRole("tab", { name: "Python" }).click();
  await page.getByText("client = OpenAI(").waitFor();
  expect(tab.asked().length).toBeLessThanOrEqual(4);
  tab.check();
});

test("provisional factors and announced changes are marked, and changes are shown in the reader's language [H7]", async () => {
  for (const [language, models, provisional, changes, words, ahead] of [
    ["en", "Models", "provisional", "Changelog", "The credit factor goes down from 2 to 1.5.", "announced"],
    ["de", "Modelle", "vorläufig", "Änderungen", "Der Credit-Faktor sinkt von 2 auf 1,5.", "angekündigt"],
  ] as const) {
    await using tab = await openTab(browser, portal.origin, { cookie: cleo.cookie, language });
    await tab.page.goto("/models");
    await tab.page.getByRole("heading", { name: models, exact: true }).waitFor();
    await tab.page
      .getByRole("row", { name: /^small-24b/ })
      .getByText(provisional)
      .waitFor();
    expect(await tab.page.getByText(provisional).count()).toBe(2); // the other one is general-4-31b
    await tab.page.getByRole("main").getByRole("link", { name: changes }).click();
    const first = tab.page.getByRole("main").getByRole("listitem").first();
    await first.getByText(words).waitFor();
    expect(await first.getByText(ahead).count()).toBe(1);
    expect(await tab.page.getByRole("main").getByText(ahead).count()).toBe(1);
    tab.check();
  }
});
