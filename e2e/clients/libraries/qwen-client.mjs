/** A coding agent. It sends one request with all its instructions and tools. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiKey, baseURL, check, model, runCommand, versions } from "./service.mjs";

versions("@qwen-code/qwen-code");
const settings = join(process.env.CLIENT_HOME, ".qwen/settings.json");

function ask(env = {}) {
  const known = { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey };
  return runCommand("qwen", ["--auth-type", "openai", "--model", model, "sim:tokens=5 Hello"], { ...known, ...env });
}

rmSync(settings, { force: true });
await check("chat, default", () => ask());
await check("chat, QWEN_CODE_MAX_OUTPUT_TOKENS=8000", () => ask({ QWEN_CODE_MAX_OUTPUT_TOKENS: "8000" }));
mkdirSync(join(settings, ".."), { recursive: true });
writeFileSync(settings, JSON.stringify({ model: { generationConfig: { contextWindowSize: 32_768 } } }));
await check("chat, contextWindowSize 32768", () => ask());
