/** The ordinary ways to write a proxy in Node.js, and the bare hops that router and agent are measured against. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "@weiche/node-agent/src/engines/launchers/loopback-ports.ts";
import { packageVersion, startChild } from "./child.ts";
import type { Program, RunningProgram, Upstream } from "./program.ts";
import { makeCertificates } from "./weiche.ts";

const root = join(import.meta.dirname, "../..");
const notInstalled = "not installed (npm ci --prefix benchmarks/peers)";

function serverFile(file: string): string {
  return join(root, file);
}

export const undici: Program = {
  name: "undici",
  what: "`node:http` with undici's `dispatch`: the least a Node.js proxy can be",
  missing: () => undefined,
  start: (upstream) => startServer("benchmarks/peers/servers/undici.ts", upstream, "undici"),
};

export const replyFrom: Program = {
  name: "reply-from",
  what: "Fastify with `@fastify/reply-from`: the ordinary Node.js way",
  missing: () => (existsSync(join(import.meta.dirname, "node_modules/@fastify/reply-from")) ? undefined : notInstalled),
  start: (upstream) => startServer("benchmarks/peers/servers/reply-from.mjs", upstream, "@fastify/reply-from"),
};

/** Two processes, `front` and `back`, with the given leg between them. */
export function hops(leg: "h2" | "h2-tls" | "h1-tls"): Program {
  const legs = { h2: "HTTP/2", "h2-tls": "HTTP/2 and TLS", "h1-tls": "HTTP/1.1 and TLS" };
  return {
    name: `hops-${leg}`,
    what: `two bare Node.js proxies with ${legs[leg]} between them: what router and agent would cost without their work`,
    scenarios: ["json-64", "stream-64x10", "stream-256x20", "first-byte"],
    missing: () => undefined,
    start: (upstream) => startHops(leg, upstream),
  };
}

async function startServer(file: string, { port: engine, directory }: Upstream, name: string): Promise<RunningProgram> {
  const port = await freePort();
  const child = await startChild(process.execPath, [serverFile(file), String(port), String(engine)], port, directory);
  const isInstalled = existsSync(join(import.meta.dirname, "node_modules", name));
  return {
    ...{ port, processes: { proxy: child.pid }, version: isInstalled ? packageVersion(name) : "as the project's" },
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

async function startHops(leg: string, { port: engine, directory }: Upstream): Promise<RunningProgram> {
  await using opened = new AsyncDisposableStack();
  const program = serverFile("benchmarks/peers/servers/hops.ts");
  const files = leg === "h2" ? undefined : makeCertificates(join(directory, `hops-${leg}`), [])("router-localhost");
  const [port, next] = [await freePort(), await freePort()];
  const start = async (...args: string[]) =>
    opened.use(await startChild(process.execPath, [program, ...args], Number(args[1]), directory));
  const back = await start("back", String(next), String(engine), leg, ...(files ? [files.cert, files.key] : []));
  const front = await start("front", String(port), String(next), leg, ...(files ? [files.ca] : []));
  const closing = opened.move();
  return {
    ...{ port, processes: { front: front.pid, back: back.pid }, version: process.version },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}
