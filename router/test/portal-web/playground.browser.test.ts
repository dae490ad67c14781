/** Tests the playground with the whole system: settings, tools, images, comparison, refusals, and what stays in the tab. */
import { spawnSync } from "node:child_process";
import { beforeAll, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { Cluster } from "../../../e2e/cluster/cluster.ts";
import { catalogueOf, simEngine } from "../../../e2e/cluster/sim-node.ts";
import { axeFindings, openTab, startBrowser, type Page, type Tab } from "./browser.ts";
import { hands } from "./hands.ts";

const seeing = { images: { max: 2, formats: ["png"] } };
const slots = ["chat-a", "chat-b"].map((model, at) => ({ name: model, gpus: [at], engines: [simEngine(model)] }));
const browser = await forThisFile(startBrowser());
const cluster = await forThisFile(
  Cluster.start({
    catalogue: [...catalogueOf("chat-a").map((entry) => ({ ...entry, ...seeing })), ...catalogueOf("chat-b")],
    agents: { n1: { slots } },
  }),
);
const origin = `http://${cluster.router.listen["portal"]}`;
const password = "a password that nobody guesses";
let invitation: string;

beforeAll(async () => {
  const wish = ["--name", "ACME", "--owner-email", "ada@example.com", "--package", "Pro", "--yes"];
  invitation = ((await cluster.weiche("account", "create", ...wish)) as { invitationUrl: string }).invitationUrl;
  await using tab = await openTab(browser, origin);
  await tab.page.goto(invitation);
  await tab.page.getByLabel("Password").fill(password);
  await tab.page.keyboard.press("Enter");
  await tab.page.getByRole("heading", { name: "Overview" }).waitFor();
});

async function signIn(page: Page, email = "ada@example.com"): Promise<void> {
  await page.goto("/chat?model=chat-a");
  await page.getByLabel("E-mail address").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Playground" }).waitFor();
}

/** Opens the playground in a new tab. `bodies`: the requests as they are sent. */
async function openPlayground(): Promise<Tab & { readonly bodies: string[] }> {
  const tab = await openTab(browser, origin);
  const bodies: string[] = [];
  tab.page.on("request", (request) => {
    if (new URL(request.url()).pathname === "/api/chat") bodies.push(request.postData()!);
  });
  await signIn(tab.page);
  return { ...tab, bodies };
}

const message = (page: Page) => page.getByRole("textbox", { name: "Message" });
const answers = (page: Page) => page.locator(".turn.assistant");
const summaries = (page: Page) => page.getByText(/tokens · .* credits · first token after/);

async function say(page: Page, text: string): Promise<void> {
  await message(page).fill(text);
  await message(page).press("Enter");
}

const tool = { type: "function", function: { name: "weather", parameters: { type: "object", properties: {} } } };

test.each(hands)(
  "%s: settings are checked while they are typed, a tool's result is typed, and the code is exactly the sent request [H6]",
  async (_way, hand) => {
    await using tab = await openPlayground();
    const { page, bodies } = tab;
    const type = async (name: RegExp, text: string) => {
      await hand.reach(page, name);
      await page.keyboard.type(text);
    };
    await hand.press(page, /^Parameters/);
    await type(/^System prompt/, "You're brief.");
    await type(/^Temperature/, "0,5");
    await type(/^Max\. tokens/, "40");
    await type(/^Stop sequences/, "END\n'''");
    await type(/^Tools/, '[{"type": "function",]');
    await page.getByText("This is not JSON yet: see line 1, column 22.").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await type(/Message$/, "What's the weather?");
    await hand.submit(page, /^Send$/);
    await page.getByText("Correct the marked parameter first.").waitFor();
    expect(bodies).toEqual([]);
    expect(await message(page).inputValue()).toBe("What's the weather?");
    await expect.poll(() => page.evaluate("document.activeElement.labels?.[0].textContent")).toBe("Tools");
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type("{}");
    await page.getByText("Tools are a list").waitFor();
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type(JSON.stringify([tool]));
    await hand.reach(page, /Message$/);
    await hand.submit(page, /^Send$/);
    await page.getByText("Calls weather").waitFor();
    await summaries(page).first().waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await type(/Message$/, "more");
    await hand.submit(page, /^Send$/);
    await page.getByText("Send the results of the tool calls first").waitFor();
    await type(/^Result of weather/, "rain, 4 °C");
    await hand.press(page, /^Send results$/);
    await summaries(page).nth(1).waitFor();
    const sent = bodies.map((body) => JSON.parse(body));
    const [call] = sent[1].messages[2].tool_calls;
    expect(sent[1]).toEqual({
      model: "chat-a",
      messages: [
        { role: "system", content: "You're brief." },
        { role: "user", content: "What's the weather?" },
        {
          role: "assistant",
          tool_calls: [{ id: call.id, type: "function", function: { name: "weather", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: call.id, content: "rain, 4 °C" },
      ],
      ...{ temperature: 0.5, max_tokens: 40, stop: ["END", "'''"], tools: [tool] },
      ...{ stream: true, stream_options: { include_usage: true } },
    });
    await hand.press(page, /^Show as code$/);
    const code = async (kind: string) => {
      await page.getByRole("tab", { name: kind }).click();
      return (await page.locator(".snippet pre").textContent())!;
    };
    const curl = await code("curl");
    expect(/-d '(.*)'$/s.exec(curl)![1]!.replaceAll(String.raw`'\''`, "'")).toBe(bodies[1]);
    const literal = (text: string) => /create\((\{?\n.*?\n\}?)\)[;\n]/s.exec(text)![1]!;
    expect(await page.evaluate(`JSON.stringify(${literal(await code("Node.js"))})`)).toBe(bodies[1]);
    const python = literal(await code("Python"));
    const print = `import json\nprint(json.dumps(dict(${python}), separators=(",", ":"), ensure_ascii=False))`;
    const ran = spawnSync("python3", ["-c", print], { encoding: "utf8" });
    expect(ran.error ? "no Python" : ran.stdout.trim()).toBe(ran.error ? "no Python" : bodies[1]);
    expect(await axeFindings(page)).toEqual([]);
    tab.check();
  },
  90_000,
);

test("a look at another page and a reload keep everything, another person sees nothing of it, and signing out forgets it", async () => {
  await using tab = await openPlayground();
  const { page } = tab;
  await page.getByText("Parameters", { exact: true }).click();
  await page.getByRole("textbox", { name: "System prompt" }).fill("a secret prompt");
  await say(page, "sim:tokens=5 Hello");
  await summaries(page).waitFor();
  await message(page).fill("not sent");
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await page.reload();
  await page.getByRole("link", { name: "Playground" }).click();
  await page.getByText("sim:tokens=5 Hello").waitFor();
  expect(await message(page).inputValue()).toBe("not sent");
  expect(await page.locator("details.chat-settings summary").textContent()).toBe("Parameters: System prompt");
  await summaries(page).waitFor();
  const places = () =>
    page.evaluate(
      "[JSON.stringify({...localStorage}), document.cookie, location.href, JSON.stringify(history.state)].join()",
    );
  expect(await places()).not.toMatch(/secret prompt|Hello|not sent/);
  const kept = () => page.evaluate("JSON.stringify({...sessionStorage})");
  expect(await kept()).toContain("a secret prompt");
  await page.getByRole("button", { name: /^Signed in as/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(await kept()).toBe("{}");
  await page.evaluate(`sessionStorage.setItem("weiche.tab.another.chat", "{}")`);
  await signIn(page);
  await expect.poll(kept).not.toContain("another");
  expect(await answers(page).count()).toBe(0);
  tab.check();
}, 60_000);

test("two models answer the same message side by side, both are stopped at once, and each answer can be retried", async () => {
  await using tab = await openPlayground();
  const { page, bodies } = tab;
  await say(page, "sim:tokens=4 First");
  await summaries(page).waitFor();
  await page.getByRole("button", { name: "Compare models" }).click();
  await page.getByRole("combobox", { name: "Second model" }).waitFor();
  await say(page, "sim:tokens=20000 Second");
  const writing = () => answers(page).allTextContents();
  await expect
    .poll(async () => (await writing()).filter((text) => text.includes("t9")).length, { timeout: 20_000 })
    .toBe(2);
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await expect.poll(() => page.getByText("Stopped. What came until then is billed.").count()).toBe(2);
  await expect.poll(() => page.getByText(/^\d+ \+ \d+ tokens · \d+ credits$/).count(), { timeout: 20_000 }).toBe(2);
  expect(await axeFindings(page)).toEqual([]);
  const [, a, b] = bodies.map((body) => JSON.parse(body));
  expect([a.model, b.model]).toEqual(["chat-a", "chat-b"]);
  expect(a.messages).toEqual(b.messages);
  expect(a.messages).toHaveLength(3);
  await page.getByRole("button", { name: "Edit" }).click();
  expect(await message(page).inputValue()).toBe("sim:tokens=20000 Second");
  expect(await answers(page).count()).toBe(2);
  await say(page, "sim:tokens=3 Second");
  await expect.poll(() => summaries(page).count()).toBe(4);
  const second = page.getByRole("region", { name: "Conversation with the second model" });
  await second.getByRole("button", { name: "Retry" }).click();
  await expect.poll(() => bodies.length).toBe(6);
  expect(bodies[5]).toBe(bodies[4]);
  await expect.poll(() => summaries(page).count()).toBe(4);
  await page.getByRole("button", { name: "End comparison" }).click();
  expect(await answers(page).count()).toBe(2);
  tab.check();
}, 90_000);

/** A picture of one pixel. */
const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64",
);

test("images are checked before they are sent, and only models that take images are offered them", async () => {
  await using tab = await openPlayground();
  const { page, bodies } = tab;
  const add = (name: string, mimeType: string, buffer: Buffer) =>
    page.locator("input[type=file]").setInputFiles([{ name, mimeType, buffer }]);
  await page.getByRole("button", { name: "Add image" }).waitFor();
  await message(page).fill("What is this?");
  await add("notes.txt", "text/plain", Buffer.from("hello"));
  await page.getByText("notes.txt was not added: the model takes png.").waitFor();
  await add("broken.png", "image/png", Buffer.from("hello"));
  await page.getByText("broken.png was not added: it is not an image that can be read.").waitFor();
  await add("large.png", "image/png", Buffer.concat([png, Buffer.alloc(16 << 20)]));
  await page.getByText(/^large.png was not added: one request has at most 20 MB/).waitFor();
  expect(await axeFindings(page)).toEqual([]);
  for (const name of ["one.png", "two.png", "three.png"]) await add(name, "image/png", png);
  await page.getByText(/^three.png was not added: one request has at most 2/).waitFor();
  await page.getByRole("button", { name: "Remove two.png" }).click();
  expect(await page.getByRole("list", { name: "Added images" }).getByRole("listitem").allTextContents()).toEqual([
    "one.png",
  ]);
  expect(await message(page).inputValue()).toBe("What is this?");
  await message(page).press("Enter");
  await summaries(page).waitFor();
  expect(JSON.parse(bodies[0]!).messages).toEqual([
    {
      role: "user",
      content: [
        { type: "text", text: "What is this?" },
        { type: "image_url", image_url: { url: `data:image/png;base64,${png.toString("base64")}` } },
      ],
    },
  ]);
  await page.getByRole("combobox", { name: "Model", exact: true }).selectOption("chat-b");
  await page.getByRole("button", { name: "Add image" }).waitFor({ state: "detached" });
  await say(page, "Hello");
  const refusal = page.getByRole("alert");
  await refusal
    .getByText("400: Invalid 'messages[0].content[1].image_url.url': this model accepts no images.")
    .waitFor();
  await refusal.getByText("Correct the request").waitFor();
  tab.check();
}, 60_000);

test("a refusal says what the API said and what to do, and marks the setting", async () => {
  await using tab = await openPlayground();
  const { page } = tab;
  await page.getByText("Parameters", { exact: true }).click();
  await page.getByRole("textbox", { name: "Max. tokens" }).fill("40000");
  await say(page, "sim:tokens=3 Hello");
  const refusal = page.locator(".problem");
  await refusal.getByText("Send less at once, or ask for a shorter answer.").waitFor();
  await refusal.getByText(/^400 context_length_exceeded: .*32768/).waitFor();
  await page
    .locator(".field-error")
    .getByText(/^The API refused this: .*32768/)
    .waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await page.getByRole("textbox", { name: "Max. tokens" }).fill("2");
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByText("The limit on tokens cut this answer off.").waitFor();
  await summaries(page).waitFor();
  expect(await refusal.count()).toBe(0);
  tab.check();
}, 60_000);

test("an answer format is sent with its schema", async () => {
  await using tab = await openPlayground();
  const { page, bodies } = tab;
  await page.getByText("Parameters", { exact: true }).click();
  await page.getByRole("combobox", { name: "Answer format" }).selectOption("json_schema");
  await page.getByText("A schema is an object").waitFor();
  await page.getByRole("button", { name: "Insert an example of a schema" }).click();
  await say(page, "Hello");
  await summaries(page).waitFor();
  const { response_format: format } = JSON.parse(bodies[0]!);
  expect(format).toMatchObject({ type: "json_schema", json_schema: { name: "answer", strict: true } });
  expect(Object.keys(format.json_schema.schema.properties)).toEqual(["answer", "confidence"]);
  expect(await answers(page).locator(".markdown").textContent()).toMatch(/"answer"/);
  tab.check();
}, 60_000);
