/** Tests `npm start` like a new user, with the official OpenAI client and the real engine. */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { version } from "@weiche/shared/program/version.ts";
import { enginePids, isAlive, reachableDirectory, routerEnvironment, until } from "../cluster/cluster.ts";
import { runProgram } from "../cluster/commands.ts";

const root = join(import.meta.dirname, "../..");
const dataDir = reachableDirectory("weiche-demo-");
const env = { ...process.env, ...routerEnvironment(dataDir), WEICHE_AGENT_OPS_LISTEN: "127.0.0.1:0" };

let demonstration: ChildProcess;
let output = "";
let client: OpenAI;
let apiKey: string;
let baseUrl: string;
/** The sums of the usage that the client received in all tests. */
const seen = { requests: 0, prompt: 0, completion: 0 };

beforeAll(async () => {
  demonstration = spawn("npm", ["start"], { cwd: root, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  for (const stream of [demonstration.stdout!, demonstration.stderr!])
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  await until(
    "the demonstration to print how to chat",
    () => output.includes("Stop it: Ctrl-C") || demonstration.exitCode !== null,
    60_000,
  );
  ({ apiKey, baseUrl } = JSON.parse(readFileSync(join(dataDir, "demo.json"), "utf8")) as {
    apiKey: string;
    baseUrl: string;
  });
  client = new OpenAI({ baseURL: baseUrl, apiKey });
}, 90_000);

afterAll(() => {
  if (demonstration.exitCode === null) process.kill(-demonstration.pid!, "SIGKILL");
  rmSync(dataDir, { recursive: true, force: true });
});

/** The operators' command. */
const weiche = (...args: string[]) => runProgram("router/bin/weiche.js", dataDir, args);

interface Totals {
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
  readonly credits: string;
}

async function totals(): Promise<Totals> {
  const [account] = (await weiche("account", "list")) as { id: string }[];
  return ((await weiche("usage", "--account", account!.id)) as { totals: Totals }).totals;
}

function count(usage: { prompt_tokens: number; completion_tokens?: number } | undefined | null): void {
  seen.requests++;
  seen.prompt += usage!.prompt_tokens;
  seen.completion += usage!.completion_tokens ?? 0;
}

/** Counts one more request, whose usage the client did not receive. */
async function countWhatCame(): Promise<void> {
  await until("its usage to be recorded", async () => (await totals()).requests === seen.requests + 1);
  const { promptTokens, completionTokens } = await totals();
  count({ prompt_tokens: promptTokens - seen.prompt, completion_tokens: completionTokens - seen.completion });
}

/** Starts a router on the data directory of the running router. */
async function secondRouter(): Promise<{ readonly code: number; readonly lines: readonly string[] }> {
  const second = spawn(process.execPath, [join(root, "router/src/main.ts")], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  second.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const [code] = (await once(second, "exit")) as [number];
  return { code, lines: said.trim().split("\n") };
}

const user = (content: string) => [{ role: "user" as const, content }];

describe("npm start", () => {
  test("prints base URL, portal, key, a curl line and a snippet, and keeps the key out of logs", () => {
    for (const part of [baseUrl, "Portal   http://127.0.0.1:", apiKey, "curl -N ", 'import OpenAI from "openai"'])
      expect(output).toContain(part);
    expect(statSync(join(dataDir, "demo.json")).mode & 0o777).toBe(0o600);
    const logs = ["router.log", "node-agent.log"].map((file) => readFileSync(join(dataDir, file), "utf8")).join();
    expect(logs).not.toContain(apiKey);
  });

  test("prints a curl line that works unchanged [S1.11 S6.1]", needs("curl"), async () => {
    const line = output.split("\n").find((text) => text.trim().startsWith("curl -N"))!;
    const { stdout } = await promisify(execFile)("bash", ["-c", line.trim()]);
    expect(stdout).toContain('"role":"assistant"');
    expect(stdout.trimEnd().endsWith("data: [DONE]")).toBe(true);
    await countWhatCame();
  });

  test("prints a snippet that works unchanged [S1.11]", async () => {
    const start = output.indexOf('import OpenAI from "openai"');
    const snippet = output.slice(start, output.indexOf("Watch it")).trim();
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", snippet], {
      cwd: root,
    });
    expect(stdout.length).toBeGreaterThan(50);
    await countWhatCame();
  });

  test("answers a chat in one body", async () => {
    const answer = await client.chat.completions.create({
      model: "tiny-chat",
      messages: user("What's the capital of Norway?"),
      temperature: 0,
    });
    expect(answer.model).toBe("tiny-chat");
    expect(answer.choices[0]!.finish_reason).toBe("stop");
    expect(answer.choices[0]!.message.content!.length).toBeGreaterThan(3);
    count(answer.usage);
  });

  test("answers a chat as a stream: the role, then content, then the requested usage [S6.3 S6.4]", async () => {
    const stream = await client.chat.completions.create({
      model: "tiny-chat",
      messages: user("Count from 1 to 20."),
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await Array.fromAsync(stream);
    expect(chunks[0]!.choices[0]!.delta.role).toBe("assistant");
    expect(chunks.filter((chunk) => chunk.choices[0]?.delta.content).length).toBeGreaterThan(5);
    expect(chunks.at(-1)!.choices).toEqual([]);
    count(chunks.at(-1)!.usage);
  });

  test("serves two models in turn on one slot [S17.1]", async () => {
    for (const model of ["tiny-thinker", "tiny-chat", "tiny-thinker"]) {
      const answer = await client.chat.completions.create({ model, messages: user("Who are you?"), temperature: 0 });
      expect(answer.model).toBe(model);
      expect(typeof (answer.choices[0]!.message as { reasoning_content?: string }).reasoning_content).toBe(
        model === "tiny-thinker" ? "string" : "undefined",
      );
      count(answer.usage);
    }
    const [node] = (await weiche("nodes")) as { slots: { name: string; active: string }[] }[];
    expect(node!.slots.find(({ name }) => name === "chat")!.active).toBe("tiny-thinker");
  });

  test("returns embeddings as base64, the client's default, and as numbers", async () => {
    const input = ["The dog runs across the meadow.", "Die Suppe ist heiß."];
    const packed = await client.embeddings.create({ model: "tiny-embed", input });
    const plain = await client.embeddings.create({ model: "tiny-embed", input, encoding_format: "float" });
    expect(packed.data.map(({ embedding }) => embedding.length)).toEqual([192, 192]);
    for (const [index, { embedding }] of packed.data.entries()) {
      expect(Math.hypot(...embedding)).toBeCloseTo(1, 3);
      for (const [at, value] of embedding.entries()) expect(value).toBeCloseTo(plain.data[index]!.embedding[at]!, 5);
    }
    count(packed.usage);
    count(plain.usage);
  });

  test("lists the models that the key may use", async () => {
    const models = await Array.fromAsync(client.models.list());
    expect(models.map(({ id }) => id)).toEqual(["tiny-chat", "tiny-thinker", "tiny-embed"]);
  });

  test("reports errors in the convention's format", async () => {
    await expect(client.chat.completions.create({ model: "tiny-char", messages: user("x") })).rejects.toBeInstanceOf(
      OpenAI.BadRequestError,
    );
    const stranger = new OpenAI({ baseURL: baseUrl, apiKey: apiKey.slice(0, -1) + (apiKey.endsWith("x") ? "y" : "x") });
    await expect(stranger.models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
    const malformed = await fetch(`${baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}` },
      body: '{"secret-canary": ',
    });
    expect(malformed.status).toBe(400);
    expect(await malformed.text()).not.toContain("canary");
  });

  test("shows usage that equals the client's sum, to the token [S20.4]", async () => {
    await until("all usage to be recorded", async () => (await totals()).requests === seen.requests);
    const { requests, promptTokens, completionTokens, totalTokens } = await totals();
    expect({ requests, promptTokens, completionTokens }).toEqual({
      requests: seen.requests,
      promptTokens: seen.prompt,
      completionTokens: seen.completion,
    });
    expect(totalTokens).toBe(promptTokens + completionTokens);
  });

  test("counts the generated tokens of a stream that its client ends, and stops the engine's work [B5]", async () => {
    const before = await totals();
    const stream = await client.chat.completions.create({
      model: "tiny-thinker",
      messages: user("Count from 1 to 100."),
      stream: true,
      reasoning_effort: "none",
      stream_options: { include_usage: true },
    });
    let chunks = 0;
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) chunks++;
      if (chunks === 5) break;
    }
    await until("the aborted request to be recorded", async () => (await totals()).requests === before.requests + 1);
    const { completionTokens } = await totals();
    expect(completionTokens - before.completionTokens).toBeGreaterThanOrEqual(5);
    expect(completionTokens - before.completionTokens).toBeLessThanOrEqual(400);
  });

  test("serves health, readiness and metrics of router and agent", async () => {
    for (const side of ["router", "node-agent"]) {
      const line = readFileSync(join(dataDir, `${side}.log`), "utf8")
        .split("\n")
        .find((text) => text.includes('"listen":'))!;
      const { ops } = (JSON.parse(line) as { listen: { ops: string } }).listen;
      const ask = async (path: string) => {
        const answer = await fetch(`http://${ops}${path}`);
        return [answer.status, await answer.text()] as const;
      };
      expect(await ask("/healthz")).toEqual([200, `ok ${version}\n`]);
      expect(await ask("/readyz")).toEqual([200, "ready\n"]);
      const [, metrics] = await ask("/metrics");
      expect(metrics).toMatch(
        side === "router"
          ? /^weiche_router_answers_total\{.*status="200"/m
          : /^weiche_agent_tokens_total\{model="tiny-chat",kind="prompt"\} [1-9]/m,
      );
      expect(metrics).not.toContain(apiKey);
    }
  });

  test("lets a second instance on its data directory fail with one clear line that names the first", async () => {
    const { code, lines } = await secondRouter();
    expect(code).toBe(1);
    expect(lines).toEqual([expect.stringMatching(/another process \(pid \d+\) uses the data directory/)]);
  });

  test("restarts a dead router at its previous addresses, even if the system had chosen its ports", async () => {
    const starts = () =>
      readFileSync(join(dataDir, "router.log"), "utf8")
        .split("\n")
        .filter((text) => text.includes('"listen":'))
        .map((text) => (JSON.parse(text) as { listen: object }).listen);
    const [, pid] = /\(pid (\d+)\)/.exec((await secondRouter()).lines[0]!)!;
    process.kill(Number(pid), "SIGKILL");
    await until("the router to be back", () => starts().length === 2, 60_000);
    expect(starts()[1]).toEqual(starts()[0]);
    await until(
      "its node to be back",
      async () => ((await weiche("nodes")) as { state: string }[])[0]?.state === "live",
    );
    expect((await client.chat.completions.create({ model: "tiny-chat", messages: user("Hello") })).model).toBe(
      "tiny-chat",
    );
  });

  test("ends everything that it started on Ctrl-C", async () => {
    const engines = [...enginePids(dataDir).values()];
    expect(engines.length).toBeGreaterThan(0);
    const postmaster = Number.parseInt(
      readFileSync(join(dataDir, "router/database/cluster/postmaster.pid"), "utf8"),
      10,
    );
    process.kill(-demonstration.pid!, "SIGINT"); // like a terminal: to npm, which forwards it, and to the program
    const [code] = (await once(demonstration, "exit")) as [number];
    expect(code).toBe(0);
    expect([...engines, postmaster].filter(isAlive)).toEqual([]);
    expect(existsSync(join(dataDir, "router/database/cluster/postmaster.pid"))).toBe(false);
  });
});
