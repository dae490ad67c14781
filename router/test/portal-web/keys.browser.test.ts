/** Tests keys in a real browser: from creating a key to revoking it, by keyboard alone, and the view of each role. */
import { beforeAll, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { startPortal, type Person } from "../surface/portal-rig.ts";
import { axeFindings, openTab, startBrowser, type Page } from "./browser.ts";
import { fillAccount, ShiftedClock } from "./busy-account.ts";
import { chooseInMenu, tabTo } from "./keyboard.ts";

let ada: Person;

const clock = new ShiftedClock();
const browser = await forThisFile(startBrowser());
const portal = await forThisFile(startPortal({ clock }));
beforeAll(async () => {
  ada = await fillAccount(portal, clock);
});

/** Returns where a text still is after it should have disappeared. */
async function leftBehind(page: Page, text: string): Promise<string[]> {
  const kept = (await page.evaluate(`(async () => {
    const cached = [];
    for (const name of await caches.keys())
      for (const request of await (await caches.open(name)).keys())
        cached.push(request.url, await (await (await caches.open(name)).match(request)).text());
    return {
      page: document.documentElement.outerHTML,
      address: location.href,
      history: JSON.stringify(history.state),
      storage: JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]),
      databases: JSON.stringify(await indexedDB.databases()),
      caches: cached.join(),
    };
  })()`)) as Record<string, string | null>;
  const cookies = JSON.stringify(await page.context().cookies());
  return Object.entries({ ...kept, cookies }).flatMap(([place, found]) => (found?.includes(text) ? [place] : []));
}

test("a key is created, shown once, edited, regenerated and revoked by keyboard alone [H3 H6]", async () => {
  const ben = await portal.newUser(ada, "member");
  await using tab = await openTab(browser, portal.origin, { cookie: ben.cookie });
  const { page } = tab;
  await page.goto("/keys");
  await page.getByRole("heading", { name: "No key yet" }).waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await tabTo(page, /Create key/);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Create key" }).waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await page.keyboard.type("ci");
  await page.keyboard.press("Enter");
  const secret = page.getByRole("dialog", { name: "Your new key" });
  await secret.waitFor();
  const first = await secret.getByLabel("Key", { exact: true }).textContent();
  expect(first).toMatch(/^sk-weiche-/);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  expect(await secret.isVisible()).toBe(true);
  expect(await axeFindings(page)).toEqual([]);
  await tabTo(page, /I have stored it/);
  await page.keyboard.press("Enter");
  await secret.waitFor({ state: "detached" });
  expect(await leftBehind(page, first!)).toEqual([]);

  const menu = async (item: string) => {
    // A revoked key also has a menu, which contains only its usage.
    for (let opened = 0; opened < 2; opened++) {
      await tabTo(page, /Actions for/);
      await page.keyboard.press("Enter");
      await page.getByRole("menu").waitFor();
      if ((await page.getByRole("menuitem", { name: item }).count()) > 0) break;
      await page.keyboard.press("Escape");
      await page.getByRole("menu").waitFor({ state: "detached" });
    }
    await chooseInMenu(page, item);
  };
  await menu("Edit");
  await page.getByRole("dialog", { name: "Edit ci" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  const focused = () => page.evaluate("document.activeElement.getAttribute('aria-label')");
  expect(await focused()).toBe("Actions for ci"); // the button of the menu that opened it
  await page.keyboard.press("Enter");
  await page.getByRole("menu").waitFor();
  await chooseInMenu(page, "Edit");
  await page.getByRole("dialog", { name: "Edit ci" }).waitFor();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type("nightly");
  await page.keyboard.press("Escape");
  await page.getByText("Discard what you typed?").waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await tabTo(page, /^Keep editing$/);
  await page.keyboard.press("Enter");
  await tabTo(page, /^Name/);
  await page.keyboard.press("Enter");
  await page.getByText("nightly is changed").waitFor();
  await menu("Regenerate");
  await page.getByRole("dialog", { name: "Regenerate nightly?" }).waitFor();
  await tabTo(page, /^ ?Regenerate$/);
  await page.keyboard.press("Enter");
  await secret.waitFor();
  expect(await secret.getByLabel("Key", { exact: true }).textContent()).not.toBe(first);
  await tabTo(page, /I have stored it/);
  await page.keyboard.press("Enter");
  await page.getByRole("checkbox", { name: "Show revoked (1)" }).waitFor();
  expect(await page.getByRole("cell", { name: "replaced by a new one" }).count()).toBe(0);
  await tabTo(page, /Show revoked/);
  await page.keyboard.press("Space");
  await page.getByRole("cell", { name: "replaced by a new one" }).waitFor();
  await menu("Revoke");
  await page.getByRole("dialog", { name: "Revoke nightly?" }).waitFor();
  await page.keyboard.press("Enter");
  expect(await page.getByRole("dialog", { name: "Revoke nightly?" }).isVisible()).toBe(true);
  await page.keyboard.type("nightly");
  await page.keyboard.press("Enter");
  await page.getByText("nightly is revoked").waitFor();
  const states = (await portal.get("/keys", ben)).json.items.map(({ state }: { state: string }) => state);
  expect(states).toEqual(["revoked", "revoked"]);
  tab.check();
});

test("an Owner can make a key for another user of the account, an Admin only for themselves [H2]", async () => {
  const cleo = await portal.newUser(ada, "member");
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  const { page } = tab;
  await page.goto("/keys");
  await page.getByRole("button", { name: "Create key" }).click();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await page.evaluate("document.activeElement.textContent")).toBe("Create key"); // back to where it was opened
  await page.keyboard.press("Enter");
  await page.getByRole("textbox", { name: "Name" }).fill("for Cleo");
  await page.getByLabel("For", { exact: true }).fill("nobody@example.com");
  await page.keyboard.press("Enter");
  expect(await page.getByRole("dialog", { name: "Create key" }).isVisible()).toBe(true);
  const isValid = () => page.getByLabel("For", { exact: true }).evaluate((input: any) => input.validity.valid);
  expect(await isValid()).toBe(false);
  await page.getByLabel("For", { exact: true }).fill(cleo.email);
  await expect.poll(isValid).toBe(true);
  const limit = page.getByLabel("Credit limit");
  await limit.fill("2.000");
  await page.getByText("2.000 can mean 2 or 2,000.").waitFor();
  await page.keyboard.press("Enter");
  expect(await limit.inputValue()).toBe("2.000"); // the form stays as it is
  await limit.fill("2.000.000");
  await page.getByText("= 2,000,000 credits, 3% of the package").waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  await page.getByRole("button", { name: "I have stored it" }).click();
  await page.getByRole("row", { name: new RegExp(`for Cleo.*${cleo.email}`) }).waitFor();
  expect((await portal.get("/keys", cleo)).json.items).toMatchObject([
    { name: "for Cleo", userId: cleo.id, creditLimit: "2000000.000" },
  ]);
  await using his = await openTab(browser, portal.origin, { cookie: (await portal.newUser(ada, "admin")).cookie });
  await his.page.goto("/keys");
  await his.page.getByRole("button", { name: "Create key" }).click();
  await his.page.getByRole("textbox", { name: "Name" }).waitFor();
  expect(await his.page.getByLabel("For", { exact: true }).count()).toBe(0);
  tab.check();
  his.check();
});

test("a person with 25 keys sees why there is no further one, and gets room by revoking several at once [H6]", async () => {
  const dan = await portal.newUser(ada, "member");
  for (let n = 1; n <= 25; n++) await portal.accounts.keys.create(dan.id, { name: `key ${n}` });
  await using tab = await openTab(browser, portal.origin, { cookie: dan.cookie });
  const { page } = tab;
  await page.goto("/keys");
  await page.getByText("You use 25 of 25 keys. Revoke one to create another.").waitFor();
  const create = page.getByRole("button", { name: "Create key" });
  await create.press("Enter");
  await create.click({ force: true });
  expect(await page.getByRole("dialog").count()).toBe(0);
  for (const name of [/^Select key 9$/, /^Select key 10$/]) {
    await tabTo(page, name);
    await page.keyboard.press("Space");
  }
  await page.getByText("2 keys selected").waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await page.getByRole("button", { name: "Select all 25" }).click();
  await page.getByText("25 keys selected").waitFor();
  await page.getByRole("button", { name: "Clear selection" }).click();
  await page.getByRole("checkbox", { name: "Select key 9", exact: true }).click();
  await page.getByRole("checkbox", { name: "Select key 25", exact: true }).click();
  await page.getByRole("button", { name: "Revoke selected" }).click();
  const dialog = page.getByRole("dialog", { name: "Revoke 2 keys?" });
  expect(await dialog.getByRole("listitem").locator("strong").allTextContents()).toEqual(["key 9", "key 25"]);
  expect(await axeFindings(page)).toEqual([]);
  // The second one fails once. The dialog stays, and names what is left.
  const seen = new Set<string>();
  await page.route("**/api/keys/*/revoke", async (route, request) => {
    const isSecond = seen.size === 1 && !seen.has(request.url());
    seen.add(request.url());
    if (isSecond) return await route.fulfill({ status: 500, json: { error: { message: "broken", code: "internal" } } });
    return await route.continue();
  });
  await page.keyboard.type("2");
  await page.keyboard.press("Enter");
  await dialog.getByRole("alert").waitFor();
  const left = () => dialog.getByRole("listitem").locator("strong").allTextContents();
  await expect.poll(left).toEqual(["key 25"]);
  await page.keyboard.press("Enter");
  await page.getByText("2 keys are revoked").waitFor();
  await page.getByText("You use 23 of 25 keys.").waitFor();
  expect(await page.getByRole("row", { name: /^key (9|25) / }).count()).toBe(0);
  await create.click();
  await page.getByRole("dialog", { name: "Create key" }).waitFor();
  tab.check();
});

test("the list is searched, filtered and sorted by the server, and its address keeps the state", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  const { page } = tab;
  await page.goto("/keys");
  await page.getByRole("cell", { name: /^support assistant/ }).waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await page.getByRole("searchbox").fill("batch");
  await expect.poll(() => page.getByRole("row").count()).toBe(2);
  await expect.poll(() => page.url()).toBe(`${portal.origin}/keys?search=batch`);
  await page.reload();
  await page.getByRole("cell", { name: /^nightly batch/ }).waitFor();
  expect(await page.getByRole("row").count()).toBe(2);
  await page.goto("/keys?state=revoked&search=laptop");
  await page.getByRole("cell", { name: /^old laptop/ }).waitFor();
  expect(await page.getByRole("row").count()).toBe(2);
  await page.getByRole("combobox", { name: "State" }).selectOption("user-blocked");
  await page.getByRole("heading", { name: "No key matches" }).waitFor();
  await page.getByRole("button", { name: "Show all keys" }).click();
  await page.getByRole("button", { name: "Used this period / limit" }).click();
  await expect.poll(() => page.url()).toContain("sort=used&order=desc");
  tab.check();
});

test("keys of a used-up package are not called active, and say why", async () => {
  const { pool } = portal.database;
  await pool.query("update accounts set exhausted_until = now() + interval '1 day' where id = $1", [ada.accountId]);
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  const { page } = tab;
  await page.goto("/keys?state=active");
  const row = page.getByRole("row", { name: /^ci / });
  await row.getByText("not working now").waitFor();
  await row.getByText("the package is used up").waitFor();
  expect(await page.getByRole("cell", { name: "active", exact: true }).count()).toBe(0);
  await pool.query("update accounts set exhausted_until = null where id = $1", [ada.accountId]);
  tab.check();
});

test("the overview shows the account's state, and dismissed notices disappear", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie, language: "de" });
  const { page } = tab;
  await portal.database.pool.query(
    `insert into notices (account_id, kind, event, facts, created_at)
     values ($1, 'quota-75', 'two', '{"package":"Pro","quota":"80000000.000","periodEnd":"2026-12-14T00:00:00Z"}', now())`,
    [ada.accountId],
  );
  await page.goto("/");
  await page.getByText("Credits des Pakets").waitFor();
  await page.getByRole("link", { name: "Hinweise, 3 ungelesen" }).waitFor();
  expect(await axeFindings(page)).toEqual([]);
  expect(tab.asked().length).toBeLessThanOrEqual(5); // the session, the notices and three of the page
  await page.getByRole("button", { name: /Erledigt: 75.% Ihrer Credits/ }).click();
  await page.getByRole("link", { name: "Hinweise, 2 ungelesen" }).waitFor();
  tab.check();
});

