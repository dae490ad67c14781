/** An attack in a process of its own, from a network address of its own, so that none uses up the limit of another one. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Cluster } from "../cluster/cluster.ts";
import type { Attack, Tally, Target } from "./attack.ts";
import { attacks } from "./attacks.ts";
import { portOf } from "./ports.ts";

const file = join(import.meta.dirname, "attacker.ts");

interface Attacker {
  stop(): Promise<Tally>;
}

/** `given`: what `prepare` has returned. */
export function targetOf(cluster: Cluster, attack: Attack, given: Target["given"]): Target {
  const port = (listener: "api" | "portal") => Number(portOf(cluster, listener));
  const localAddress = `127.0.0.${2 + attacks.indexOf(attack)}`;
  return { apiPort: port("api"), portalPort: port("portal"), localAddress, given };
}

/** How much of the processors an attacker takes: what nobody else wants, or little. Work beside the test starves the first. */
export type Share = "idle" | "low";

/** Resolves once it has begun. */
export async function startAttacker({ name }: Attack, target: Target, share: Share = "low"): Promise<Attacker> {
  const args = [file, name, JSON.stringify(target), share];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  if ((await lines.next()).done) throw new Error(`the attacker did not start: ${name}`);
  return {
    async stop() {
      child.stdin.end();
      const { value, done } = await lines.next();
      await exited;
      if (done) throw new Error(`the attacker broke off: ${name}`);
      return JSON.parse(value) as Tally;
    },
  };
}
