/**
 * Runs a simulated engine as a process: `node e2e/sim-engine/main.ts --port N --model NAME`. SIGTERM has the
 * effect of its dialect. vLLM aborts running requests and ends. A busy llama-server waits for a second SIGTERM.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { startSimEngine, type SimDialectName, type SimEngineOptions } from "./sim-engine.ts";

/** The settings that are numbers, by their options. */
const numbers: Readonly<Record<string, keyof SimEngineOptions>> = {
  port: "port",
  "start-ms": "startMs",
  "ttft-ms": "ttftMs",
  "ttft-per-thousand-ms": "ttftPerThousandMs",
  "itl-ms": "itlMs",
  "itl-per-running-ms": "itlPerRunningMs",
  "itl-per-thousand-ms": "itlPerThousandMs",
  tokens: "tokens",
  "reasoning-tokens": "reasoningTokens",
  context: "contextTokens",
  "max-running": "maxRunning",
  "sleep-ms": "sleepMs",
  "wake-ms": "wakeMs",
  dimensions: "embeddingDimensions",
};
const { values } = parseArgs({
  options: {
    ...Object.fromEntries(Object.keys(numbers).map((option) => [option, { type: "string" } as const])),
    model: { type: "string", default: "sim" },
    dialect: { type: "string", default: "vllm" },
    journal: { type: "string" },
    adapter: { type: "string", multiple: true },
    fault: { type: "string", multiple: true },
    /** A file. The engine loads while it exists. */
    "load-while": { type: "string" },
    /** A file with a fault per line, read at the start. It may be missing. */
    "fault-file": { type: "string", default: "" },
  },
});

const { model, journal } = values;
const loadWhile = values["load-while"];
const faultFile = values["fault-file"];
const faultsOfFile = existsSync(faultFile) ? readFileSync(faultFile, "utf8").split("\n").filter(Boolean) : [];
const stopStrings = process.env["VLLM_MAX_STOP_STRINGS"];
const given = Object.entries(values).filter(([option]) => option in numbers);
const options: SimEngineOptions = {
  model,
  dialect: values.dialect as SimDialectName,
  ...Object.fromEntries(given.map(([option, text]) => [numbers[option], Number(text)])),
  adapters: values.adapter ?? [],
  ...(stopStrings !== undefined && { stopStringsMax: Number(stopStrings) }),
  isHeld: () => loadWhile !== undefined && existsSync(loadWhile),
  faults: [...(values.fault ?? []), ...faultsOfFile],
  journal(line) {
    if (journal !== undefined) appendFileSync(journal, `${JSON.stringify({ ...line, model, pid: process.pid })}\n`);
  },
  savesPrompts: process.env["LLAMA_ARG_CACHE_RAM"] !== "0",
  print: (line) => console.error(line),
  onCrash: (exitCode) => process.exit(exitCode),
};

const engine = await startSimEngine(options);
console.log(`simulated ${options.dialect} engine, pid ${process.pid}, model ${options.model}, ${engine.origin}`);
void engine.ready.then(() => console.log("Application startup complete."));

setInterval(() => {}, 60_000); // keeps an engine that never becomes ready alive

let terms = 0;
process.on("SIGTERM", () => {
  if (engine.ignoresSigterm) return;
  terms++;
  if (engine.isSilentAtSigterm) {
    if (terms >= 3) process.exit(0);
    return engine.fallSilent();
  }
  if (options.dialect === "llama-server" && engine.state().running > 0 && terms === 1) return;
  void engine[Symbol.asyncDispose]().then(() => process.exit(terms > 1 ? 1 : 0));
});
