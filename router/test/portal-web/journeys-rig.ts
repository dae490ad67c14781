/** The real programs with a browser, and steps that several journeys share. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { Cluster } from "../../../e2e/cluster/cluster.ts";
import { openTab, startBrowser, type Browser, type Page, type Tab } from "./browser.ts";
import { hands, type Hand } from "./hands.ts";
import { focusedName, tabTo } from "./keyboard.ts";

export const password = "a password that nobody guesses";
export const model = "tiny-chat";
const engineOf = (name: string, ...flags: readonly string[]) => ({
  ...{ model: name, dialect: "openai", maxConcurrent: 4, directory: join(import.meta.dirname, "../../..") },
  command: [
    ...["node", "node-agent/embedded-engine/src/main.ts", "--model", "node-agent/models/weiche-tiny.gguf"],
    ...["--alias", name, ...flags, "--port", "{port}"],
  ],
});
const slots = [
  { name: "a", engines: [engineOf(model)] },
  { name: "b", engines: [engineOf("tiny-embed", "--embeddings")] },
];
const common = {
  ...{ status: "Beta", contextTokens: 2048 },
  factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 1 }],
};
const embeddings = { dimensions: { min: 16, max: 192, default: 192 }, inputTokens: 2048 };
const catalogue = [
  { ...common, id: model, category: "language" },
  { ...common, id: "tiny-embed", category: "embeddings", embeddings },
];

let browser: Browser;
export let cluster: Cluster;
export let ada: Tab;

/** Starts everything. Call it once per file. */
export function journeys(): void {
  /** The first person calls the API with curl, and the other journeys build on the result. */
  const ifRun = needs("curl");
  beforeEach(({ task, skip }) => {
    Object.assign(task.meta, ifRun.meta);
    skip(ifRun.skip === true);
  });
  beforeAll(async () => {
    [browser, cluster] = await Promise.all([startBrowser(), Cluster.start({ catalogue, agents: { n1: { slots } } })]);
    ada = await newTab();
  }, 90_000);
  afterAll(async () => {
    await ada?.[Symbol.asyncDispose]();
    await browser?.close();
    await cluster?.[Symbol.asyncDispose]();
  });
}

export const newTab = () => openTab(browser, `http://${cluster.router.listen["portal"]}`);

/** Returns the status of an API request that costs nothing. */
export const statusOf = async (key: string) =>
  (await fetch(`${cluster.baseUrl}/models`, { headers: { authorization: `Bearer ${key}` } })).status;

export async function joinBy(page: Page, link: string): Promise<void> {
  await page.goto(link);
  await page.getByLabel("Password").waitFor();
  await tabTo(page, /Password/);
  await page.keyboard.type(password);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

/** Makes a key on the page Keys or First call. Returns the key. */
export async function makeKey(page: Page, name: string, hand: Hand = hands[0][1], creditLimit = ""): Promise<string> {
  await hand.press(page, /Create key/);
  await page.getByRole("dialog", { name: "Create key" }).waitFor();
  await page.keyboard.type(name);
  await hand.reach(page, /^Credit limit/);
  await page.keyboard.type(creditLimit);
  await hand.submit(page, /^Create key$/);
  const key = (await page.getByLabel("Key", { exact: true }).textContent())!;
  await hand.press(page, /I have stored it/);
  await page.getByRole("dialog").waitFor({ state: "detached" });
  return key;
}

/** Runs a program with a new key in its environment. Returns its output. */
export async function runWithKey(program: string, ...args: readonly string[]): Promise<string> {
  const made = await cluster.weiche("key", "create", "--user", await ownerId(), "--name", "examples");
  const { key } = made as { key: string };
  const { stdout, stderr, status } = spawnSync(program, args, {
    ...{ encoding: "utf8", cwd: join(import.meta.dirname, "../../.."), timeout: 60_000 },
    env: { ...process.env, WEICHE_API_KEY: key },
  });
  expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
  return stdout;
}

/** Returns the code on a tab of the page First call, reached by keyboard. */
export async function exampleFor(page: Page, kind: string): Promise<string> {
  await tabTo(page, /^(curl|Python|Node\.js|LangChain|Agents, editors)$/);
  while ((await focusedName(page)) !== kind) await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.getByRole("tab", { name: kind, selected: true }).waitFor();
  const code = (await page.locator(".snippet pre").textContent())!;
  expect(code).toContain(cluster.baseUrl);
  expect(code).toContain("WEICHE_API_KEY");
  expect(code).not.toContain("sk-weiche-");
  return code;
}

async function ownerId(): Promise<string> {
  const [owner] = (await cluster.weiche("user", "list", "--account", await accountId())) as { id: string }[];
  return owner!.id;
}

export async function accountId(): Promise<string> {
  const [account] = (await cluster.weiche("account", "list")) as { id: string }[];
  return account!.id;
}
