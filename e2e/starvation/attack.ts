/** An attack: what it prepares and does, and how to see that the guard against it works. */
import { request } from "node:http";
import type { Cluster } from "../cluster/cluster.ts";

/** The attacker's knowledge: addresses, and the result of `prepare`. Passed to its process as JSON. */
export interface Target {
  readonly apiPort: number;
  readonly portalPort: number;
  /** The network address that the attack comes from; the good streams come from another one. */
  readonly localAddress: string;
  readonly given: Readonly<Record<string, string>>;
}

/** The attacker's counts, such as connections and answers. */
export type Tally = Record<string, number>;

export interface Attack {
  readonly name: string;
  /** Makes accounts, keys and people before the attack. */
  readonly prepare?: (cluster: Cluster) => Promise<Record<string, string>>;
  /** Runs in a process of its own until the signal aborts. */
  readonly run: (target: Target, signal: AbortSignal) => Promise<Tally>;
  /** Returns the faults in the counts; none if the guard works. Times are not judged: machines are busy. */
  readonly mistakes: (seen: AttackSeen) => string[];
}

interface AttackSeen {
  readonly tally: Tally;
  /** The growth of a sample of the router's `/metrics` during the attack; 0 if the sample is not there. */
  readonly grown: (series: string) => number;
}

/** Posts JSON from `localAddress` on a connection of its own. Resolves to the status. */
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
