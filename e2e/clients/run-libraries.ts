/**
 * Runs clients against the whole system with the simulated engine, and prints each one's versions and results:
 * `node e2e/clients/run-libraries.ts FOLDER [NAME…]`. FOLDER has an environment for each, because they need different
 * versions of the same packages. What is missing there is named with the command that installs it. All of them take about
 * ten minutes.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { writeHuggingFace } from "../real-engines/tiny-model/hugging-face.ts";
import { simulated, startService, type Service } from "./client-service.ts";

/** The packages of each program in Python, `libraries/NAME_client.py`. */
const inPython: Readonly<Record<string, string>> = {
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
  guidellm: "guidellm",
  open_webui: "open-webui",
};

/** The packages of each program in Node.js, `libraries/NAME-client.mjs`. */
const inNode: Readonly<Record<string, string>> = {
  "openai-node": "openai",
  "ai-sdk": "ai @ai-sdk/openai @ai-sdk/openai-compatible",
  qwen: "@qwen-code/qwen-code",
  codex: "@openai/codex",
};

const [folder = "", ...wanted] = process.argv.slice(2);
const temporary = await mkdtemp(join(tmpdir(), "weiche-clients-"));
try {
  // A tokenizer in the layout of Hugging Face, for clients that count tokens themselves.
  await writeHuggingFace(join(import.meta.dirname, "../../node-agent/models/weiche-tiny.gguf"), temporary);
  // The limit per address applies, as in production.
  await using service = await startService({ limits: {} });
  console.log(`${new Date().toISOString().slice(0, 10)}, Node.js ${process.version}`);
  for (const name of wanted.length > 0 ? wanted : [...Object.keys(inPython), ...Object.keys(inNode)])
    console.log(`\n${name}: ${await run(name, service)}`);
} finally {
  await rm(temporary, { recursive: true });
}

function run(name: string, service: Service): Promise<string> | string {
  const home = join(folder, name);
  const program = (file: string) => join(import.meta.dirname, "libraries", file);
  if (name in inPython) {
    const python = join(home, "bin/python");
    if (existsSync(python)) return resultOf(python, program(`${name}_client.py`), home, service);
    return `not run: uv venv --python 3.12 ${home} && uv pip install --python ${home} '${inPython[name]}'`;
  }
  if (!(name in inNode)) return "not run: there is no such client";
  if (existsSync(join(home, "node_modules")))
    return resultOf(process.execPath, program(`${name}-client.mjs`), home, service);
  return `not run: npm install --prefix ${home} ${inNode[name]}`;
}

async function resultOf(command: string, file: string, home: string, { baseUrl, keys }: Service): Promise<string> {
  const child = spawn(command, [file], {
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      ...process.env,
      CLIENT_HOME: home,
      WEICHE_BASE_URL: baseUrl,
      WEICHE_API_KEY: keys.patient,
      WEICHE_STARTER_KEY: keys.fiveAtOnce,
      WEICHE_MODEL: simulated.model,
      WEICHE_EMBEDDING_MODEL: simulated.embeddingModel,
      WEICHE_TOKENIZER: temporary,
    },
  });
  const [said] = await Promise.all([text(child.stdout), once(child, "close")]);
  return said;
}
