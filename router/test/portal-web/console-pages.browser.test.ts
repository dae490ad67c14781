/**
 * Tests the console's pages in a browser: who may open them, that each is correct in every theme, and how many bytes
 * each loads.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { codeMsMax, sessionMsMax } from "../../src/surface/console/console-sessions.ts";
import { builtConsole } from "../../src/surface/server/built-pages.ts";
import { certificate } from "../nodes/certificate.ts";
import { openTab } from "./browser.ts";
import { freePort, startConsoleRouter } from "./console-router.ts";
import {
  addBusyMinute,
  consolePages,
  faultsOf,
  faultyConsolePages,
  openSignedIn,
  startVisitedConsole,
} from "./console-visits.ts";
import { hands } from "./hands.ts";
import { goTo, press, tabTo } from "./keyboard.ts";

const visited = await forThisFile(startVisitedConsole());

test("in dark, de, 320 pixels wide every page is clean [H9]", async () => {
  expect(await faultyConsolePages(visited, "dark", "de", 320)).toEqual([]);
}, 60_000);

test.each([
  [
    "used twice",
    async (link: string) => void (await visited.rig.send("POST", "/console/session", { code: link.split("#")[1] })),
  ],
  ["wrong", undefined],
  ["a minute old", async () => visited.clock.shift(codeMsMax)],
])("a link that is %s is refused with advice [H9]", async (_what, spoil) => {
  const link = spoil ? visited.rig.link() : `${visited.rig.origin}/sign-in#${"a".repeat(43)}`;
  await spoil?.(link);
  await using tab = await openTab(visited.browser, visited.rig.origin);
  await tab.page.goto(link);
  await tab.page.getByText("This link is wrong, was used already, or is more than a minute old.").waitFor();
  await tab.page.getByText("weiche console", { exact: true }).waitFor();
  expect(new URL(tab.page.url()).hash).toBe("");
  expect(await faultsOf(tab, "/sign-in")).toEqual([]);
});

test("without a session, every page explains the sign-in, and a link opened in the same tab works", async () => {
  await using tab = await openTab(visited.browser, visited.rig.origin);
  await tab.page.goto("/slots");
  await tab.page.getByRole("heading", { name: "Operators' console" }).waitFor();
  expect(await faultsOf(tab, "/slots")).toEqual([]);
  const link = visited.rig.link();
  await tab.page.goto(link);
  await tab.page.getByRole("heading", { name: "Nodes" }).waitFor();
  // The used link opens the console again in the browser that has its session.
  await tab.page.goto("about:blank");
  await tab.page.goto(link);
  await tab.page.getByRole("heading", { name: "Nodes" }).waitFor();
});

test("by keyboard alone, a node can be drained after its dialog lists its requests, and the session can be ended", async () => {
  await using tab = await openSignedIn(visited);
  const { page } = tab;
  await page.getByRole("row", { name: /gpu-1/ }).waitFor();
  await press(page, /Drain … gpu-1/);
  const dialog = page.getByRole("dialog", { name: "Drain gpu-1?" });
  await dialog.getByText("3 running on general-4-31b in slot a: they finish").waitFor();
  await dialog.getByText("2 waiting for small-24b in slot b: refused with 503").waitFor();
  expect(await faultsOf(tab, "the dialog")).toEqual([]);
  await press(page, /^Drain$/);
  await dialog.waitFor({ state: "detached" });
  expect(visited.rig.wishes).toContain("maintenance gpu-1 true");
  await tabTo(page, /^End session$/);
  await page.keyboard.press("Enter");
  await page.getByText("The session has ended.").waitFor();
  tab.check();
});

test("nodes in trouble are shown first, the worst at the top", async () => {
  await using tab = await openSignedIn(visited);
  await tab.page.getByRole("row", { name: /gpu-4/ }).waitFor();
  const names = await tab.page.locator("tbody tr strong").allTextContents();
  expect(names).toEqual(["gpu-3", "gpu-2", "gpu-1", "gpu-4"]);
  await tab.page.getByText("2 of 2 still running", { exact: false }).waitFor();
});

test.each(hands)("%s: an operator makes an account, whose Owner joins at the shown link", async (way, hand) => {
  await using tab = await openSignedIn(visited);
  const { page } = tab;
  const email = `${way.replaceAll(" ", "-")}@new.example`;
  await page.goto("/accounts");
  await hand.press(page, /^New account$/);
  const dialog = page.getByRole("dialog");
  await dialog.getByText("sets a password and chooses the package").waitFor();
  expect(await faultsOf(tab, "the dialog")).toEqual([]);
  await hand.reach(page, /^Company or project/);
  await page.keyboard.type(`Kontor ${way}`);
  await hand.reach(page, /^E-mail address/);
  await page.keyboard.type("no address@new.example");
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type(email);
  await hand.submit(page, /^Make the account$/);
  const url = await dialog.locator("code").textContent();
  expect(await faultsOf(tab, "the link")).toEqual([]);
  const preview = await visited.rig.portal.send("POST", "/invitation/preview", { token: url!.split("#")[1] });
  expect(preview.json).toMatchObject({ email, role: "owner", accountName: `Kontor ${way}`, state: "open" });
  await hand.press(page, /^Done$/);
  tab.check();
});

test("the console orders no package for a new account", async () => {
  const { rig } = visited;
  const cookie = await rig.signIn();
  const wish = { name: "Free", ownerEmail: "free@new.example", package: "Pro" };
  expect((await rig.send("POST", "/accounts", wish, cookie)).status).toBe(403);
});

test("accounts and people can be blocked by two clicks and unblocked by one", async () => {
  await using tab = await openSignedIn(visited);
  const { page } = tab;
  const lookMs = 2_000; // the router looks at accounts again
  await page.goto("/accounts?search=globex");
  await page.getByRole("button", { name: "People of Globex" }).click();
  const dialog = page.getByRole("dialog", { name: "People of Globex" });
  await dialog.getByRole("button", { name: "Block the account" }).click();
  await dialog.getByRole("button", { name: "Really block Globex: 0 keys stop now" }).click();
  visited.clock.shift(lookMs);
  await page.getByRole("row", { name: /Globex blocked/ }).waitFor();
  await page.getByRole("button", { name: "People of Globex" }).click();
  await dialog.getByRole("button", { name: "Unblock the account" }).click();
  visited.clock.shift(lookMs);
  await page.getByRole("row", { name: /Globex [0-9a-f-]{36}/ }).waitFor();
  await page.getByRole("button", { name: "People of Globex" }).click();
  await dialog.getByRole("button", { name: /^Block owner/ }).click();
  expect(await faultsOf(tab, "people")).toEqual([]);
  await dialog.getByRole("button", { name: /^Unblock owner/ }).click();
  await dialog.getByRole("button", { name: /^Block owner/ }).waitFor();
  tab.check();
});

test("requests of all accounts are listed, and each is explained, by mouse and by keyboard", async () => {
  await using tab = await openSignedIn(visited);
  const { page } = tab;
  await page.goto("/accounts?search=globex");
  await page.getByRole("link", { name: "41 × rate_limit_parallel" }).click();
  await page.getByRole("heading", { name: "No request matches" }).waitFor();
  await page.getByRole("button", { name: "Remove the restriction: Reason: too many in parallel" }).click();
  const row = page.getByRole("row", { name: /Globex small-24b .* refused 503/ });
  await row.getByRole("button", { name: /^Explain: / }).click();
  const dialog = page.getByRole("dialog", { name: "What happened to the request" });
  await dialog.getByText("It was refused.").waitFor();
  await dialog.getByText("no_node_available").waitFor();
  await dialog.getByText("There is no usage record", { exact: false }).waitFor();
  expect(await faultsOf(tab, "an explanation")).toEqual([]);
  const id = (await dialog.locator("code").first().textContent())!;
  await dialog.getByRole("button", { name: "Close" }).click();
  expect(await page.locator("tbody").getByRole("row").count()).toBe(1);
  await press(page, /^Remove the restriction: Account: /);
  await page.getByRole("row", { name: /ACME GmbH small-24b/ }).waitFor();
  await tabTo(page, /^Request id or its start/);
  await page.keyboard.type(id.slice(0, 20).toUpperCase());
  await page.keyboard.press("Enter");
  await dialog.getByText(id).waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  tab.check();
});

test.each([
  ["dark", "de", 320],
  ["light", "en", 1280],
] as const)("in %s, %s, %i pixels wide the page of requests is clean", async (theme, language, width) => {
  const options = { viewport: { width, height: 900 }, colorScheme: theme };
  await using tab = await openSignedIn(visited, { language, options });
  await tab.page.goto("/requests");
  await tab.page.locator("tbody tr").first().waitFor();
  expect(await faultsOf(tab, "/requests")).toEqual([]);
});

test("in light, en, 1280 pixels wide every page is clean, and fetches what it may: 130 kB for nodes, 190 for any other, by three calls", async () => {
  await using tab = await openSignedIn(visited);
  const weights: Record<string, number> = {};
  for (const path of consolePages) {
    const fetched = new Set<string>();
    const note = (response: { url(): string }) => void fetched.add(new URL(response.url()).pathname);
    tab.page.on("response", note);
    tab.asked();
    await tab.page.goto(path);
    await tab.page.locator(".live-mark i").waitFor();
    tab.page.off("response", note);
    const names = [...fetched].filter((name) => !name.startsWith("/api/"));
    const files = names.map((name) => readFileSync(join(builtConsole, name === path ? "console.html" : name)));
    weights[path] = files.reduce((sum, file) => sum + gzipSync(file, { level: 9 }).length, 0) / 1_000;
    expect(tab.asked().length).toBeLessThanOrEqual(3);
    expect(await faultsOf(tab, path)).toEqual([]);
  }
  expect(Math.min(...Object.values(weights))).toBeGreaterThan(50); // cached files are counted, too
  expect(weights["/"]).toBeLessThanOrEqual(130);
  expect(Object.entries(weights).filter(([, weight]) => weight > 190)).toEqual([]);
});

test("by keyboard alone, the last week can be simulated: without usage the page says so, then it names the bottleneck [H9]", async () => {
  await using tab = await openSignedIn(visited);
  const { page } = tab;
  await goTo(page, "Capacity");
  await page.getByRole("heading", { name: "How much can this fleet take?" }).waitFor();
  await press(page, /^Simulate the last week$/);
  await page.getByText("Nobody has sent a request in the last week").waitFor();
  expect(await faultsOf(tab, "the empty capacity")).toEqual([]);
  await addBusyMinute(visited);
  await press(page, /^Simulate the last week$/);
  await page.getByText(/slot [abc] is the bottleneck: \d+% of all waiting is there/).waitFor();
  await page.getByText(/Credits sold for each GPU hour/).waitFor();
  await page.getByRole("row", { name: /gpu-1, slot b/ }).waitFor();
  expect(await faultsOf(tab, "the capacity")).toEqual([]);
  await using small = await openSignedIn(visited, {
    ...{ language: "de", options: { viewport: { width: 360, height: 800 }, colorScheme: "dark" } },
  });
  await small.page.goto("/capacity");
  await small.page.getByText(/Der Engpass ist/).waitFor();
  expect(await faultsOf(small, "the capacity in dark, de, 360 pixels")).toEqual([]);
});

test("when the session expires, every page explains how to sign in again [H9]", async () => {
  await using tab = await openSignedIn(visited);
  const { page } = tab;
  await page.locator(".live-mark i").waitFor();
  await page.getByRole("button", { name: "Drain … gpu-1" }).click();
  visited.clock.shift(sessionMsMax);
  await page.getByText("The session has ended.").waitFor();
  await page.getByText("weiche console", { exact: true }).waitFor();
  expect(await faultsOf(tab, "the end of the session")).toEqual([]);
});

test("beyond loopback the console uses TLS, with the name in its links [H9]", async () => {
  const folder = temporaryDirectory();
  certificate(folder, "console");
  const tls = { cert: join(folder, "console.pem"), key: join(folder, "console.key") };
  const port = await freePort();
  // Browsers resolve every name below localhost to this machine.
  const origin = `https://console.localhost:${port}`;
  const settings = { tls, public: { console: origin } };
  await using router = await startConsoleRouter(visited.rig.portal.database, `0.0.0.0:${port}`, settings);
  const { url } = await router.link();
  expect(url).toMatch(new RegExp(`^${origin}/sign-in#[\\w-]{43}$`));
  await using tab = await openTab(visited.browser, origin, { options: { ignoreHTTPSErrors: true } });
  const { page } = tab;
  await page.goto(url);
  await page.getByRole("heading", { name: "Nodes" }).waitFor();
  const flags = { name: "__Host-weiche-console", secure: true, httpOnly: true, sameSite: "Strict", path: "/" };
  expect(await page.context().cookies()).toMatchObject([flags]);
  await page.getByText("Live, as of").waitFor();
  await page.getByRole("button", { name: "End session" }).click();
  await page.getByText("The session has ended.").waitFor();
  expect(await page.context().cookies()).toEqual([]);
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow("fetch failed");
  tab.check();
});

test("if the console is off, nothing listens for it, and the command explains how to turn it on", async () => {
  await using router = await startConsoleRouter(visited.rig.portal.database, "off");
  expect(router.listen.console).toBeUndefined();
  await expect(router.link()).rejects.toThrow("the console is off: set listen.console (docs/configuration.md)");
});
