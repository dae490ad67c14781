/** Users and the own profile in a real browser. */
import { generateSync } from "otplib";
import decodeQR from "qr/decode.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPortal, type Person, type PortalRig } from "../surface/portal-rig.ts";
import { axeFindings, openTab, startBrowser, type Browser } from "./browser.ts";

const password = "correct horse battery staple";
/** Reads the QR code in the picture as a camera would; undefined: it reads nothing. */
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

let browser: Browser;
let portal: PortalRig;
let ada: Person;

beforeAll(async () => {
  [browser, portal] = await Promise.all([startBrowser(), startPortal()]);
  ada = await portal.newAccount("ACME GmbH", { package: "Pro" });
});
afterAll(async () => {
  await browser?.close();
  await portal?.[Symbol.asyncDispose]();
});

test("somebody is invited, joins by the link, is changed, blocked and deleted", async () => {
  await using tab = await openTab(browser, portal.origin, { cookie: ada.cookie });
  const { page } = tab;
  await page.goto("/users");
  await page.getByRole("button", { name: "Invite somebody" }).click();
  await page.getByRole("textbox", { name: "E-mail address" }).fill("dora@example.com");
  await page.getByLabel("Role").last().selectOption("admin");
  expect(await axeFindings(page)).toEqual([]);
  await page.getByRole("button", { name: "Make the invitation" }).click();
  const link = await page.getByLabel("Link", { exact: true }).textContent();
  expect(link).toMatch(/\/invitation#[\w-]{43}$/);
  expect(await axeFindings(page)).toEqual([]);
  await page.getByRole("button", { name: "Done" }).click();
  await page
    .getByRole("row", { name: /dora@example.com/ })
    .getByText("invited")
    .waitFor();
  expect(await axeFindings(page)).toEqual([]);

  await using hers = await openTab(browser, portal.origin);
  await hers.page.goto(`/invitation${new URL(link!).hash}`);
  await hers.page.getByLabel("Password").fill(password);
  await hers.page.keyboard.press("Enter");
  await hers.page.getByRole("link", { name: "Users" }).waitFor();
  expect(await hers.page.getByRole("link", { name: "Overview" }).isVisible()).toBe(true);

  await page.reload();
  const act = async (item: string) => {
    await page.getByRole("button", { name: "Actions for dora@example.com" }).click();
    await page.getByRole("menuitem", { name: item, exact: true }).click();
  };
  await act("Edit");
  await page.getByLabel("Role").last().selectOption("member");
  await page.getByLabel("Credit limit").fill("250000");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("row", { name: /dora@example.com Member active .*250K/ }).waitFor();
  await act("Block");
  await page.getByRole("dialog", { name: "Block dora@example.com?" }).getByRole("button", { name: "Block" }).click();
  await page.getByRole("row", { name: /dora@example.com Member blocked/ }).waitFor();
  await hers.page.reload();
  await hers.page.getByRole("heading", { name: "Sign in" }).waitFor();
  await act("Unblock");
  await page.getByRole("row", { name: /dora@example.com Member active/ }).waitFor();
  await act("Delete");
  await page.getByLabel("Type “dora@example.com” to confirm").fill("dora@example.com");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("row", { name: /dora@example.com/ }).waitFor({ state: "detached" });
  tab.check();
  hers.check();
});

test("a Member sees neither the users nor the way to them, and an Admin changes no Owner", async () => {
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

test("password, second factor, devices and language are one's own to change", async () => {
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
  const code = (ms: number) => generateSync({ secret, epoch: Math.floor(ms / 1000), strategy: "totp" });
  await page.getByRole("dialog").getByLabel("Code", { exact: true }).fill(code(Date.now()));
  await page.keyboard.press("Enter");
  await page.getByRole("list", { name: "Recovery codes" }).waitFor();
  expect(await page.getByRole("list", { name: "Recovery codes" }).getByRole("listitem").count()).toBe(10);
  expect(await axeFindings(page)).toEqual([]);
  await page.getByRole("button", { name: "I have stored them" }).click();
  await page.getByText("10 recovery codes left").waitFor();

  await page.getByLabel("New password").fill(`${password} two`);
  await page.getByLabel("Code of the authenticator").fill(code(Date.now() + 30_000));
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
