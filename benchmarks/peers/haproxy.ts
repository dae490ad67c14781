/** haproxy as a reverse proxy: one thread, kept connections to the engine. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "@weiche/node-agent/src/engines/launchers/loopback-ports.ts";
import { findProgram, startChild, versionOf } from "./child.ts";
import type { Program } from "./program.ts";

export const haproxy: Program = {
  name: "haproxy",
  what: "load balancer in C, one thread",
  missing: () => (findProgram("haproxy") ? undefined : "not installed (apt-get install haproxy)"),
  async start({ port: engine, directory }) {
    const program = findProgram("haproxy")!;
    const port = await freePort();
    const file = join(directory, "haproxy.cfg");
    writeFileSync(file, configuration(port, engine));
    const child = await startChild(program, ["-db", "-f", file], port, directory);
    return {
      ...{ port, processes: { proxy: child.pid }, version: versionOf(program, "-v") },
      [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
    };
  },
};

/**
 * Each stream takes two connections. `no option http-buffer-request` is the default: bodies flow. Without
 * `http-no-delay` chunks wait for one another for 200 ms.
 */
function configuration(port: number, engine: number): string {
  return `global
  nbthread 1
  maxconn 9000
defaults
  mode http
  option http-keep-alive
  option http-no-delay
  http-reuse always
  timeout connect 5s
  timeout client 3600s
  timeout server 3600s
frontend in
  bind 127.0.0.1:${port} backlog 4096
  default_backend engine
backend engine
  server engine 127.0.0.1:${engine} pool-max-conn 1024
`;
}
