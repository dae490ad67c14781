/** `npm start -- --gguf FILE`: adds the user's model to the demonstration's chat slot. */
import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse, stringify } from "yaml";
import { StartError, unreadable } from "@weiche/shared/files/start-error.ts";
import { GgufError, ggufBytesNeeded } from "./gguf-file.ts";

interface AgentFile {
  slots: { engines: { model: string; directory?: string; command: string[]; [key: string]: unknown }[] }[];
}

/** Context window of the user's model in the demonstration. The engine reduces it to the model's trained length. */
const contextTokens = 8192;

/** Writes copies of the demonstration's files into the data directory and returns their paths and the model's id. */
export function writeGgufConfig(file: string, dataDir: string): { router: string; agent: string; model: string } {
  requireGguf(file);
  const model = basename(file)
    .replace(/\.gguf$/i, "")
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, 64);
  const here = import.meta.dirname;
  const folder = join(dataDir, "gguf");
  mkdirSync(folder, { recursive: true, mode: 0o700 });

  const agent = parse(readFileSync(join(here, "agent.yaml"), "utf8")) as AgentFile;
  const main = "../../node-agent/embedded-engine/src/main.ts";
  agent.slots[0]!.engines.unshift({
    model,
    dialect: "openai",
    maxConcurrent: 4,
    command: ["node", main, "--model", file, "--alias", model, "--context", String(contextTokens), "--port", "{port}"],
  });
  for (const slot of agent.slots) for (const engine of slot.engines) engine.directory = here;
  writeFileSync(join(folder, "agent.yaml"), stringify(agent));

  const catalogue = parse(readFileSync(join(here, "catalogue.yaml"), "utf8")) as {
    models: { id: string; contextTokens: number }[];
  };
  catalogue.models.unshift({ ...catalogue.models[0]!, id: model, contextTokens });
  writeFileSync(join(folder, "catalogue.yaml"), stringify(catalogue));
  writeFileSync(join(folder, "router.yaml"), readFileSync(join(here, "router.yaml"), "utf8"));
  return { router: join(folder, "router.yaml"), agent: join(folder, "agent.yaml"), model };
}

/** Checks that the file is complete. An engine would notice only at the first request. */
function requireGguf(file: string): void {
  try {
    using opened = openFile(file);
    const needed = ggufBytesNeeded(opened.descriptor);
    const { size } = fstatSync(opened.descriptor);
    if (size < needed) throw new GgufError(`is cut off: it has ${size} of its ${needed} bytes`);
  } catch (error) {
    if (error instanceof GgufError) throw new StartError(`${file} ${error.message}`);
    throw unreadable(file, error);
  }
}

function openFile(file: string): Disposable & { readonly descriptor: number } {
  const descriptor = openSync(file, "r");
  return { descriptor, [Symbol.dispose]: () => closeSync(descriptor) };
}
