/** The account's settings in a real browser. */
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { cheapHashing } from "../accounts/cheap-hashing.ts";
import { startPortal } from "../surface/portal-rig.ts";
import { axeFindings, openTab, startBrowser } from "./browser.ts";
import { hands } from "./hands.ts";

const browser = await forThisFile(startBrowser());
const portal = await forThisFile(startPortal());
const password = "correct horse battery";

test.each(hands)("%s: an Owner renames the account and closes it with name and password [H6]", async (_way, hand) => {
  const owner = await portal.newAccount("Hafen", { package: "Pro" });
  const hashed = await cheapHashing().hash(password, { source: "", isKnown: true });
  const values = [owner.id, hashed];
  await portal.database.pool.query(
    "insert into credentials (user_id, password, password_set_at) values ($1, $2, now())",
    values,
  );
  await using tab = await openTab(browser, portal.origin, { cookie: owner.cookie });
  const { page } = tab;
  await page.goto("/");
  await page.getByRole("heading", { level: 1 }).waitFor();
  await hand.goTo(page, "Settings");
  await page.getByLabel("Company or project").waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await hand.reach(page, /^Company or project/);
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type("Hafen & Söhne");
  await hand.submit(page, /^Rename the account$/);
  await page.getByText("The account has its new name").waitFor();
  await page.locator(".account-name", { hasText: "Hafen & Söhne" }).waitFor();

  await hand.press(page, /^Close the account …$/);
  await page.getByText("Removed: 1 user with their addresses").waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await hand.reach(page, /^Type Hafen & Söhne to confirm/);
  await page.keyboard.type("Hafen & Söhne");
  await hand.reach(page, /^Password/);
  await page.keyboard.type("a wrong password");
  await hand.submit(page, /^Close the account permanently$/);
  await page.getByRole("alert").getByText("The current password is wrong.").waitFor();
  expect(await page.getByLabel(/^Type Hafen/).inputValue()).toBe("Hafen & Söhne");
  await hand.reach(page, /^Password/);
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type(password);
  await hand.submit(page, /^Close the account permanently$/);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(await portal.accounts.show(owner.accountId)).toMatchObject({ name: "deleted", package: null });
  tab.check(["401"]);
});
