/**
 * Sends canaries in every field of prompts, in answers and in keys through real processes with full logging. The
 * requests succeed and fail in every way, and no canary may be left anywhere. `identity-process` tests the portal's
 * secrets.
 */
import { randomBytes } from "node:crypto";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { parse } from "yaml";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CanaryEngine, engineFailures } from "./canary-engine.ts";
import { Cluster, until } from "../cluster/cluster.ts";
import { SimNodeEngine, simEngine } from "../cluster/sim-node.ts";
import { dumpTexts, dumpUsage } from "../cluster/usage-dump.ts";

const root = join(import.meta.dirname, "../..");
const word = (what: string) => `${what}${randomBytes(12).toString("hex")}z`;
const inPrompt = word("prompt");
const inAnswer = word("answer");
const secrets: string[] = [];
let engine: CanaryEngine;
let cluster: Cluster;
let apiKey: string;
/** All error texts that clients received. */
const failures: string[] = [];
let asked = 0;

beforeAll(async () => {
  vi.stubEnv("WEICHE_LOG_LEVEL", "trace");
  engine = await CanaryEngine.start(inAnswer);
  const external = (model: string) => ({
    model,
    dialect: "openai",
    launcher: "external",
    url: engine.url,
    maxConcurrent: 16,
  });
  const program = ["node", join(root, "node-agent/embedded-engine/src/main.ts"), "--port", "{port}"];
  const weights = ["--model", join(root, "node-agent/models/weiche-tiny.gguf")];
  const embedded = (model: string, ...flags: string[]) => ({
    ...{ model, dialect: "openai", maxConcurrent: 4 },
    command: [...program, ...weights, "--alias", model, ...flags],
  });
  const { models } = parse(readFileSync(join(root, "deploy/demo/catalogue.yaml"), "utf8")) as {
    models: { id: string }[];
  };
  const seeing = { ...models[1], id: "canary", images: { max: 4, formats: ["png"] } };
  const printing = { ...models[1], id: "canary-llama" };
  const llamaServer = {
    ...simEngine("canary-llama", { dialect: "llama-server" }),
    dialect: "llama-server",
    sleep: undefined,
  };
  cluster = await Cluster.start({
    catalogue: { models: [...models, seeing, printing] },
    agents: {
      "node-1": {
        slots: [
          { name: "a", engines: [external("canary")] },
          { name: "b", engines: [embedded("tiny-chat")] },
          { name: "c", engines: [embedded("tiny-embed", "--embeddings")] },
          { name: "d", engines: [llamaServer] },
        ],
      },
    },
  });
  ({ apiKey } = await cluster.account());
  secrets.push(apiKey, apiKey.slice("sk-weiche-".length));
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await cluster[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

interface Said {
  readonly status: number;
  readonly text: string;
}

async function send(
  path: string,
  body: string,
  more: { key?: string; method?: string; headers?: object } = {},
): Promise<Said> {
  asked++;
  const url = new URL(cluster.baseUrl);
  const headers = {
    authorization: `Bearer ${more.key ?? apiKey}`,
    "content-type": "application/json",
    ...more.headers,
  };
  return await new Promise((resolve) => {
    const lost = () => resolve({ status: 0, text: "" });
    const options = { host: url.hostname, port: url.port, path, method: more.method ?? "POST", headers, agent: false };
    const made = httpRequest(options, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.once("close", () => resolve({ status: response.statusCode!, text }));
    });
    made.once("error", lost).end(body);
  });
}

const post = (path: string, body: object) => send(`/v1${path}`, JSON.stringify(body));

/** Returns a request whose every text contains the prompt's canary. */
function everyField(model: string, more: object = {}): object {
  const text = (where: string) => `${where} ${inPrompt} "quoted" ünï/cödé\n`;
  const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const schema = {
    ...{ type: "object", title: inPrompt, description: text("schema"), required: [inPrompt] },
    properties: { [inPrompt]: { type: "string", enum: [inPrompt], description: text("member") } },
  };
  const call = { id: inPrompt, type: "function", function: { name: "f", arguments: JSON.stringify({ a: inPrompt }) } };
  const image = { type: "image_url", image_url: { url: `data:image/png;base64,${pixel}`, detail: inPrompt } };
  return {
    model,
    messages: [
      { role: "system", content: text("system"), name: inPrompt },
      { role: "user", content: [{ type: "text", text: text("user") }, ...(model === "canary" ? [image] : [])] },
      { role: "assistant", content: text("assistant"), reasoning_content: text("reasoning"), tool_calls: [call] },
      { role: "tool", tool_call_id: inPrompt, content: text("tool") },
      { role: "user", content: text("last") },
    ],
    tools: [{ type: "function", function: { name: `f_${inPrompt}`, description: text("tool"), parameters: schema } }],
    response_format: { type: "json_schema", json_schema: { name: inPrompt, schema, strict: true } },
    ...{ stop: [inPrompt], user: inPrompt, metadata: { [inPrompt]: inPrompt }, [inPrompt]: inPrompt },
    chat_template_kwargs: { enable_thinking: true, [inPrompt]: inPrompt },
    ...{ max_tokens: 8, ...more },
  };
}

test("successful requests carry the canaries through both engines and back", async () => {
  for (const stream of [false, true]) {
    const answer = await post(
      "/chat/completions",
      everyField("canary", { stream, stream_options: { include_usage: true } }),
    );
    expect(answer.status).toBe(200);
    expect(answer.text).toContain(inAnswer);
  }
  expect(engine.bodies.at(-1)).toContain(inPrompt);
  const real = [
    await post("/chat/completions", everyField("tiny-chat", { tools: undefined })),
    await post("/chat/completions", everyField("tiny-chat", { response_format: undefined, stream: true })),
    await post("/completions", { model: "tiny-chat", prompt: inPrompt, max_tokens: 4, stop: inPrompt }),
    await post("/completions", { model: "canary", prompt: inPrompt, max_tokens: 4 }),
    await post("/embeddings", { model: "tiny-embed", input: [inPrompt, `${inPrompt} 2`] }),
  ];
  expect(real.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
});

test("errors of failed requests contain no canary, however they fail [E7]", async () => {
  const chat = (content: unknown, more: object = {}) => ({
    model: "canary",
    messages: [{ role: "user", content }],
    ...more,
  });
  for (const failure of engineFailures)
    for (const stream of [false, true]) {
      const answer = await post("/chat/completions", chat(`fail:${failure} ${inPrompt}`, { stream }));
      expect([failure, answer.status >= 200]).toEqual([failure, true]);
    }
  const hopeless = { type: "object", properties: { [inPrompt]: { $ref: `#/${inPrompt}` } }, pattern: `(${inPrompt}` };
  const format = { type: "json_schema", json_schema: { name: "n", schema: hopeless } };
  const parameters = { type: "object", properties: { a: { type: inPrompt, pattern: `[${inPrompt}` } } };
  const bodies = [
    { ...chat(inPrompt), model: "tiny-chat", response_format: format },
    { ...chat(inPrompt), model: "tiny-chat", tools: [{ type: "function", function: { name: "f", parameters } }] },
    { ...chat(`${inPrompt} `.repeat(3_000)), model: "tiny-chat" },
    ...[chat({ [inPrompt]: inPrompt }), chat(inPrompt, { temperature: inPrompt }), chat(inPrompt, { model: inPrompt })],
    ...[chat(inPrompt, { stop: [[inPrompt]] }), chat(inPrompt, { tool_choice: inPrompt })],
    ...[chat([{ type: "image_url", image_url: { url: `https://${inPrompt}.example/` } }])],
    ...[chat([{ type: "image_url", image_url: { url: `data:image/png;base64,${inPrompt}` } }])],
    { model: "canary", messages: [{ role: inPrompt, content: inPrompt }] },
    chat(inPrompt, { response_format: { type: inPrompt } }),
  ];
  for (const body of bodies) failures.push((await post("/chat/completions", body)).text);
  failures.push((await post("/embeddings", { model: "tiny-embed", input: `${inPrompt} `.repeat(3_000) })).text);
  failures.push(
    (await post("/embeddings", { model: "tiny-embed", input: [{ [inPrompt]: 1 }], instruction: inPrompt })).text,
  );
  const raw = [
    `{"${inPrompt}`,
    `{"a":"${inPrompt}","a":1}`,
    `{"__proto__":"${inPrompt}"}`,
    `"${inPrompt}\ud800"`,
    inPrompt,
  ];
  for (const body of raw) failures.push((await send("/v1/chat/completions", body)).text);
  const key = `sk-weiche-${inPrompt}`;
  failures.push(
    (await send("/v1/chat/completions", "{}", { key })).text,
    (await send(`/v1/${inPrompt}?${inPrompt}=${inPrompt}`, inPrompt)).text,
    (
      await send("/v1/models", inPrompt, {
        method: "GET",
        headers: { "user-agent": inPrompt, "x-request-id": inPrompt },
      })
    ).text,
    (await send("/v1/chat/completions", inPrompt, { headers: { "content-type": inPrompt, cookie: inPrompt } })).text,
  );
  const answered = failures.filter((text) => text.includes(inPrompt) || text.includes(apiKey));
  expect(answered).toEqual([]);
});

test("the logs of an engine contain no schema, whether it accepts or refuses it [E7]", async () => {
  const withMember = (member: object) => ({
    ...{ model: "canary-llama", messages: [{ role: "user", content: inPrompt }], max_tokens: 4 },
    response_format: {
      type: "json_schema",
      json_schema: { name: "n", schema: { type: "object", properties: { [inPrompt]: member } } },
    },
  });
  const taken = await post("/chat/completions", withMember({ type: "string", pattern: inPrompt }));
  expect(taken.status).toBe(200);
  // These requests go directly to the engine, because the router might refuse them.
  const { origin } = new SimNodeEngine(join(cluster.directory, "node-1"), "d", "canary-llama");
  for (const member of [{ type: inPrompt }, { type: "string", pattern: `^${inPrompt}{5000}$` }]) {
    const refused = await fetch(`${origin}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify(withMember(member)),
    });
    expect(refused.status).toBe(400);
  }
  const log = join(cluster.directory, "node-1/agent/logs/d-canary-llama.log");
  await until("the engine's output to be filtered", () => readFileSync(log, "utf8").includes("error parsing grammar"));
  expect(readFileSync(log, "utf8")).toMatch(/conversion was incomplete\ngot exception\nerror parsing grammar/);
});

test("no log, file, table, metric or answer to operators contains any part of prompts, answers or keys [E7]", async () => {
  await until("usage to be committed", async () => (await dumpUsage(cluster)).length >= 7);
  const weiche = ["nodes", "models", "account list", "audit", "key list"];
  const { accountId } = { accountId: ((await cluster.weiche("account", "list")) as { id: string }[])[0]!.id };
  const more = [
    `account show ${accountId}`,
    `usage --account ${accountId}`,
    `audit --account ${accountId}`,
    `credits show ${accountId}`,
  ];
  const told = await Promise.all(
    [...weiche, ...more].map((line) => cluster.weiche(...line.split(" ")).catch((error: Error) => error.message)),
  );
  const agent = cluster.agents.get("node-1")!;
  const metrics = await Promise.all(
    [cluster.router, agent].map(async ({ listen }) => (await fetch(`http://${listen["ops"]}/metrics`)).text()),
  );
  const sinks: Record<string, string | Buffer> = {
    "router's log": cluster.router.output.join("\n"),
    "agent's log": agent.output.join("\n"),
    "operators' answers": JSON.stringify([told, await cluster.weicheAgent("node-1", "status")]),
    metrics: metrics.join("\n"),
    database: await dumpTexts(cluster),
  };
  expect(sinks["router's log"]).toContain('"level":"debug"');
  expect(sinks["database"]).toContain(accountId);
  expect(asked).toBeGreaterThan(40);
  for (const name of readdirSync(cluster.directory, { recursive: true, encoding: "utf8" })) {
    const path = join(cluster.directory, name);
    if (statSync(path, { throwIfNoEntry: false })?.isFile()) sinks[name] = readFileSync(path);
  }
  expect(Object.keys(sinks).some((name) => name.includes("tiny-chat") && name.endsWith(".log"))).toBe(true);
  const needles = [inPrompt, inAnswer, ...secrets].flatMap(formsOf);
  const found = Object.entries(sinks).flatMap(([name, content]) =>
    needles.filter((needle) => content.includes(needle)).map((needle) => `${name}: ${needle}`),
  );
  expect(found).toEqual([]);
});

test("the search finds a canary in each of its forms [E7]", () => {
  const secret = word("planted");
  const texts = [
    `x${secret}y`,
    JSON.stringify({ a: `ü ${secret}"` }),
    encodeURIComponent(`ü ${secret}`),
    Buffer.from(`x${secret}y`).toString("hex"),
    Buffer.from(`x${secret}y`).toString("hex").toUpperCase(),
    ...["", "a", "ab"].flatMap((before) =>
      (["base64", "base64url"] as const).map((form) => Buffer.from(`${before}${secret}yyy`).toString(form)),
    ),
  ];
  const forms = formsOf(secret);
  expect(texts.filter((text) => !forms.some((form) => text.includes(form)))).toEqual([]);
});

/**
 * Returns the forms of a word of letters and digits. In a URL and in JSON it is unchanged. Of its base64, only the part
 * that does not depend on its position is used.
 */
function formsOf(secret: string): string[] {
  const hex = Buffer.from(secret).toString("hex");
  const base64 = [0, 1, 2].map((offset) =>
    Buffer.from(" ".repeat(offset) + secret)
      .toString("base64url")
      .slice(offset === 0 ? 0 : offset + 1, -3),
  );
  return [secret, hex, hex.toUpperCase(), ...base64];
}
