/** Invoices in a real browser: the billing address, the list, and an invoice on paper. */
import { beforeEach, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { invoiceSettings } from "../accounts/invoices-rig.ts";
import { startPortal, type Person } from "../surface/portal-rig.ts";
import { axeFindings, openTab, startBrowser } from "./browser.ts";
import { hands } from "./hands.ts";

const clock = new VirtualClock(0);
const browser = await forThisFile(startBrowser());
const portal = await forThisFile(startPortal({ clock, invoices: invoiceSettings }));
let owner: Person;

const at = (text: string) => clock.advance(Date.parse(text) - clock.now());

beforeEach(async () => {
  at("2026-11-14T09:30:00Z");
  owner = await portal.newAccount("ACME GmbH", { package: "Pro" });
  at("2026-12-13T23:00:00Z");
  owner = await portal.signIn(owner);
});

test.each(hands)(
  "%s: an Owner adds the billing address, mends a wrong VAT id, and gets the invoice [H6]",
  async (_way, hand) => {
    await using tab = await openTab(browser, portal.origin, { cookie: owner.cookie });
    const { page } = tab;
    await page.goto("/package");
    await page.getByRole("heading", { name: "Invoice lines" }).waitFor();
    await hand.goTo(page, "Invoices");
    await page.getByText("The invoice waits for your billing address.").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await hand.press(page, /^Add the address$/);
    for (const [label, text] of [
      [/^Company or name/, "Hafen & Söhne KG"],
      [/^Street/, "Kai 1"],
      [/^Postal code/, "20457"],
      [/^City/, "Hamburg"],
      [/^VAT id/, "AT123"],
    ] as const) {
      await hand.reach(page, label);
      await page.keyboard.type(text);
    }
    await hand.submit(page, /^Save the address$/);
    await page.getByText("This is no VAT id of the chosen country.").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    expect(await page.getByLabel("City").inputValue()).toBe("Hamburg");
    await hand.reach(page, /^VAT id/);
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type("de 987 654 321");
    await hand.submit(page, /^Save the address$/);
    await page.getByText("VAT id DE987654321").waitFor();
    await page.getByText("The invoice is issued after 13 Dec 2026.").waitFor();

    await portal.accounts.subscriptions.issueInvoices();
    await page.reload();
    await page.getByRole("link", { name: /^R-2026-/ }).waitFor();
    await hand.press(page, /^R-2026-/);
    const paper = page.getByRole("article");
    await paper.getByText("Hafen & Söhne KG").waitFor();
    expect(await paper.getByRole("definition").allTextContents()).toEqual([
      expect.stringMatching(/^R-2026-\d{5}$/),
      "14 Dec 2026",
      "14 Nov 2026 – 13 Dec 2026",
      "€35.00",
      "€6.65",
      "€41.65",
    ]);
    tab.check(["400"]);
  },
);

test("an invoice is clean in both languages and themes, on narrow screens, and its print view has only the paper", async () => {
  await portal.send("POST", "/billing", address, owner);
  await portal.accounts.subscriptions.issueInvoices();
  const { number } = (await portal.get("/invoices", owner)).json.items[0];
  for (const [language, colorScheme, width] of [
    ["de", "dark", 360],
    ["en", "light", 360],
    ["de", "light", 1280],
  ] as const) {
    const options = { viewport: { width, height: 900 }, colorScheme };
    await using tab = await openTab(browser, portal.origin, { cookie: owner.cookie, language, options });
    const { page } = tab;
    await page.goto(`/invoices?number=${number}`);
    const paper = page.getByRole("article");
    await paper.getByText("Kontor AG").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
    await page.emulateMedia({ media: "print", colorScheme });
    expect(await paper.isVisible()).toBe(true);
    for (const other of ["navigation", "banner", "button"] as const)
      for (const one of await page.getByRole(other).all()) expect(await one.isVisible()).toBe(false);
    expect(await page.evaluate("getComputedStyle(document.body).color")).toBe("rgb(22, 27, 32)");
    tab.check();
  }
});

const address = {
  ...{ name: "Kontor AG", street: "Bahnhofstrasse 1", postalCode: "8001", city: "Zürich", country: "CH" },
  ...{ vatId: "CHE-123.456.789", email: "" },
};
