/**
 * Runs client libraries in Python against the whole system with the simulated engine, and prints what each found, with
 * its version: `node benchmarks/clients.ts FOLDER [NAME…]`. FOLDER has a virtual environment for each, since they need
 * different versions of the same packages.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { simulated, startService, type Service } from "./test/clients/client-service.ts";

/** Script and packages of each. */
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

const [folder = "", ...wanted] = process.argv.slice(2);
// As an operator's: the limit per address holds.
await using service = await startService({ limits: {} });
for (const name of wanted.length > 0 ? wanted : Object.keys(clients)) {
  const python = join(folder, name, "bin/python");
  const install = `python3 -m venv ${join(folder, name)} && ${python} -m pip install '${clients[name]}'`;
  console.log(`\n${name}: ${existsSync(python) ? await run(python, name, service) : `not run: ${install}`}`);
}

async function run(python: string, name: string, { baseUrl, keys }: Service): Promise<string> {
  const child = spawn(python, [join(import.meta.dirname, "clients", `${name}_client.py`)], {
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
