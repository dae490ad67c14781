/**
 * Tests the portal with the whole system: its example code runs unchanged, and a chat costs the credits that it shows.
 */
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { Cluster, until } from "../../../e2e/cluster/cluster.ts";
import { catalogueOf, simEngine } from "../../../e2e/cluster/sim-node.ts";
import { dumpUsage } from "../../../e2e/cluster/usage-dump.ts";
import { hands } from "./hands.ts";
import { axeFindings, openTab, startBrowser, type Browser, type Page, type Tab } from "./browser.ts";

let browser: Browser;
let cluster: Cluster;
let tab: Tab;

/** The first person calls the API with curl, and the others continue. */
const ifRun = needs("curl");
beforeEach(({ task, skip }) => {
  Object.assign(task.meta, ifRun.meta);
  skip(ifRun.skip === true);
});
beforeAll(async () => {
  const engines = [
    simEngine("chat-a"),
    simEngine("chat-b", { "start-ms": 3_000 }),
    simEngine("chat-thinks", { "reasoning-tokens": 20 }),
  ];
  const reasoning = { mode: "default-on", efforts: ["none", "low"], default: "low", templateKwargs: "accepted" };
  [browser, cluster] = await Promise.all([
    startBrowser(),
    Cluster.start({
      catalogue: [
        ...catalogueOf("chat-a", "chat-b"),
        ...catalogueOf("chat-thinks").map((entry) => ({ ...entry, reasoning })),
      ],
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

test("a person joins, makes a key, runs the shown code, and sees the step checked", async () => {
  const { page } = tab;
  const wish = ["--name", "ACME", "--owner-email", "ada@example.com", "--package", "Pro", "--yes"];
  const { invitationUrl } = (await cluster.weiche("account", "create", ...wish)) as { invitationUrl: string };
  await page.goto(invitationUrl);
  await page.getByLabel("Password").fill("a password that nobody guesses");
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "First call" }).click();
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

/** Seconds to the first word of the first chat, by model. */
const waitedSeconds = new Map<string, number>();
const summaryOf = (page: Page) => page.getByText(/tokens · .* credits · first token after/);

// Each time the model that is not active.
test.each([
  [...hands[1], "chat-b", /^The model is being activated, usually within seconds/], // nobody has waited for it yet
  [...hands[0], "chat-a", /^The model is being activated/],
] as const)(
  "%s: a chat streams, shows its cost, and can be stopped and shown as code [H6]",
  async (...way) => {
    const { page } = tab;
    const [_name, hand, model, activating] = way;
    await hand.goTo(page, "Models");
    await page.getByRole("row", { name: new RegExp(`${model} .*wakes on the first request`) }).waitFor();
    await hand.press(page, new RegExp(`^Try it: ${model}`));
    await page.getByRole("heading", { name: "Playground" }).waitFor();
    await hand.reach(page, /^Message/);
    await page.keyboard.type("sim:tokens=30 Hello");
    await hand.submit(page, /^Send$/);
    await page.getByText(activating).waitFor();
    await summaryOf(page).waitFor({ timeout: 20_000 });
    const summary = (await summaryOf(page).textContent())!;
    const [, prompt, completion, credits] = /^(\d+) \+ (\d+) tokens · ([\d,]+) credits/.exec(summary)!;
    waitedSeconds.set(model, Number(/first token after ([\d.]+) s/.exec(summary)![1]));
    expect(await axeFindings(page)).toEqual([]);
    await hand.reach(page, /^Message/);
    await page.keyboard.type("sim:tokens=20000 Hello");
    await hand.submit(page, /^Send$/);
    await until(
      "some words to be there",
      async () => (await page.locator(".turn.assistant").last().textContent())!.length > 60,
    );
    await hand.press(page, /^Stop$/);
    await page.getByText("Stopped.").waitFor();
    const recorded = async () =>
      (await dumpUsage(cluster)).filter((one) => one.model === model && one.keyId === one.userId);
    await until("both chats to be recorded", async () => (await recorded()).length === 2, 30_000);
    const chats = await recorded();
    const finished = chats.find(({ outcome }) => outcome === "finished")!;
    expect([finished.promptTokens, finished.completionTokens].map(String)).toEqual([prompt, completion]);
    expect(Number(credits)).toBe(finished.promptTokens + finished.completionTokens);
    const stopped = chats.find(({ outcome }) => outcome === "client-ended")!;
    expect(stopped.completionTokens).toBeGreaterThan(5);
    expect(stopped.completionTokens).toBeLessThan(20_000);
    // Also a stopped answer shows its sum, which its stream did not have.
    const sum = `${stopped.promptTokens} + ${stopped.completionTokens} tokens · ${stopped.promptTokens + stopped.completionTokens} credits`;
    await page.locator(".turn.assistant").last().getByText(sum, { exact: true }).waitFor({ timeout: 20_000 });
    await hand.press(page, /^Show as code$/);
    await page.getByRole("dialog", { name: "This request as code" }).getByText("sim:tokens=20000 Hello").waitFor();
    await page.getByText('{"role":"assistant","content":').waitFor(); // the whole conversation
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await hand.reach(page, /^Message/);
    await page.keyboard.type("not sent yet");
    await hand.goTo(page, "Keys");
    await hand.goTo(page, "Playground");
    await hand.select(page, /^Model chat/, model === "chat-a" ? "chat-b" : "chat-a");
    // Answers keep the name of the model that gave them.
    expect(await page.locator(".turn.assistant h2").allTextContents()).toEqual([model, model]);
    expect(await page.getByRole("textbox", { name: "Message" }).inputValue()).toBe("not sent yet");
    await page.getByRole("textbox", { name: "Message" }).fill("");
    await hand.press(page, /^New conversation$/);
    tab.check();
  },
  90_000,
);

test("while a model is being activated, the chat shows the recent waiting time", async () => {
  const { page } = tab;
  await page.goto("/chat?model=chat-b");
  const message = page.getByRole("textbox", { name: "Message" });
  await message.fill("sim:tokens=3 Hello");
  await message.press("Enter");
  const said = (await page.getByText(/^The model is being activated/).textContent())!;
  const sentence = /^The model is being activated; others lately waited (\d+) s for it\.$/;
  expect(said).toMatch(sentence);
  const seconds = Number(sentence.exec(said)![1]);
  expect(Math.abs(seconds - waitedSeconds.get("chat-b")!)).toBeLessThanOrEqual(1.5);
  await summaryOf(page).waitFor({ timeout: 20_000 });
  expect(await axeFindings(page)).toEqual([]);
  await page.getByRole("button", { name: "New conversation" }).click();
  tab.check();
}, 60_000);

test.each(hands)(
  "%s: reasoning is collapsed, can be expanded, and can be turned off",
  async (_way, hand) => {
    const { page } = tab;
    await page.goto("/chat?model=chat-thinks");
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    // Another hand has switched it off.
    await page.getByRole("combobox", { name: "Reasoning" }).selectOption("");
    const say = async () => {
      await hand.reach(page, /^Message/);
      await page.keyboard.type("sim:tokens=5 Hello");
      await hand.submit(page, /^Send$/);
    };
    await say();
    await summaryOf(page).waitFor({ timeout: 30_000 });
    const thoughts = page.locator(".turn.assistant details");
    expect(await thoughts.locator("p").isVisible()).toBe(false);
    await hand.press(page, /^Reasoning$/);
    await thoughts.locator("p").waitFor();
    expect(await thoughts.locator("p").textContent()).toMatch(/\w/);
    expect(await axeFindings(page)).toEqual([]);
    await hand.select(page, /^Reasoning.*(low|off)/, "Reasoning: off");
    await say();
    await summaryOf(page).nth(1).waitFor({ timeout: 20_000 });
    expect(await thoughts.count()).toBe(1);
    await page.getByRole("button", { name: "New conversation" }).click();
    tab.check();
  },
  90_000,
);
