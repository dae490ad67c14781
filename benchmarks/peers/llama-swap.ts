/** llama-swap, where it is installed, as a router to one model that runs already. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "@weiche/node-agent/src/engines/launchers/loopback-ports.ts";
import { findProgram, startChild, versionOf } from "./child.ts";
import type { Program } from "./program.ts";

export const llamaSwap: Program = {
  name: "llama-swap",
  what: "model switcher in Go, the model active already",
  missing: () =>
    findProgram("llama-swap") ? undefined : "not installed (https://github.com/mostlygeek/llama-swap/releases)",
  async start({ port: engine, model, directory }) {
    const program = findProgram("llama-swap")!;
    const port = await freePort();
    const file = join(directory, "llama-swap.yaml");
    // It wants a process of its own for each model; the engine it talks to is ours.
    const entry = `{ cmd: "sleep 1000000", proxy: "http://127.0.0.1:${engine}", checkEndpoint: /health }`;
    writeFileSync(file, `models:\n  ${model}: ${entry}\n`);
    const args = ["--config", file, "--listen", `127.0.0.1:${port}`];
    const child = await startChild(program, args, port, directory);
    return {
      ...{ port, processes: { proxy: child.pid }, version: versionOf(program, "--version") },
      [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
    };
  },
};
