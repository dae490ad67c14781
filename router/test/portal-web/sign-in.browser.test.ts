/** Signing in, in a real browser: invitation, second factor, an ended login in the middle of work, new passwords. */
import { asId } from "@weiche/shared/ids.ts";
import { generateSync } from "otplib";
import { beforeAll, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { startPortal, type Person } from "../surface/portal-rig.ts";
import { hands } from "./hands.ts";
import { tabTo } from "./keyboard.ts";
import { axeFindings, openTab, startBrowser } from "./browser.ts";
import type { Letter } from "../../src/mail/letters.ts";

const password = "correct horse battery staple";
let ada: Person;

const browser = await forThisFile(startBrowser());
const portal = await forThisFile(startPortal());
beforeAll(async () => {
  ada = await portal.newAccount("ACME GmbH", { package: "Pro" });
});

function totpCode(secret: string, ms: number): string {
  return generateSync({ secret, epoch: Math.floor(ms / 1000), strategy: "totp" });
}

/** Returns the path of a link with another host than this test's portal. */
function pathOf(link: string): string {
  const { pathname, hash } = new URL(link);
  return pathname + hash;
}

async function invited(role: "admin" | "member" = "member") {
  const email = `${crypto.randomUUID()}@example.com`;
  const { json } = await portal.send("POST", "/users", { email, role }, ada);
  return { email, path: pathOf(json.invitationUrl), id: json.user.id as string };
}

/** Opens a tab for a person who has just joined by an invitation link. */
async function joined(path: string) {
  const tab = await openTab(browser, portal.origin);
  await tab.page.goto(path);
  await tab.page.getByLabel("Password").fill(password);
  await tab.page.keyboard.press("Enter");
  await tab.page.getByRole("heading", { name: "Overview" }).waitFor();
  await tab.settled();
  return tab;
}

test("an invitation link signs its user in, and works once", async () => {
  const { email, path } = await invited();
  await using tab = await openTab(browser, portal.origin);
  const { page } = tab;
  await page.goto(path);
  await page.getByRole("heading", { name: "Join ACME GmbH" }).waitFor();
  expect(await page.getByText(email).first().isVisible()).toBe(true);
  expect(page.url()).toBe(`${portal.origin}/invitation`);
  expect(await axeFindings(page)).toEqual([]);
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByRole("button", { name: `Signed in as ${email}` }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.goto(path);
  await page.getByRole("heading", { name: "This link does not work any more" }).waitFor();
  await page.goto("/invitation#cut");
  await page.getByRole("heading", { name: "This link is incomplete" }).waitFor();
  tab.check();
});

test("by keyboard alone: sign-in asks for a code if the second factor is on", async () => {
  const { email, path } = await invited();
  await using tab = await joined(path);
  const { page } = tab;
  const secret = await page.evaluate(
    async (body) => {
      const post = async (path: string, sent: object) =>
        (await fetch(`/api${path}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(sent),
        })) as Response;
      return ((await (await post("/totp/set-up", body)).json()) as { secret: string }).secret;
    },
    { password },
  );
  await page.evaluate(
    (code) =>
      fetch("/api/totp/confirm", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ code }),
      }),
    totpCode(secret, Date.now()),
  );
  await page.context().clearCookies();
  await page.goto("/");
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.keyboard.type(email);
  await page.keyboard.press("Tab");
  await page.keyboard.type("a wrong password");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("E-mail address or password is wrong.").waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type(password);
  await page.keyboard.press("Enter");
  await page.getByLabel("Code").waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await page.keyboard.type("000000");
  await page.keyboard.press("Enter");
  await page.getByText("The code is wrong, or it was used already.").waitFor();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type(totpCode(secret, Date.now() + 30_000));
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  tab.check();
});

test("when a login ends, the page asks for the password in place, and continues", async () => {
  const { path, id } = await invited();
  await using tab = await joined(path);
  const { page } = tab;
  await portal.database.kysely
    .deleteFrom("sessions")
    .where("userId", "=", id as never)
    .execute();
  await page.getByRole("button", { name: /Signed in as/ }).click();
  await page.getByRole("menuitemradio", { name: "Dark" }).click();
  const dialog = page.getByRole("dialog", { name: "Please sign in again" });
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  expect(await dialog.isVisible()).toBe(true);
  expect(await axeFindings(page)).toEqual([]);
  await dialog.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await expect
    .poll(
      async () =>
        (
          await portal.database.kysely
            .selectFrom("users")
            .select("theme")
            .where("id", "=", id as never)
            .executeTakeFirstOrThrow()
        ).theme,
    )
    .toBe("dark");
  tab.check();
});

test.each(hands)(
  "%s: when a login ends while a form is open, the page asks for the password, and then sends the form unchanged [H6]",
  async (...way) => {
    const { path, id, email } = await invited();
    await using tab = await joined(path);
    const [{ page }, hand] = [tab, way[1]];
    await hand.goTo(page, "Keys");
    await hand.press(page, /^Create key$/);
    await page.getByRole("dialog", { name: "Create key" }).waitFor();
    await hand.reach(page, /^Name/);
    await page.keyboard.type("ci");
    await hand.reach(page, /^Credit limit/);
    await page.keyboard.type("5000");
    await portal.database.kysely
      .deleteFrom("sessions")
      .where("userId", "=", id as never)
      .execute();
    await hand.submit(page, /^Create key$/);
    const again = page.getByRole("dialog", { name: "Please sign in again" });
    await again.waitFor();
    await hand.reach(page, /^Password/);
    await page.keyboard.type(password);
    await hand.submit(page, /^Sign in$/);
    await again.waitFor({ state: "detached" });
    expect(await page.getByLabel("Key", { exact: true }).textContent()).toMatch(/^sk-weiche-/);
    await hand.press(page, /^I have stored it$/);
    const her = await portal.signIn({ id: asId(id), accountId: ada.accountId, email });
    expect((await portal.get("/keys", her)).json.items).toMatchObject([{ name: "ci", creditLimit: "5000.000" }]);
    tab.check();
  },
);

test("a password-reset link sets a new password, and without mail the page names whom to ask", async () => {
  const { email, path, id } = await invited();
  await using tab = await openTab(browser, portal.origin, { language: "de" });
  const { page } = tab;
  await page.goto(path);
  await page.getByLabel("Passwort").fill(password);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Übersicht" }).waitFor();
  await page.context().clearCookies();
  const { json } = await portal.send("POST", `/users/${id}/password-reset`, {}, ada);
  const reset = json?.resetUrl as string | undefined;
  expect(reset).toBeTruthy();
  await page.goto(pathOf(reset!));
  await page.getByRole("heading", { name: "Neues Passwort festlegen" }).waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await page.getByLabel("Neues Passwort").fill(`${password} two`);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Das Passwort ist gesetzt" }).waitFor();
  await page.getByRole("link", { name: "Anmelden" }).click();
  await page.getByLabel("E-Mail-Adresse").fill(email);
  await page.getByLabel("Passwort", { exact: true }).fill(`${password} two`);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Übersicht" }).waitFor();
  await page.context().clearCookies();
  await page.goto("/forgotten");
  await page.getByText("Hier werden keine E-Mails versandt.").waitFor();
  expect(await axeFindings(page)).toEqual([]);
  tab.check();
});

test("with mail, a registration accepts the terms, is confirmed by a mailed link, and opens an account", async () => {
  const letters: Letter[] = [];
  const mail = { send: (_to: string, letter: Letter) => Promise.resolve(letters.push(letter) > 0) };
  await using open = await startPortal({ registration: "open", mail, terms: "https://operator.example/terms" });
  await using tab = await openTab(browser, open.origin, { language: "de" });
  const { page } = tab;
  await page.goto("/registration");
  await page.getByLabel("Firma oder Projekt").fill("Globex GmbH");
  await page.getByLabel("E-Mail-Adresse").fill("grace@globex.example");
  expect(await page.getByRole("link", { name: "Bedingungen lesen" }).getAttribute("href")).toBe(
    "https://operator.example/terms",
  );
  expect(await axeFindings(page)).toEqual([]);
  await tabTo(page, /Ich akzeptiere/);
  await page.keyboard.press("Space");
  await page.keyboard.press("Enter");
  await page.getByText("Ein Link ist unterwegs an grace@globex.example.").waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await page.goto(`/confirm${/#\S+/.exec(letters[0]!.text)![0]}`);
  await page.getByRole("heading", { name: "Konto Globex GmbH eröffnen" }).waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await tabTo(page, /Passwort/);
  await page.keyboard.type(password);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Übersicht" }).waitFor();
  expect(letters.map(({ kind }) => kind)).toEqual(["registration", "welcome"]);
  tab.check();
});

test("the sign-in page links to registration only if it is open, and registration opens an account", async () => {
  await using open = await startPortal({ registration: "open" });
  await using tab = await openTab(browser, open.origin);
  const { page } = tab;
  await page.goto("/");
  await page.getByRole("link", { name: "Open an account" }).click();
  await page.getByLabel("Company or project").waitFor();
  expect(await axeFindings(page)).toEqual([]);
  for (const [field, text] of [
    [/Company or project/, "Globex GmbH"],
    [/E-mail address/, "grace@globex.example"],
    [/Password/, password],
  ] as const) {
    await tabTo(page, field);
    await page.keyboard.type(text);
  }
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByText("Globex GmbH").first().waitFor();
  tab.check();
  await using closed = await openTab(browser, portal.origin);
  await closed.page.goto("/");
  await closed.page.getByRole("heading", { name: "Sign in" }).waitFor();
  await closed.settled();
  expect(await closed.page.getByRole("link", { name: "Open an account" }).count()).toBe(0);
  await closed.page.goto("/registration");
  await closed.page.getByText("Ask them for an invitation.").waitFor();
  closed.check();
});
