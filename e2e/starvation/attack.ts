/** Defines an attack: its preparation, its actions, and how its counts show that the guard works. */
import { request } from "node:http";
import type { Cluster } from "../cluster/cluster.ts";

/** The attacker's knowledge: addresses, and the result of `prepare`. Passed to its process as JSON. */
export interface Target {
  readonly apiPort: number;
  readonly portalPort: number;
  /** The network address of the attack. The good streams come from another address. */
  readonly localAddress: string;
  readonly given: Readonly<Record<string, string>>;
}

/** The attacker's counts, such as connections and answers. */
export type Tally = Record<string, number>;

export interface Attack {
  readonly name: string;
  /** Creates accounts, keys and people before the attack. */
  readonly prepare?: (cluster: Cluster) => Promise<Record<string, string>>;
  /** Runs in a separate process until the signal aborts. */
  readonly run: (target: Target, signal: AbortSignal) => Promise<Tally>;
  /** Returns what the counts do not show yet. On a busy machine this takes longer, and the arena attacks again. */
  readonly missing: (seen: AttackSeen) => string[];
  /** Returns the faults in the counts, or none if the guard works. Speeds are not checked. */
  readonly mistakes?: (seen: AttackSeen) => string[];
}

interface AttackSeen {
  readonly tally: Tally;
  /** The growth of a sample of the router's `/metrics` during the attack. 0 if the sample does not exist. */
  readonly grown: (series: string) => number;
}

/** Posts JSON from `localAddress` on a new connection. Resolves with the status. */
export function postFrom(
  localAddress: string,
  port: number,
  path: string,
  body: string,
  { headers, signal }: { readonly headers: Readonly<Record<string, string>>; readonly signal?: AbortSignal },
): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path, method: "POST", localAddress, agent: false as const, signal };
    const all = { ...headers, "content-type": "application/json" };
    const asked = request({ ...options, headers: all }, (answer) => {
      answer.resume().on("error", reject);
      answer.on("end", () => resolve(answer.statusCode!));
    });
    asked.on("error", reject).end(body);
  });
}
