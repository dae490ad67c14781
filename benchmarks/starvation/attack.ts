/** What a row of the campaign is: one attack, what it needs, and the guard that has to show. */
import type { Cluster } from "../cluster/cluster.ts";

/** What the attacker knows: addresses, and whatever `prepare` found out. Travels to its process as JSON. */
export interface Target {
  readonly apiPort: number;
  readonly portalPort: number;
  /** The network address that the attack comes from; the good streams come from another one. */
  readonly localAddress: string;
  readonly given: Readonly<Record<string, string>>;
}

/** What the attacker counted: connections, answers, whatever the row looks at. */
export type Tally = Record<string, number>;

export interface Attack {
  readonly name: string;
  /** Before the attack: accounts, keys and people that it needs. */
  readonly prepare?: (cluster: Cluster) => Promise<Record<string, string>>;
  /** Runs in a process of its own until the signal aborts. */
  readonly run: (target: Target, signal: AbortSignal) => Promise<Tally>;
  /** What is wrong with what was seen; an empty list if the guard works. No speeds: machines are busy. */
  readonly mistakes: (seen: AttackSeen) => string[];
}

export interface AttackSeen {
  readonly tally: Tally;
  /** By how much a sample of the router's `/metrics` grew during the attack; 0 if it is not there. */
  readonly grown: (series: string) => number;
}
