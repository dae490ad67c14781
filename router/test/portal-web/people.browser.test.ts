/** Users and the own profile in a real browser. */
import { generateSync } from "otplib";
import decodeQR from "qr/decode.js";
import { beforeAll, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { startPortal, type Person } from "../surface/portal-rig.ts";
import { axeFindings, openTab, startBrowser, type Page } from "./browser.ts";
import { hands, type Hand } from "./hands.ts";

const password = "correct horse battery staple";
/** Reads the QR code in the picture as a camera does. Returns undefined if it finds none. */
function readQrCode(svg: string): string | undefined {
  const dark = [...svg.matchAll(/M(\d+) (\d+)h1v1h-1z/g)].map(([, x, y]) => [Number(x), Number(y)] as const);
  const [pixelsEach, border] = [4, 4];
  const side = (1 + border + Math.max(...dark.map(([x]) => x))) * pixelsEach;
  const data = new Uint8Array(side * side * 4).fill(255);
  for (const [x, y] of dark)
    for (let line = 0; line < pixelsEach; line++) {
      const start = (y * pixelsEach + line) * side + x * pixelsEach;
      for (let pixel = start; pixel < start + pixelsEach; pixel++) data.fill(0, 4 * pixel, 4 * pixel + 3);
    }
  return decodeQR({ width: side, height: side, data });
}

let ada: Person;

const browser = await forThisFile(startBrowser());
const portal = await forThisFile(startPortal());
beforeAll(async () => {
  ada = await portal.newAccount("ACME GmbH", { package: "Pro" });
});

/** Returns the path of a link with another host than this test's portal. */
function pathOf(link: string): string {
  const { pathname, hash } = new URL(link, portal.origin);
  return pathname + hash;
}

async function invited() {
  const email = `${crypto.randomUUID()}@example.com`;
  const { json } = await portal.send("POST", "/users", { email, role: "member" }, ada);
  return { email, path: pathOf(json.invitationUrl) };
}

async function join(page: Page, hand: Hand, link: string): Promise<void> {
  await page.goto(pathOf(link));
  await page.getByLabel("Password").waitFor();
  await hand.reach(page, /^Password/);
  await page.keyboard.type(password);
  await hand.submit(page, /^Join$/);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

async function signIn(page: Page, hand: Hand, email: string, word: string): Promise<void> {
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await hand.reach(page, /^E-mail address/);
  await page.keyboard.type(email);
  await hand.reach(page, /^Password/);
  await page.keyboard.type(word);
  await hand.submit(page, /^Sign in$/);
}

function totpCode(secret: string, ms: number): string {
  return generateSync({ secret, epoch: Math.floor(ms / 1000), strategy: "totp" });
}

test.each(hands)(
  "%s: somebody is invited, joins by the link, is changed, blocked and deleted [H6]",
  async (_way, hand) => {
    const email = `${crypto.randomUUID()}@example.com`;
    await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
    const { page } = tab;
    await page.goto("/users");
    await page.getByRole("row", { name: ada.email }).waitFor();
    await hand.press(page, /^Invite somebody$/);
    await hand.reach(page, /^E-mail address/);
    await page.keyboard.type(email);
    await hand.select(page, /Role/, "Admin");
    expect(await axeFindings(page)).toEqual([]);
    await hand.submit(page, /^Make the invitation$/);
    const link = await page.getByLabel("Link", { exact: true }).textContent();
    expect(link).toMatch(/\/invitation#[\w-]{43}$/);
    expect(await axeFindings(page)).toEqual([]);
    await hand.press(page, /^Done$/);
    const row = (text: string) => page.getByRole("row", { name: new RegExp(`^${email} ${text}`) });
    await row("Admin invited").waitFor();
    expect(await axeFindings(page)).toEqual([]);

    await using hers = await openTab(browser, portal.origin);
    await join(hers.page, hand, link!);
    await hers.page.getByRole("link", { name: "Users" }).waitFor();
    expect(await hers.page.getByRole("link", { name: "Overview" }).isVisible()).toBe(true);

    await page.reload();
    await row("Admin active").waitFor();
    const act = async (item: string) => {
      await hand.press(page, new RegExp(`Actions for ${email}`));
      await page.getByRole("menu").waitFor();
      await hand.choose(page, item);
    };
    await act("Edit");
    await hand.select(page, /Role/, "Member");
    await hand.reach(page, /^Credit limit/);
    await page.keyboard.type("250000");
    await hand.submit(page, /^Save$/);
    await row("Member active .*250,000").waitFor();
    await act("Block");
    await page.getByRole("dialog", { name: `Block ${email}?` }).waitFor();
    await hand.press(page, /^Block$/);
    await row("Member blocked").waitFor();
    await hers.page.reload();
    await hers.page.getByRole("heading", { name: "Sign in" }).waitFor();
    await act("Unblock");
    await row("Member active").waitFor();
    await act("Delete");
    await hand.reach(page, /^Type “/);
    await page.keyboard.type(email.slice(1));
    await page.keyboard.press("Enter");
    expect(await page.getByRole("dialog", { name: `Delete ${email}?` }).isVisible()).toBe(true); // not yet the whole address
    await page.keyboard.press("Home");
    await page.keyboard.type(email[0]!);
    await hand.submit(page, /^Delete$/);
    await row("").waitFor({ state: "detached" });
    tab.check();
    hers.check();
  },
);

test.each(hands)("%s: a link for a new password is made, sets it, and works once [H6]", async (_way, hand) => {
  const { email, path } = await invited();
  await using before = await openTab(browser, portal.origin);
  await join(before.page, hand, path);
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  const { page } = tab;
  await page.goto(`/users?search=${email}`);
  await page.getByRole("row", { name: email }).waitFor();
  await hand.press(page, new RegExp(`Actions for ${email}`));
  await page.getByRole("menu").waitFor();
  await hand.choose(page, "Link for a new password");
  await page.getByRole("dialog", { name: "Link for a new password" }).waitFor();
  await hand.press(page, /^Link for a new password$/);
  const link = pathOf((await page.getByLabel("Link", { exact: true }).textContent())!);
  await hand.press(page, /^Done$/);

  await using his = await openTab(browser, portal.origin);
  await his.page.goto(link);
  await his.page.getByRole("heading", { name: "Set a new password" }).waitFor();
  expect(his.page.url()).toBe(`${portal.origin}/reset`);
  expect(await axeFindings(his.page)).toEqual([]);
  await hand.reach(his.page, /^New password/);
  await his.page.keyboard.type(`${password} two`);
  await hand.submit(his.page, /^Set the password$/);
  await his.page.getByRole("heading", { name: "The password is set" }).waitFor();
  expect(await axeFindings(his.page)).toEqual([]);
  await hand.press(his.page, /^Sign in$/);
  await signIn(his.page, hand, email, `${password} two`);
  await his.page.getByRole("heading", { name: "Overview" }).waitFor();
  await before.page.reload();
  await before.page.getByRole("heading", { name: "Sign in" }).waitFor(); // signed out everywhere

  await his.page.goto(link);
  // Says so before anybody thinks of another password.
  await his.page.getByRole("heading", { name: "This link does not work any more" }).waitFor();
  await his.page.getByText("ask an Admin or Owner of your account").waitFor();
  expect(await axeFindings(his.page)).toEqual([]);
  for (const each of [tab, before, his]) each.check();
});

test.each(hands)("%s: the second factor is set up, and the next sign-in asks for it [H6]", async (_way, hand) => {
  const { email, path } = await invited();
  await using tab = await openTab(browser, portal.origin);
  const { page } = tab;
  await join(page, hand, path);
  const openMenu = async () => {
    await hand.press(page, /^Signed in as/);
    await page.getByRole("menu").waitFor();
  };
  await openMenu();
  await hand.choose(page, "My profile");
  await page.getByText("the password alone opens your account").waitFor();
  await hand.press(page, /^Turn on$/);
  await hand.reach(page, /^Current password/);
  await page.keyboard.type(password);
  await hand.submit(page, /^Next$/);
  const secret = (await page.getByLabel("Secret", { exact: true }).textContent())!.replaceAll(" ", "");
  await hand.reach(page, /^Code/);
  await page.keyboard.type(totpCode(secret, Date.now()));
  await hand.submit(page, /^Turn on$/);
  const codes = page.getByRole("list", { name: "Recovery codes" });
  await codes.waitFor();
  expect(await axeFindings(page)).toEqual([]);
  const recoveryCode = (await codes.getByRole("listitem").first().textContent())!;
  await hand.press(page, /^I have stored them$/);
  await page.getByText("10 recovery codes left").waitFor();

  // Signs in with a code of the authenticator, then with a recovery code, which works once.
  for (const code of [totpCode(secret, Date.now() + 30_000), recoveryCode]) {
    await openMenu();
    await hand.choose(page, "Sign out");
    await signIn(page, hand, email, password);
    await page.getByLabel("Code").waitFor();
    await hand.reach(page, /^Code/);
    await page.keyboard.type(code);
    await hand.submit(page, /^Sign in$/);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await openMenu();
    await hand.choose(page, "My profile");
    await page.getByText(`${code === recoveryCode ? 9 : 10} recovery codes left`).waitFor();
  }
  tab.check();
});

test("a Member sees no users and no link to them, and an Admin cannot change an Owner [H2]", async () => {
  const cleo = await portal.newUser(ada, "member");
  await using tab = await openTab(browser, portal.origin, { cookie: cleo.cookie });
  await tab.page.goto("/users");
  await tab.page.getByRole("heading", { name: "There is no such page" }).waitFor();
  expect(await tab.page.getByRole("link", { name: "Users" }).count()).toBe(0);
  tab.check();
  const ben = await portal.newUser(ada, "admin");
  await using his = await openTab(browser, portal.origin, { cookie: ben.cookie });
  await his.page.goto("/users");
  await his.page.getByRole("row", { name: new RegExp(cleo.email) }).waitFor();
  await his.page.getByRole("button", { name: `Actions for ${ada.email}` }).click();
  await his.page.getByRole("menu").waitFor();
  expect(await his.page.getByRole("menuitem").allTextContents()).toEqual(["Usage"]);
  his.check();
});

test("users can change their own password, second factor, devices and language", async () => {
  const { json } = await portal.send("POST", "/users", { email: "erik@example.com", role: "member" }, ada);
  await using tab = await openTab(browser, portal.origin);
  const { page } = tab;
  await page.goto(`/invitation${new URL(json.invitationUrl).hash}`);
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: /Signed in as/ }).click();
  await page.getByRole("menuitem", { name: "My profile" }).click();
  await page.getByRole("heading", { name: "My profile" }).waitFor();
  expect(await axeFindings(page)).toEqual([]);

  await page.getByRole("button", { name: "Turn on" }).click();
  await page.getByRole("dialog").getByLabel("Current password").fill("a wrong password");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("The current password is wrong.").waitFor();
  await page.getByRole("dialog").getByLabel("Current password").fill(password);
  await page.keyboard.press("Enter");
  const secret = (await page.getByLabel("Secret", { exact: true }).textContent())!.replaceAll(" ", "");
  expect(await axeFindings(page)).toEqual([]);
  const uri = readQrCode((await page.getByRole("img", { name: "QR code of the secret" }).innerHTML()) ?? "");
  expect(new URL(uri!).searchParams.get("secret")).toBe(secret);
  await page.getByRole("dialog").getByLabel("Code", { exact: true }).fill(totpCode(secret, Date.now()));
  await page.keyboard.press("Enter");
  await page.getByRole("list", { name: "Recovery codes" }).waitFor();
  expect(await page.getByRole("list", { name: "Recovery codes" }).getByRole("listitem").count()).toBe(10);
  expect(await axeFindings(page)).toEqual([]);
  await page.getByRole("button", { name: "I have stored them" }).click();
  await page.getByText("10 recovery codes left").waitFor();

  await page.getByLabel("New password").fill(`${password} two`);
  await page.getByLabel("Code of the authenticator").fill(totpCode(secret, Date.now() + 30_000));
  await page.getByLabel("Current password").fill("a wrong password");
  await page.getByRole("button", { name: "Change the password" }).click();
  await page.getByRole("alert").getByText("The current password is wrong.").waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await page.getByLabel("Current password").fill(password);
  await page.getByRole("button", { name: "Change the password" }).click();
  await page.getByText("The password is changed").waitFor();
  await page.getByText("this device").waitFor();
  await page.getByLabel("Language", { exact: true }).selectOption("de");
  await page.getByRole("heading", { name: "Mein Profil" }).waitFor();
  await expect.poll(() => page.evaluate("document.documentElement.lang")).toBe("de");
  await page.getByRole("button", { name: "Überall abmelden" }).click();
  await page.getByRole("heading", { name: "Anmelden" }).waitFor();
  tab.check();
});
