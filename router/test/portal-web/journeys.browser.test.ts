/**
 * Whole journeys through the real programs: router, database, agent and the embedded engine, in a browser or two.
 * Everything that works by keyboard alone is done by keyboard.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hands } from "./hands.ts";
import { chooseInMenu, goTo, press, tabTo } from "./keyboard.ts";
import { lackOfPython, pythonOfTheExamples } from "./python-of-the-examples.ts";
import {
  accountId,
  ada,
  cluster,
  exampleFor,
  joinBy,
  journeys,
  makeKey,
  model,
  newTab,
  password,
  runWithKey,
  statusOf,
} from "./journeys-rig.ts";

journeys();

test("by keyboard alone: from the invitation to the first answer of a model [H6]", async () => {
  const { page } = ada;
  const wish = ["--name", "ACME", "--owner-email", "ada@example.com", "--package", "Pro", "--yes"];
  const { invitationUrl } = (await cluster.weiche("account", "create", ...wish)) as { invitationUrl: string };
  await joinBy(page, invitationUrl);
  await goTo(page, "First call");
  await page.getByText("Waiting for your first call …").waitFor();
  const key = await makeKey(page, "first");
  const code = (await page.locator(".snippet pre").textContent())!;
  const ran = spawnSync("sh", ["-c", code], { encoding: "utf8", env: { ...process.env, WEICHE_API_KEY: key } });
  const { usage } = JSON.parse(ran.stdout) as { usage: { total_tokens: number } };
  const arrived = page.getByText(`It arrived: ${usage.total_tokens} tokens`);
  await arrived.waitFor({ timeout: 20_000 });
  expect(usage.total_tokens).toBeGreaterThan(0);
  ada.check();
}, 60_000);

test("by keyboard alone: each example on the page runs unchanged [H6]", async () => {
  const { page } = ada;
  const node = (code: string) => runWithKey(process.execPath, "--input-type=module", "--eval", code);
  /** A program with settings only in its environment, like agents and editors. */
  const client = `const { default: OpenAI } = await import("openai");
    const messages = [{ role: "user", content: "Hello" }];
    const answer = await new OpenAI().chat.completions.create({ model: process.env.OPENAI_MODEL, messages });
    console.log(answer.choices[0].message.content);`;
  const shell = (code: string) =>
    runWithKey("sh", "-c", `${code}\n"$0" --input-type=module --eval "$1"`, process.execPath, client);
  expect(await node(await exampleFor(page, "Node.js"))).toMatch(/\w/);
  expect(await node(await exampleFor(page, "LangChain"))).toMatch(/\w/);
  expect(await shell(await exampleFor(page, "Agents, editors"))).toMatch(/\w/);
  ada.check();
}, 60_000);

test(
  "by keyboard alone: each Python example runs unchanged, also the one for embeddings [H6]",
  { ...lackOfPython(), timeout: 90_000 },
  async () => {
    const { page } = ada;
    const python = pythonOfTheExamples;
    expect(await runWithKey(python, "-c", await exampleFor(page, "Python"))).toMatch(/\w/);
    await goTo(page, "Help");
    const embeddings = page.locator("#embeddings-code");
    await embeddings.waitFor();
    expect(await runWithKey(python, "-c", (await embeddings.textContent())!)).toBe("192\n");
    ada.check();
  },
);

test("by keyboard alone: a chat in the playground [H6]", async () => {
  const { page } = ada;
  await goTo(page, "Playground");
  await tabTo(page, /Message/);
  await page.keyboard.type("Say hello.");
  await page.keyboard.press("Enter");
  const summary = page.getByText(/tokens · .* credits · first token after/);
  await summary.waitFor({ timeout: 20_000 });
  expect(await page.locator(".turn.assistant").textContent()).toMatch(/\w/);
  ada.check();
}, 60_000);

test("by keyboard alone: the package is upgraded [H6]", async () => {
  const { page } = ada;
  await goTo(page, "Package");
  await press(page, /^Upgrade/);
  await page.getByRole("button", { name: /^Order for/ }).waitFor();
  await press(page, /^Order for/);
  await page.getByText("The larger package holds now").waitFor();
  expect(JSON.stringify(await cluster.weiche("subscription", "show", "--account", await accountId()))).toContain(
    '"Business"',
  );
  ada.check();
}, 60_000);

test("by keyboard alone: a person is invited, loses their role while a form is open, and the form reports it [H2 H6]", async () => {
  const { page } = ada;
  await goTo(page, "Users");
  await press(page, /Invite somebody/);
  await page.keyboard.type("dora@example.com");
  await tabTo(page, /Role/);
  await page.keyboard.press("ArrowDown");
  await press(page, /Make the invitation/);
  const link = (await page.getByLabel("Link", { exact: true }).textContent())!;
  await press(page, /^Done$/);
  await page.getByRole("row", { name: /dora@example.com Admin/ }).waitFor();

  await using hers = await newTab();
  await joinBy(hers.page, link);
  await goTo(hers.page, "Users");
  await press(hers.page, /Invite somebody/);
  await hers.page.keyboard.type("erik@example.com");
  const users = (await cluster.weiche("user", "list", "--account", await accountId())) as {
    id: string;
    email: string;
  }[];
  await cluster.weiche(
    "user",
    "update",
    users.find(({ email }) => email === "dora@example.com")!.id,
    "--role",
    "member",
  );
  await press(hers.page, /Make the invitation/);
  await hers.page.getByRole("dialog", { name: "Please sign in again" }).waitFor();
  await hers.page.keyboard.type(password);
  await hers.page.keyboard.press("Enter");
  await hers.page.getByRole("alert").getByText("Your role does not allow this.").waitFor();
  expect(await hers.page.getByRole("textbox", { name: "E-mail address" }).inputValue()).toBe("erik@example.com");
  await press(hers.page, /^Cancel$/);
  await goTo(hers.page, "Keys");
  await hers.page.getByRole("link", { name: "Users" }).waitFor({ state: "detached" });
  ada.check();
  hers.check();
}, 60_000);