test("if no answer comes, the page reports it and retries", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  const { page } = tab;
  await page.route("**/api/keys*", (route) => route.abort());
  await page.goto("/keys");
  await page.getByRole("alert").getByText("The portal does not answer.").waitFor({ timeout: 20_000 });
  expect(await axeFindings(page)).toEqual([]);
  await page.unroute("**/api/keys*");
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByRole("cell", { name: /^support assistant/ }).waitFor();
  tab.check();
});

test("if a list cannot be refreshed, the old one stays with its time and the failed request's id", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  const { page } = tab;
  await page.goto("/");
  const notices = page.getByRole("region", { name: "Unread notices" });
  const dismiss = notices.getByRole("button", { name: /^Dismiss: .*works until/ });
  await dismiss.waitFor();
  const error = { message: "internal error", code: "internal" };
  await page.route("**/api/notices?*", (route) =>
    route.fulfill({ status: 500, headers: { "x-request-id": "request-7" }, json: { error } }),
  );
  await dismiss.click();
  await notices
    .getByRole("alert")
    .getByText(/Could not be refreshed; this is as of \d\d:\d\d/)
    .waitFor();
  await notices.getByText("Request request-7").waitFor();
  expect(await dismiss.isVisible()).toBe(true);
  expect(await axeFindings(page)).toEqual([]);
  await page.unroute("**/api/notices?*");
  await notices.getByRole("button", { name: "Retry" }).click();
  await dismiss.waitFor({ state: "detached" });
  expect(await notices.getByRole("alert").count()).toBe(0);
  tab.check();
});

