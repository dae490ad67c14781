/**
 * Runs Python client libraries and qwen-code against the whole system with the simulated engine, and prints each one's
 * result and version: `node e2e/clients/run-libraries.ts FOLDER [NAME…]`. FOLDER has an environment for each, because they need
 * different versions of the same packages.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { simulated, startService, type Service } from "./client-service.ts";

/** The packages of each client script. */
const clients: Readonly<Record<string, string>> = {
  openai: "openai",
  litellm: "litellm",
  crewai: "crewai",
  strands: "strands-agents[openai]",
  dspy: "dspy",
  pydantic_ai: "pydantic-ai-slim[openai]",
  langchain: "langchain-openai",
  instructor: "instructor",
  openai_agents: "openai-agents",
  llama_index: "llama-index-llms-openai-like",
};

/** A coding agent in Node.js. It sends one request with all its instructions and tools. It fails on Node.js 26. */
const qwenCode = "qwen_code";

const [folder = "", ...wanted] = process.argv.slice(2);
// The limit per address applies, as in production.
await using service = await startService({ limits: {} });
for (const name of wanted.length > 0 ? wanted : [...Object.keys(clients), qwenCode]) {
  if (name === qwenCode) {
    console.log(`\n${name}: ${await runQwenCode(join(folder, name))}`);
    continue;
  }
  const python = join(folder, name, "bin/python");
  const install = `python3 -m venv ${join(folder, name)} && ${python} -m pip install '${clients[name]}'`;
  console.log(`\n${name}: ${existsSync(python) ? await run(python, name, service) : `not run: ${install}`}`);
}

async function runQwenCode(home: string): Promise<string> {
  const command = join(home, "node_modules/.bin/qwen");
  if (!existsSync(command)) return `not run: npm install --prefix ${home} @qwen-code/qwen-code`;
  const env = {
    ...process.env,
    ...{
      HOME: home,
      PATH: "/usr/local/bin:/usr/bin:/bin",
      OPENAI_BASE_URL: service.baseUrl,
      OPENAI_API_KEY: service.keys.patient,
    },
  };
  const ask = async (...args: string[]) => {
    const child = spawn(command, args, { cwd: home, stdio: ["ignore", "pipe", "pipe"], env });
    const [said, failed] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    return (said + failed).trim().slice(0, 600);
  };
  const asked = ["--auth-type", "openai", "--model", simulated.model, "sim:tokens=5 Hello"];
  return `version ${await ask("--version")}\nchat: ${await ask(...asked)}`;
}

async function run(python: string, name: string, { baseUrl, keys }: Service): Promise<string> {
  const child = spawn(python, [join(import.meta.dirname, "libraries", `${name}_client.py`)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      ...process.env,
      WEICHE_BASE_URL: baseUrl,
      WEICHE_API_KEY: keys.patient,
      WEICHE_STARTER_KEY: keys.fiveAtOnce,
      WEICHE_MODEL: simulated.model,
      WEICHE_EMBEDDING_MODEL: simulated.embeddingModel,
    },
  });
  const [said] = await Promise.all([text(child.stdout), once(child, "close")]);
  return said;
}
