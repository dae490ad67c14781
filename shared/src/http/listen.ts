import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { StartError } from "../files/start-error.ts";

/** The address of a server. Port 0 means any free port. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** The setting or variable that contains the address, for error messages. */
  readonly setting?: string;
}

/** Reads `host:port` or `[v6]:port`. Throws `StartError`, in which `what` names the setting. */
export function parseListen(text: string, what: string): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65_535) throw new StartError(`${what}: "${text}" is not host:port`);
  return { host: match[1] ?? match[2]!, port };
}

/** Like `parseListen`, for a server of this program. If the server cannot listen, the error names `setting`, too. */
export function parseOwnListen(text: string, setting: string): ListenAddress {
  return { ...parseListen(text, setting), setting };
}

export function formatListen({ host, port }: ListenAddress): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Returns the lowest port that every user may use. */
export function firstOpenPort(): number {
  try {
    return Number(readFileSync("/proc/sys/net/ipv4/ip_unprivileged_port_start", "utf8"));
  } catch {
    return 1024; // not Linux
  }
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}
