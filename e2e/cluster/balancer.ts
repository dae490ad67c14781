/** Starts a real HAProxy in front of routers with deploy/haproxy.cfg, in which their addresses replace the example's. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { freePort } from "@weiche/node-agent/src/engines/launchers/loopback-ports.ts";
import { until, type RunningProgram } from "./cluster.ts";

export const balancerFile = join(import.meta.dirname, "../../deploy/haproxy.cfg");

interface Balancer extends AsyncDisposable {
  /** Ends with `/v1`. */
  readonly baseUrl: string;
}

/** Starts HAProxy. `checkMs`: the interval of readiness checks. Defaults to the file's. */
export async function startBalancer(
  routers: readonly RunningProgram[],
  folder: string,
  checkMs?: number,
): Promise<Balancer> {
  const port = await freePort();
  const file = join(folder, "haproxy.cfg");
  writeFileSync(file, configured(readFileSync(balancerFile, "utf8"), routers, port, checkMs));
  const child = spawn("haproxy", ["-db", "-f", file], { stdio: "ignore" });
  const exited = once(child, "exit");
  await until("haproxy to listen", () => isListening(port));
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

function configured(
  text: string,
  routers: readonly RunningProgram[],
  port: number,
  checkMs: number | undefined,
): string {
  const servers = (listener: string) =>
    routers.map(({ listen }, index) => {
      const check = listen["ops"]!.split(":")[1];
      return `  server router${index + 1} ${listen[listener]} port ${check}`;
    });
  const lines = text.split("\n").flatMap((line) => {
    if (/^ {2}(log |user |group |maxconn )/.test(line) || line.startsWith("  server router2 ")) return [];
    if (line.startsWith("  bind ")) return [`  bind 127.0.0.1:${port}`];
    if (line.startsWith("  server router1 ")) return servers(line.endsWith(":8081") ? "portal" : "api");
    return [checkMs === undefined ? line : line.replace("inter 1s", `inter ${checkMs}ms`)];
  });
  return lines.join("\n");
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const told = (is: boolean) => () => {
      socket.destroy();
      resolve(is);
    };
    socket.on("connect", told(true)).on("error", told(false));
  });
}
