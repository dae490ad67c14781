/** The usual ways to write a proxy in Node.js, and the bare hops to which router and agent are compared. */
import { join } from "node:path";
import { freePort } from "@weiche/node-agent/src/engines/launchers/loopback-ports.ts";
import { benchmarksFile, ofPackage, peer, startChild } from "./child.ts";
import type { Program, RunningProgram, Upstream } from "./program.ts";
import { makeCertificates } from "./weiche.ts";

const ownUndici = ofPackage("undici", "peers/servers/undici.ts");
export const undici = peer({
  ...{ name: "undici", what: "`node:http` with undici's `dispatch`: the least a Node.js proxy can be" },
  command: () => [process.execPath, benchmarksFile("peers/servers/undici.ts")],
  version: () => (ownUndici.command() ? ownUndici.version() : "as the project's"),
  install: "",
  configure: (port, { port: engine }) => [String(port), String(engine)],
});

export const replyFrom = peer({
  ...{ name: "reply-from", what: "Fastify with `@fastify/reply-from`: the ordinary Node.js way" },
  ...ofPackage("@fastify/reply-from", "peers/servers/reply-from.mjs"),
  install: "npm ci --prefix benchmarks/peers",
  configure: (port, { port: engine }) => [String(port), String(engine)],
});

/** Returns a program of two processes, `front` and `back`, with this leg between them. */
export function hops(leg: "h2" | "h2-tls" | "h1-tls"): Program {
  const legs = { h2: "HTTP/2", "h2-tls": "HTTP/2 and TLS", "h1-tls": "HTTP/1.1 and TLS" };
  return {
    name: `hops-${leg}`,
    what: `two bare Node.js proxies with ${legs[leg]} between them: the cost of router and agent without their own work`,
    scenarios: ["json-64", "stream-64x10", "stream-256x20", "first-byte"],
    missing: () => undefined,
    start: (upstream) => startHops(leg, upstream),
  };
}

async function startHops(leg: string, { port: engine, directory }: Upstream): Promise<RunningProgram> {
  await using opened = new AsyncDisposableStack();
  const files = leg === "h2" ? undefined : makeCertificates(join(directory, `hops-${leg}`), [])("router-localhost");
  const [port, next] = [await freePort(), await freePort()];
  const start = async (role: string, own: number, ...args: string[]) => {
    const all = [benchmarksFile("peers/servers/hops.ts"), role, String(own), ...args];
    return opened.use(await startChild(process.execPath, all, own, directory));
  };
  const back = await start("back", next, String(engine), leg, ...(files ? [files.cert, files.key] : []));
  const front = await start("front", port, String(next), leg, ...(files ? [files.ca] : []));
  const closing = opened.move();
  return {
    ...{ port, processes: { front: front.pid, back: back.pid }, version: process.version },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}
