/** The console with the whole system: a real switch, a drain, a prewarm, and a stopped router process. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { askStream } from "../../../e2e/cluster/api-client.ts";
import { Cluster, until, type Account } from "../../../e2e/cluster/cluster.ts";
import { catalogueOf, simEngine } from "../../../e2e/cluster/sim-node.ts";
import { axeFindings, openTab, startBrowser, type Browser, type Tab } from "./browser.ts";

let browser: Browser;
let cluster: Cluster;
let account: Account;
let tab: Tab;

beforeAll(async () => {
  const engines = [simEngine("chat-a"), simEngine("chat-b")];
  const fail = "console.error('CUDA error: out of memory'); process.exit(3)";
  const broken = { ...simEngine("broken"), command: ["node", "-e", fail, "{port}"] };
  [browser, cluster] = await Promise.all([
    startBrowser(),
    Cluster.start({
      catalogue: catalogueOf("chat-a", "chat-b", "broken"),
      agents: {
        n1: {
          slots: [
            { name: "a", gpus: [0], engines },
            { name: "b", gpus: [1], engines: [broken] },
          ],
        },
      },
    }),
  ]);
  const [made, link] = await Promise.all([cluster.account(), cluster.weiche("console")]);
  account = made;
  const { url } = link as { url: string };
  tab = await openTab(browser, new URL(url).origin);
  await tab.page.goto(url);
  await tab.page.getByRole("row", { name: /n1 .*live/ }).waitFor();
}, 90_000);
afterAll(() => Promise.all([browser?.close(), cluster?.[Symbol.asyncDispose]()]));

/** Resolves once the answer has begun. */
async function longAnswer(model: string, tokens: number) {
  const begun = Promise.withResolvers<void>();
  const client = new AbortController();
  const answer = askStream({
    ...{ baseUrl: cluster.baseUrl, apiKey: account.apiKey, model, text: `sim:tokens=${tokens} Go on` },
    ...{ signal: client.signal, onPiece: () => begun.resolve() },
  });
  await begun.promise;
  return { leave: () => client.abort(), answer: answer.catch(() => undefined) };
}

const lane = () => tab.page.getByRole("region", { name: "n1, slot a" });

test("the console shows a switch live: the drain's seconds, the next model, and the switch's parts [B9 H9]", async () => {
  const { page } = tab;
  const first = await longAnswer("chat-a", 30_000);
  await page.getByRole("link", { name: "Slots" }).click();
  await lane().locator(".model", { hasText: "chat-a" }).waitFor();
  const second = longAnswer("chat-b", 20);
  const closes = lane().getByText(/drain closes in \d+ s/);
  await closes.waitFor();
  const secondsLeft = async () => Number(/in (\d+) s/.exec((await closes.textContent()) ?? "")?.[1] ?? NaN);
  const before = await secondsLeft();
  expect(before).toBeLessThanOrEqual(10);
  await expect.poll(secondsLeft, { timeout: 9_000 }).toBeLessThan(before);
  expect(await lane().textContent()).toMatch(/Nextchat-b/);
  expect(await axeFindings(page)).toEqual([]);
  first.leave();
  await second;
  await expect.poll(() => lane().getAttribute("data-state"), { timeout: 20_000 }).toBe("active");
  await lane().getByText("Last hour: 2 switches", { exact: false }).waitFor();
  await lane().getByText("Switches of the last hour", { exact: true }).click();
  await lane()
    .getByRole("row", { name: /chat-a → chat-b/ })
    .waitFor();
  tab.check();
}, 90_000);

test("the console and the commands show why an engine does not start, until an operator acknowledges it", async () => {
  const { page } = tab;
  const refused = await askStream({
    ...{ baseUrl: cluster.baseUrl, apiKey: account.apiKey, model: "broken", text: "Go on" },
  });
  expect(refused.status).toBe(503);
  const other = page.getByRole("region", { name: "n1, slot b" });
  await other.getByText(/broken failed to start .* ago:/).waitFor({ timeout: 20_000 });
  await other.getByText("exit code 3: CUDA error: out of memory").waitFor();
  await other.getByText("Last output lines").click();
  await other.getByText("CUDA error: out of memory", { exact: true }).waitFor();
  expect(await axeFindings(page)).toEqual([]);
  const reason = "exit code 3: CUDA error: out of memory";
  const said = async (...command: string[]) => JSON.stringify(await cluster.weiche(...command));
  expect(await said("nodes", "show", "n1")).toContain(reason);
  expect(await said("models")).toContain(reason);
  expect(await said("explain", refused.id!)).toContain(reason);
  await other.getByRole("button", { name: "Acknowledge" }).click();
  await page.getByText("Failures of n1 are acknowledged").waitFor();
  await other.getByText(/failed to start/).waitFor({ state: "detached", timeout: 20_000 });
  expect(await said("nodes", "show", "n1")).not.toContain(reason);
  tab.check();
}, 60_000);

test("the lane shows a prewarmed model", async () => {
  const { page } = tab;
  await lane()
    .getByRole("button", { name: /^Prewarm/ })
    .click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("The next request for chat-b will wait for a switch back.").waitFor();
  await dialog.getByRole("button", { name: "Prewarm" }).click();
  await page.getByText("n1 was asked for chat-a.").waitFor();
  await lane().locator(".model", { hasText: "chat-a" }).first().waitFor({ timeout: 20_000 });
  await expect.poll(() => lane().getAttribute("data-state"), { timeout: 20_000 }).toBe("active");
  tab.check();
}, 60_000);

test("a drain shows its progress and its end [H9]", async () => {
  const { page } = tab;
  const running = await longAnswer("chat-a", 30_000);
  await page.getByRole("link", { name: "Nodes" }).click();
  await page.getByRole("row", { name: /1 running/ }).waitFor();
  await page.getByRole("button", { name: "Drain … n1" }).click();
  const dialog = page.getByRole("dialog", { name: "Drain n1?" });
  await dialog.getByText("1 running on chat-a in slot a: they finish").waitFor();
  await dialog.getByText("account Test", { exact: false }).waitFor();
  await dialog.getByText("No other live node has chat-a", { exact: false }).waitFor();
  await dialog.getByRole("button", { name: "Drain" }).click();
  await page.getByText("1 of 1 still running", { exact: false }).waitFor();
  running.leave();
  await page.getByText("Nothing runs any more: it can be stopped.").waitFor({ timeout: 20_000 });
  await page.getByRole("button", { name: "End maintenance n1" }).click();
  await page.getByRole("row", { name: /n1 .*live/ }).waitFor({ timeout: 20_000 });
  expect(await page.getByRole("progressbar").count()).toBe(0);
  tab.check();
}, 60_000);

test("while the router hangs, the page shows since when, and it is live again afterwards [H9]", async () => {
  const { page } = tab;
  cluster.router.kill("SIGSTOP");
  await page
    .getByRole("alert")
    .getByText(/No news from the router since \d/)
    .waitFor({ timeout: 20_000 });
  cluster.router.kill("SIGCONT");
  await page.getByText("Live, as of").waitFor({ timeout: 20_000 });
  expect(await page.getByRole("alert").count()).toBe(0);
  tab.check();
}, 60_000);

test("the page continues after a restart of the router without a new link", async () => {
  const { page } = tab;
  await cluster.router.stop();
  await cluster.startRouter();
  await until(
    "the page to be live with the node",
    async () => {
      const text = (await page.getByRole("main").textContent()) ?? "";
      return text.includes("Live, as of") && /n1.*live/.test(text);
    },
    30_000,
  );
  expect(new URL(page.url()).pathname).toBe("/");
  tab.check();
}, 60_000);
