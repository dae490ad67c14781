/** llama-swap, if it is installed, as a router to one running model. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { ofSystem, peer } from "./child.ts";

export const llamaSwap = peer({
  ...{
    name: "llama-swap",
    what: "model switcher in Go, the model active already: finds the engine of a model and passes bytes on; no accounts, limits or bills",
  },
  ...ofSystem("llama-swap", "--version"),
  install: "https://github.com/mostlygeek/llama-swap/releases",
  configure(port, { port: engine, model, directory }) {
    const file = join(directory, "llama-swap.yaml");
    const proxy = `http://127.0.0.1:${engine}`;
    // llama-swap must start a process for each model. The engine already runs, so it starts `sleep`.
    const idle = { cmd: "sleep 1000000", checkEndpoint: "/health" };
    // The default limit is ten simultaneous requests.
    const entry = { ...idle, proxy, concurrencyLimit: 100_000 };
    writeFileSync(file, stringify({ models: { [model]: entry } }));
    return ["--config", file, "--listen", `127.0.0.1:${port}`];
  },
});
