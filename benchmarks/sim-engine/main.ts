/**
 * `node benchmarks/sim-engine/main.ts --port N --model NAME`: a simulated engine as a process of its own.
 * SIGTERM ends it as the dialect does: vLLM aborts what runs and goes; llama-server waits for a second one while it is busy.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { startSimEngine, type SimDialectName, type SimEngineOptions } from "./sim-engine.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string" },
    uds: { type: "string" },
    model: { type: "string", default: "sim" },
    dialect: { type: "string", default: "vllm" },
    "start-ms": { type: "string" },
    "ttft-ms": { type: "string" },
    "itl-ms": { type: "string" },
    tokens: { type: "string" },
    "reasoning-tokens": { type: "string" },
    context: { type: "string" },
    "max-running": { type: "string" },
    "sleep-ms": { type: "string" },
    "wake-ms": { type: "string" },
    dimensions: { type: "string" },
    journal: { type: "string" },
    fault: { type: "string", multiple: true },
    /** A file: it loads while that is there. */
    "load-while": { type: "string" },
    /** A file of faults, one a line, read at the start; it need not exist. */
    "fault-file": { type: "string" },
  },
});

const journal = values.journal;
const faultFile = values["fault-file"] ?? "";
const faultsOfFile = existsSync(faultFile) ? readFileSync(faultFile, "utf8").split("\n").filter(Boolean) : [];
const options: SimEngineOptions = {
  model: values.model,
  dialect: values.dialect as SimDialectName,
  ...(values.uds === undefined ? {} : { socketPath: values.uds }),
  ...numbers({
    port: values.port,
    startMs: values["start-ms"],
    ttftMs: values["ttft-ms"],
    itlMs: values["itl-ms"],
    tokens: values.tokens,
    reasoningTokens: values["reasoning-tokens"],
    contextTokens: values.context,
    maxRunning: values["max-running"],
    sleepMs: values["sleep-ms"],
    wakeMs: values["wake-ms"],
    embeddingDimensions: values.dimensions,
    stopStringsMax: process.env["VLLM_MAX_STOP_STRINGS"],
  }),
  isHeld: () => values["load-while"] !== undefined && existsSync(values["load-while"]),
  faults: [...(values.fault ?? []), ...faultsOfFile],
  ...(journal === undefined
    ? {}
    : {
        journal: (line) =>
          appendFileSync(journal, `${JSON.stringify({ ...line, model: values.model, pid: process.pid })}\n`),
      }),
  savesPrompts: process.env["LLAMA_ARG_CACHE_RAM"] !== "0",
  print: (line) => console.error(line),
  onCrash: (exitCode) => process.exit(exitCode),
};

const engine = await startSimEngine(options);
console.log(`simulated ${options.dialect} engine, pid ${process.pid}, model ${options.model}, ${engine.origin}`);
void engine.ready.then(() => console.log("Application startup complete."));

setInterval(() => {}, 60_000); // lives on also when it waits for nothing, as one does that never gets ready

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

function numbers<T extends Record<string, string | undefined>>(given: T): { [K in keyof T]?: number } {
  const entries = Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(entries.map(([name, text]) => [name, Number(text)])) as { [K in keyof T]?: number };
}