test.each(hands)(
  "%s: after a key is regenerated, the old value is refused and the new one works [H6]",
  async (way, hand) => {
    const { page } = ada;
    await hand.goTo(page, "Keys");
    const name = `nightly ${way}`;
    const old = await makeKey(page, name, hand);
    expect(await statusOf(old)).toBe(200);
    await hand.press(page, new RegExp(`Actions for ${name}`));
    await page.getByRole("menu").waitFor();
    await hand.choose(page, "Regenerate");
    await page.getByRole("dialog", { name: `Regenerate ${name}?` }).waitFor();
    await hand.press(page, /^Regenerate$/);
    const fresh = (await page.getByLabel("Key", { exact: true }).textContent())!;
    await hand.press(page, /I have stored it/);
    await expect.poll(() => statusOf(old), { timeout: 1_000, interval: 25 }).toBe(401);
    expect(await statusOf(fresh)).toBe(200);
    ada.check();
  },
  60_000,
);

test("with two browsers: a key revoked in one is refused within a second, and the other one shows it [E1]", async () => {
  const { page } = ada;
  await goTo(page, "Keys");
  const key = await makeKey(page, "batch");
  await using other = await newTab();
  await other.page.goto("/");
  await other.page.getByLabel("E-mail address").fill("ada@example.com");
  await other.page.getByLabel("Password").fill(password);
  await other.page.keyboard.press("Enter");
  await other.page.getByRole("link", { name: "Keys" }).click();
  await other.page.getByRole("row", { name: /^batch .*active/ }).waitFor();
  expect(await statusOf(key)).toBe(200);
  await press(page, /Actions for batch/);
  await page.getByRole("menu").waitFor();
  await chooseInMenu(page, "Revoke");
  await page.getByRole("dialog", { name: "Revoke batch?" }).waitFor();
  await page.keyboard.type("batch");
  const revoked = page.waitForResponse((response) => response.url().endsWith("/revoke"));
  await page.keyboard.press("Enter");
  expect((await revoked).status()).toBe(200);
  await expect.poll(() => statusOf(key), { timeout: 1_000, interval: 25 }).toBe(401);
  await page.getByText("batch is revoked").waitFor();
  await other.page.goto("/keys?state=revoked");
  await other.page.getByRole("row", { name: /^batch .*revoked/ }).waitFor();
  ada.check();
  other.check();
}, 60_000);

test.each(hands)(
  "%s: a key at its limit is blocked with the reason, and active again once the limit is raised [H6]",
  async (...way) => {
    const [{ page }, hand] = [ada, way[1]];
    await hand.goTo(page, "Keys");
    const name = `small ${way[0]}`;
    const key = await makeKey(page, name, hand, "1");
    const answer = await fetch(`${cluster.baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, max_tokens: 4, messages: [{ role: "user", content: "Hello" }] }),
    });
    expect(answer.status).toBe(200);
    const usedUp = async () => {
      await cluster.weiche("credits", "evaluate");
      return await statusOf(key);
    };
    await expect.poll(usedUp, { timeout: 20_000 }).toBe(401);
    await page.reload();
    const row = page.getByRole("row", { name: new RegExp(`^${name} `) });
    await row.getByText("blocked by limit").waitFor();
    await row.getByText("its limit is reached").waitFor();
    await hand.press(page, new RegExp(`Actions for ${name}`));
    await page.getByRole("menu").waitFor();
    await hand.choose(page, "Edit");
    await hand.reach(page, /^Credit limit/);
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type("100000");
    await hand.submit(page, /^Save$/);
    await row.getByText("active", { exact: true }).waitFor();
    await expect.poll(() => statusOf(key), { timeout: 5_000 }).toBe(200);
    ada.check();
  },
  60_000,
);

test("the block of a new key runs as pasted, in each language without a package [H6]", async () => {
  const { page } = ada;
  await goTo(page, "Keys");
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("pasted");
  await page.keyboard.press("Enter");
  const key = (await page.getByLabel("Key", { exact: true }).textContent())!;
  const { WEICHE_API_KEY: _none, ...env } = process.env;
  const cwd = join(import.meta.dirname, "../../..");
  for (const kind of ["curl", "Node.js", "LangChain"]) {
    await page.getByRole("tab", { name: kind }).click();
    const block = (await page.locator(".snippet pre").textContent())!;
    expect(block.split("\n")[0]).toBe(`export WEICHE_API_KEY='${key}'`);
    const { stdout, status } = spawnSync("sh", ["-c", block], { encoding: "utf8", env, cwd, timeout: 60_000 });
    expect({ kind, status, isAnswered: /\w/.test(stdout) }).toEqual({ kind, status: 0, isAnswered: true });
  }
  await page.getByRole("button", { name: "I have stored it" }).click();
  ada.check();
}, 60_000);
