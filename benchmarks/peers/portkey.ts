/**
 * The open gateway of Portkey with the engine as its OpenAI-style provider. Its dependency `@hono/node-server` is pinned to
 * 1.13, because later versions answer every stream with 500 ("Headers: immutable") on this project's Node.js.
 */
import { ofPackage, peer } from "./child.ts";

export const portkey = peer({
  ...{
    name: "portkey",
    what: "AI gateway on Node.js (Hono), in its default configuration: translates between providers and retries; does not check keys of its own, limits nothing and records nothing",
  },
  ...ofPackage("@portkey-ai/gateway", "peers/node_modules/@portkey-ai/gateway/build/start-server.js"),
  install: "npm ci --prefix benchmarks/peers",
  headers: ({ port }) =>
    `x-portkey-provider: openai\r\nx-portkey-custom-host: http://127.0.0.1:${port}/v1\r\nauthorization: Bearer any\r\n`,
  configure: (port) => [`--port=${port}`, "--headless"],
});
