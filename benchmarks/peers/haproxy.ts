/** haproxy as a reverse proxy with one thread and kept connections to the engine. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ofSystem, peer } from "./child.ts";

export const haproxy = peer({
  ...{ name: "haproxy", what: "load balancer in C, one thread: passes bytes on and knows no keys, limits or tokens" },
  ...ofSystem("haproxy", "-v"),
  install: "apt-get install haproxy",
  configure(port, { port: engine, directory }) {
    const file = join(directory, "haproxy.cfg");
    writeFileSync(file, configuration(port, engine));
    return ["-db", "-f", file];
  },
});

/**
 * Returns the configuration. Each stream uses two connections. Request bodies are not buffered by default. Without
 * `http-no-delay`, haproxy delays chunks for up to 200 ms.
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
