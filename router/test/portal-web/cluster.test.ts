/** The portal in front of the whole system: the code that it shows is run as it stands, and a chat costs what it says. */
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, until } from "../../../benchmarks/cluster/cluster.ts";
import { catalogueOf, simEngine } from "../../../benchmarks/cluster/sim-node.ts";
import { dumpUsage } from "../../../benchmarks/cluster/usage-dump.ts";
import { press } from "./keyboard.ts";
import { axeFindings, openTab, startBrowser, type Browser, type Tab } from "./browser.ts";

let browser: Browser;
let cluster: Cluster;
let tab: Tab;

beforeAll(async () => {
  const engines = [simEngine("chat-a"), simEngine("chat-b")];
  [browser, cluster] = await Promise.all([
    startBrowser(),
    Cluster.start({
      catalogue: catalogueOf("chat-a", "chat-b"),
      agents: { n1: { slots: [{ name: "a", gpus: [0], engines }] } },
    }),
  ]);
  tab = await openTab(browser, `http://${cluster.router.listen["portal"]}`);
}, 90_000);
afterAll(async () => {
  await tab?.[Symbol.asyncDispose]();
  await browser?.close();
  await cluster?.[Symbol.asyncDispose]();
});

test("from the invitation over a key and the code that is shown to the tick", async () => {
  const { page } = tab;
  const wish = ["--name", "ACME", "--owner-email", "ada@example.com", "--package", "Pro"];
  const { invitationUrl } = (await cluster.weiche("account", "create", ...wish)) as { invitationUrl: string };
  await page.goto(invitationUrl);
  await page.getByLabel("Password").fill("a password that nobody guesses");
  await page.keyboard.press("Enter");
  await page.getByRole("main").getByRole("link", { name: "First call" }).click();
  await page.getByText("Waiting for your first call …").waitFor();
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByLabel("Name").fill("first");
  await page.keyboard.press("Enter");
  const key = (await page.getByLabel("Key", { exact: true }).textContent())!;
  await page.getByRole("button", { name: "I have stored it" }).click();
  const code = (await page.locator(".snippet pre").textContent())!;
  const ran = spawnSync("sh", ["-c", code], { encoding: "utf8", env: { ...process.env, WEICHE_API_KEY: key } });
  const answer = JSON.parse(ran.stdout) as { usage: { total_tokens: number } };
  const tokens = answer.usage.total_tokens;
  await page.getByText(`It arrived: ${tokens} tokens, ${tokens} credits.`).waitFor({ timeout: 20_000 });
  expect(await axeFindings(page)).toEqual([]);
  tab.check();
}, 60_000);

test("a chat streams, says what it cost, can be stopped and shown as code", async () => {
  const { page } = tab;
  await page.getByRole("link", { name: "Models" }).click();
  await page.getByRole("row", { name: /chat-b .*wakes on the first request/ }).waitFor();
  await page.getByRole("link", { name: "Try it: chat-b" }).click();
  const message = page.getByRole("textbox", { name: "Message" });
  await message.fill("sim:tokens=30 Hello");
  await page.keyboard.press("Enter");
  await page.getByText("The model is being activated").waitFor();
  const summary = page.getByText(/tokens · .* credits · first token after/);
  await summary.waitFor({ timeout: 20_000 });
  const [, prompt, completion, credits] = /^(\d+) \+ (\d+) tokens · ([\d,]+) credits/.exec(
    (await summary.textContent())!,
  )!;
  expect(await axeFindings(page)).toEqual([]);
  await message.fill("sim:tokens=20000 Hello");
  await page.keyboard.press("Enter");
  await until(
    "some words to be there",
    async () => (await page.locator(".turn.assistant").last().textContent())!.length > 60,
  );
  await press(page, /^Stop$/);
  await page.getByText("Stopped.").waitFor();
  await until("both chats to be recorded", async () => (await dumpUsage(cluster)).length === 3, 30_000);
  const chats = (await dumpUsage(cluster)).filter(({ model }) => String(model) === "chat-b");
  const finished = chats.find(({ outcome }) => outcome === "finished")!;
  expect([finished.promptTokens, finished.completionTokens].map(String)).toEqual([prompt, completion]);
  expect(Number(credits)).toBe(finished.promptTokens + finished.completionTokens);
  const stopped = chats.find(({ outcome }) => outcome === "client-ended")!;
  expect(stopped.completionTokens).toBeGreaterThan(5);
  expect(stopped.completionTokens).toBeLessThan(20_000);
  await page.getByRole("button", { name: "Show as code" }).click();
  await page.getByRole("dialog", { name: "This request as code" }).getByText("sim:tokens=20000 Hello").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  tab.check();
}, 90_000);
