/** Kills a part of a cluster at the moment a request reaches a named point, and restarts the part. */
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Received } from "../cluster/billing-check.ts";
import { isAlive, reachableDirectory, until } from "../cluster/cluster.ts";
import { postmasterOf } from "../cluster/usage-dump.ts";
import { KillCluster } from "./kill-cluster.ts";
import { killPointNames, planVariable, victims, type KillPlan, type KillPoint, type Victim } from "./kill-points.ts";

type Kind = Received["kind"];

export interface Killing {
  readonly point: KillPoint;
  readonly victim: Victim;
  readonly kind: Kind;
}

/** All combinations of points, victims and requests. Embeddings have no points within a stream. */
export function allKillings(): Killing[] {
  return killPointNames.flatMap((point) =>
    victims.flatMap((victim) =>
      (["stream", "json", "embeddings"] as const)
        .filter((kind) => kind !== "embeddings" || (point !== "mid-stream" && point !== "last token before usage"))
        .map((kind) => ({ point, victim, kind })),
    ),
  );
}

export class PointKiller implements AsyncDisposable {
  readonly system: KillCluster;
  readonly #plan: string;
  readonly #directory: string;

  private constructor(system: KillCluster, directory: string) {
    this.system = system;
    this.#directory = directory;
    this.#plan = join(directory, "plan");
  }

  static async start(nodes: number): Promise<PointKiller> {
    const directory = reachableDirectory("weiche-kill-points-");
    const preload = join(import.meta.dirname, "kill-point-preload.ts");
    const environment = { NODE_OPTIONS: `--import=${preload}`, [planVariable]: join(directory, "plan") };
    return new PointKiller(await KillCluster.start({ nodes, accounts: 2, environment }), directory);
  }

  /** Resolves when the killed part runs again and the request has ended in any way. */
  async kill({ point, victim, kind }: Killing): Promise<void> {
    const pids = this.#pidsOf(victim, kind);
    const plan: KillPlan = { point, pids };
    rmSync(`${this.#plan}.done`, { force: true });
    await this.system.outage(`${victim} killed`, async () => {
      writeFileSync(`${this.#plan}.new`, JSON.stringify(plan));
      renameSync(`${this.#plan}.new`, this.#plan);
      const asked = this.system.ask({ kind });
      await until(`"${point}" to be reached`, () => existsSync(`${this.#plan}.done`), 15_000);
      const killed = () => Object.entries(pids).find(([, pid]) => !isAlive(pid));
      await until(`the ${victim} to be dead`, () => killed() !== undefined);
      await this.#restart(victim, ...killed()!, kind);
      await asked;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.system[Symbol.asyncDispose]();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #pidsOf(victim: Victim, kind: Kind): Readonly<Record<string, number>> {
    const { cluster, nodes } = this.system;
    switch (victim) {
      case "router":
        return { "*": cluster.router.pid };
      case "database":
        return { "*": postmasterOf(cluster).pid };
      case "agent":
        return Object.fromEntries(nodes.map((node) => [node, cluster.agents.get(node)!.pid]));
      case "engine":
        return Object.fromEntries(
          nodes.flatMap((node) => {
            const { pid } = this.system.engine(node, kind);
            return pid === undefined ? [] : [[node, pid]];
          }),
        );
    }
  }

  async #restart(victim: Victim, node: string, pid: number, kind: Kind): Promise<void> {
    const { cluster } = this.system;
    switch (victim) {
      case "router":
        await cluster.router.exited();
        return cluster.startRouter();
      case "agent":
        await cluster.agents.get(node)!.exited();
        return this.system.startAgent(node);
      case "engine":
        await until("its agent to notice", () => this.system.engine(node, kind).pid !== pid);
        return this.system.warm(node);
      case "database":
        return this.system.databaseBack();
    }
  }
}