test("copying is confirmed only if it worked, and otherwise the text is selected and the shortcut is shown", async () => {
  for (const mayCopy of [true, false]) {
    await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
    const { page } = tab;
    if (mayCopy) await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    // Over plain HTTP browsers have no clipboard.
    else await page.addInitScript("delete Navigator.prototype.clipboard");
    await page.goto("/start");
    const code = await page.locator(".snippet pre").textContent();
    await page.getByRole("button", { name: "Copy" }).click();
    await page.getByRole("button", { name: mayCopy ? "Copied" : /Ctrl\+C/ }).waitFor();
    expect(await page.evaluate(mayCopy ? "navigator.clipboard.readText()" : "getSelection().toString()")).toBe(code);
    expect(await page.getByRole("button", { name: "Copied" }).count()).toBe(mayCopy ? 1 : 0);
    tab.check();
  }
});

test("a notice leads to what mends it, for those who may", async () => {
  const notices = (page: Page) => page.getByRole("region", { name: "Unread notices" });
  const member = await portal.newUser(ada, "member");
  await using his = await openTab(browser, portal.origin, { cookie: member.cookie });
  const { pool } = portal.database;
  await pool.query("delete from notice_reads where user_id = $1", [ada.id]);
  const end = "date_trunc('day', now() + interval '3 days')";
  await pool.query(
    `insert into notices (account_id, kind, event, facts, created_at)
     select id, 'quota-100', 'now', jsonb_build_object('package', 'Pro', 'quota', '1.000', 'periodEnd', ${end}), now()
     from accounts where id = $1`,
    [ada.accountId],
  );
  await pool.query(`update accounts set exhausted_until = ${end} where id = $1`, [ada.accountId]);
  await his.page.goto("/");
  await his.page.getByRole("status").getByText("Ask an Owner of your account to upgrade.").waitFor();
  await notices(his.page)
    .getByText(/^Your credits are used up; calls get 429 until /)
    .waitFor();
  expect(await notices(his.page).getByRole("link").count()).toBe(0);

  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  const { page } = tab;
  await page.goto("/");
  await page.getByRole("status").getByRole("link", { name: "Upgrade" }).waitFor();
  const usedUp = notices(page).getByRole("listitem").filter({ hasText: "Your credits are used up" });
  expect(await usedUp.getByRole("link", { name: "Upgrade" }).count()).toBe(1);
  expect(await axeFindings(page)).toEqual([]);
  await pool.query("update accounts set exhausted_until = null where id = $1", [ada.accountId]);
  await page.reload();
  const regenerate = notices(page).getByRole("link", { name: "Regenerate" });
  await regenerate.waitFor();
  expect(await usedUp.count()).toBe(0); // solved
  await regenerate.click();
  await page.getByRole("dialog", { name: /Regenerate .*website chat/ }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Regenerate" }).click();
  await page.getByLabel("Key", { exact: true }).waitFor();
  await page.getByRole("button", { name: "I have stored it" }).click();
  expect(page.url()).toBe(`${portal.origin}/keys`);
  await page.goto("/");
  await notices(page).waitFor();
  expect(await regenerate.count()).toBe(0);
  for (const each of [tab, his]) each.check();
});
