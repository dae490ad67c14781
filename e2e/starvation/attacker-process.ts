/**
 * Runs an attack in its own process from its own network address, so that attacks do not share the limits of an
 * address.
 */
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

/** `given` is the result of `prepare`. */
export function targetOf(cluster: Cluster, attack: Attack, given: Target["given"]): Target {
  const port = (listener: "api" | "portal") => Number(portOf(cluster, listener));
  const localAddress = `127.0.0.${2 + attacks.indexOf(attack)}`;
  return { apiPort: port("api"), portalPort: port("portal"), localAddress, given };
}

/**
 * The attacker's share of the processors: only idle time, or low priority. Other work beside the test leaves no idle
 * time.
 */
export type Share = "idle" | "low";

/** Resolves once the attack has begun. */
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
      if (done) throw new Error(`the attacker ended early: ${name}`);
      return JSON.parse(value) as Tally;
    },
  };
}
