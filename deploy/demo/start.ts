/**
 * `npm start`: router and node-agent on loopback in one command, with the embedded database, the embedded engine and a
 * tiny real model. Starts both as in production, makes a demonstration account on the first start, prints how to chat,
 * and stops everything at Ctrl-C.
 */
import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { dataDirectory, makeDirectory } from "@weiche/shared/files/data-directory.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { stopWish } from "@weiche/shared/program/stop-wish.ts";
import { readDemoKey, writeDemo, type Demo } from "./demo-file.ts";
import { writeGgufConfig } from "./gguf-config.ts";
import { Program } from "./program.ts";

const root = join(import.meta.dirname, "../..");
const dataDir = dataDirectory(process.env);
const demoFile = join(dataDir, "demo.json");
const ownerEmail = "demo@example.com";
/** The user's folder, because npm runs scripts in the project's. */
const cwd = process.env["INIT_CWD"] ?? process.cwd();

try {
  await start();
} catch (error) {
  if (!(error instanceof StartError)) throw error;
  console.error(`weiche: ${error.message}`);
  process.exitCode = 1;
}

async function start(): Promise<void> {
  const gguf = ggufOption();
  makeDirectory(dataDir);
  const configs = gguf === undefined ? bundledConfigs() : writeGgufConfig(resolve(cwd, gguf), dataDir);
  const files = { WEICHE_DATA_DIR: dataDir, WEICHE_CONFIG: configs.router, WEICHE_AGENT_CONFIG: configs.agent };
  const env = { ...process.env, ...files };
  console.log("Weiche is starting (the first start makes a database, which takes some seconds) …");

  await using programs = new AsyncDisposableStack();
  const stop = stopSignal();
  const run = (name: string, args: string[], its: NodeJS.ProcessEnv) =>
    programs.use(new Program(name, [join(root, name, "src/main.ts"), ...args], join(dataDir, `${name}.log`), its));
  const router = run("router", [], env);
  const listening = await router.listening(stop);
  const agent = run("node-agent", ["--stop-engines"], { ...env, WEICHE_NODES_LISTEN: listening["nodes"]! });
  await agent.listening(stop);
  const { demo, invitationUrl } = await demoAccess(`http://${listening["api"]}/v1`, `http://${listening["portal"]}`);
  await nodeLinked(stop);
  writeDemo(demoFile, demo);
  printWelcome(demo, configs.model, invitationUrl);
  await stop.promise;
  agent.quiet = true; // otherwise the agent would warn that its router is gone
  console.log("\nStopping: running answers get 10 s, then engines and database end …");
  await router[Symbol.asyncDispose](); // first, so that no request begins while the agent stops its engines
}

function ggufOption(): string | undefined {
  try {
    return parseArgs({ options: { gguf: { type: "string" } } }).values.gguf;
  } catch (error) {
    throw new StartError(`${(error as Error).message}; usage: npm start [-- --gguf FILE]`);
  }
}

function bundledConfigs() {
  return {
    router: process.env["WEICHE_CONFIG"] ?? join(import.meta.dirname, "router.yaml"),
    agent: process.env["WEICHE_AGENT_CONFIG"] ?? join(import.meta.dirname, "agent.yaml"),
    model: "tiny-chat",
  };
}

/**
 * Settles at the first Ctrl-C or SIGTERM. A second one ends this program at once. The scripts of package.json begin
 * with `exec`, because a shell in between would not forward npm's signals and would leave the programs running.
 */
function stopSignal(): { readonly promise: Promise<void>; readonly signal: AbortSignal } {
  const controller = new AbortController();
  const { promise, resolve: settle } = Promise.withResolvers<void>();
  const first = () => {
    controller.abort(new StartError("stopped while starting"));
    settle();
  };
  const wish = stopWish(systemClock, first, () => process.exit(130));
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, wish);
  return { promise, signal: controller.signal };
}

/**
 * Returns the account and key of an earlier start if they still work, otherwise new ones. `invitationUrl`: where the
 * account's Owner chooses a password for the portal, until they have done so.
 */
async function demoAccess(baseUrl: string, portalUrl: string): Promise<{ demo: Demo; invitationUrl?: string }> {
  const apiKey = readDemoKey(demoFile);
  if (apiKey !== undefined) {
    const answer = await fetch(`${baseUrl}/models`, { headers: { authorization: `Bearer ${apiKey}` } });
    await answer.arrayBuffer();
    if (answer.status === 200) return { demo: { apiKey, baseUrl, portalUrl }, ...(await newInvitation()) };
  }
  const accounts = (await weiche("account", "list")) as DemoAccount[];
  const wish = ["--name", "Demo", "--owner-email", ownerEmail, "--package", "Business Plus", "--yes"];
  const found = accounts.find(({ name }) => name === "Demo");
  const account = found ?? ((await weiche("account", "create", ...wish)) as DemoAccount);
  const { key } = (await weiche("key", "create", "--user", account.ownerUserId, "--name", "demo")) as { key: string };
  const { invitationUrl } = account.invitationUrl === undefined ? await newInvitation() : account;
  return { demo: { apiKey: key, baseUrl, portalUrl }, invitationUrl };
}

/** Replaces the link of an earlier start, which only its hash is kept of. Returns nothing once somebody has joined. */
async function newInvitation(): Promise<{ invitationUrl?: string }> {
  // Its user may have another address by now, or be deleted.
  const owner = (await weiche("user", "show", ownerEmail).catch(() => undefined)) as { state: string } | undefined;
  if (owner?.state !== "invited" && owner?.state !== "uninvited") return {};
  return (await weiche("user", "invite", ownerEmail)) as { invitationUrl: string };
}

interface DemoAccount {
  readonly name: string;
  readonly ownerUserId: string;
  /** Set only when the account was created now. */
  readonly invitationUrl?: string;
}

/** Waits until the router has a node for requests. */
async function nodeLinked(stop: { readonly signal: AbortSignal }): Promise<void> {
  for (;;) {
    stop.signal.throwIfAborted();
    const nodes = (await weiche("nodes")) as { state: string }[];
    if (nodes.some(({ state }) => state === "live")) return;
  }
}

/** Runs the operators' command. */
async function weiche(...args: string[]): Promise<unknown> {
  const env = { ...process.env, WEICHE_DATA_DIR: dataDir };
  const command = [join(root, "router/bin/weiche.js"), ...args, "--json"];
  const { stdout } = await promisify(execFile)(process.execPath, command, { env });
  return JSON.parse(stdout);
}

function printWelcome({ apiKey, baseUrl, portalUrl }: Demo, model: string, invitationUrl?: string): void {
  const joining = invitationUrl === undefined ? "" : ` (choose your password: ${invitationUrl})`;
  console.log(`
Weiche is running.

  API      ${baseUrl}
  Portal   ${portalUrl}${joining}
  API key  ${apiKey}
  (also in ${demoFile})

Chat with curl:

  curl -N ${baseUrl}/chat/completions -H "Authorization: Bearer ${apiKey}" -H "Content-Type: application/json" -d '{"model":"${model}","stream":true,"messages":[{"role":"user","content":"Who are you?"}]}'

With the OpenAI SDK for Node.js:

  import OpenAI from "openai";
  const client = new OpenAI({ baseURL: "${baseUrl}", apiKey: "${apiKey}" });
  const messages = [{ role: "user", content: "Tell me a story about a dragon." }];
  const stream = await client.chat.completions.create({ model: "${model}", messages, stream: true });
  for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");

Watch it: npx weiche nodes · npx weiche usage --help · Stop it: Ctrl-C
`);
}
