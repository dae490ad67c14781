/**
 * The open gateway of Portkey, with the engine as its OpenAI-style provider. Its dependency `@hono/node-server` is pinned
 * to 1.13: with later ones every stream is answered with 500 ("Headers: immutable") on the Node.js of this project.
 */
import { join } from "node:path";
import { existsSync } from "node:fs";
import { freePort } from "@weiche/node-agent/src/engines/launchers/loopback-ports.ts";
import { packageVersion, startChild } from "./child.ts";
import type { Program } from "./program.ts";

const entry = join(import.meta.dirname, "node_modules/@portkey-ai/gateway/build/start-server.js");

export const portkey: Program = {
  name: "portkey",
  what: "AI gateway on Node.js (Hono), as it comes",
  missing: () => (existsSync(entry) ? undefined : "not installed (npm ci --prefix benchmarks/peers)"),
  async start({ port: engine, directory }) {
    const port = await freePort();
    const child = await startChild(process.execPath, [entry, `--port=${port}`, "--headless"], port, directory);
    return {
      ...{ port, processes: { gateway: child.pid }, version: packageVersion("@portkey-ai/gateway") },
      headers: `x-portkey-provider: openai\r\nx-portkey-custom-host: http://127.0.0.1:${engine}/v1\r\nauthorization: Bearer any\r\n`,
      [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
    };
  },
};
