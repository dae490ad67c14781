/** The proxy of LiteLLM, where it is installed: one worker, no database, the engine as its OpenAI-style provider. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "@weiche/node-agent/src/engines/launchers/loopback-ports.ts";
import { findProgram, startChild, versionOf } from "./child.ts";
import type { Program } from "./program.ts";

export const litellm: Program = {
  name: "litellm",
  what: "AI gateway on Python, one worker, no database",
  missing: () => (findProgram("litellm") ? undefined : "not installed (pip install 'litellm[proxy]')"),
  async start({ port: engine, model, directory }) {
    const program = findProgram("litellm")!;
    const port = await freePort();
    const file = join(directory, "litellm.yaml");
    writeFileSync(
      file,
      `model_list:
  - model_name: ${model}
    litellm_params: { model: openai/${model}, api_base: "http://127.0.0.1:${engine}/v1", api_key: any }
general_settings: { master_key: sk-any }
`,
    );
    const args = ["--config", file, "--host", "127.0.0.1", "--port", String(port), "--num_workers", "1"];
    const child = await startChild(program, args, port, directory);
    return {
      ...{ port, processes: { gateway: child.pid }, version: versionOf(program, "--version") },
      headers: "authorization: Bearer sk-any\r\n",
      [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
    };
  },
};
