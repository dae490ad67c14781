/**
 * Runs several router processes on one database. Nodes know only the first router and learn the others from it. Unless a
 * test names a database, this process runs an embedded server in the directory in which the first router would have it.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Cluster, routerEnvironment, RunningProgram, type ClusterOptions } from "./cluster.ts";
import { weiche } from "./commands.ts";
import { startSharedDatabase } from "./shared-database.ts";

export class RouterGroup implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly #others: RunningProgram[] = [];
  readonly #main: string;
  readonly #opened: AsyncDisposableStack;

  private constructor(cluster: Cluster, main: string, opened: AsyncDisposableStack) {
    this.cluster = cluster;
    this.#main = main;
    this.#opened = opened;
  }

  /** Starts the group. `code`: the checkout of all routers but the first. Defaults to this one. */
  static async start(
    count: number,
    options: ClusterOptions,
    { code, databaseUrl }: { readonly code?: string; readonly databaseUrl?: string } = {},
  ): Promise<RouterGroup> {
    await using opened = new AsyncDisposableStack();
    const prepare = async (dataDir: string) => {
      await options.prepare?.(dataDir);
      if (databaseUrl !== undefined) return { database: { url: databaseUrl } };
      const stateDir = join(dataDir, "router");
      mkdirSync(stateDir, { recursive: true });
      return { database: { url: opened.use(await startSharedDatabase(stateDir)).url } };
    };
    const { router = {} } = options as { readonly router?: { readonly limits?: object } };
    // Several routers refuse to limit accounts alone unless `store: memory` is set.
    const limits = { perIpPerSecond: 0, store: "memory", ...router.limits };
    const cluster = opened.use(await Cluster.start({ ...options, router: { ...router, limits }, prepare }));
    const group = new RouterGroup(
      cluster,
      join(code ?? join(import.meta.dirname, "../.."), "router/src/main.ts"),
      opened.move(),
    );
    try {
      for (let index = 1; index < count; index++) await group.startAt(index);
      await group.linked();
      return group;
    } catch (error) {
      await group[Symbol.asyncDispose]();
      throw error;
    }
  }

  get routers(): readonly RunningProgram[] {
    return [this.cluster.router, ...this.#others];
  }

  /** Starts a router. A restart uses the same ports. */
  async startAt(index: number): Promise<void> {
    if (index === 0) return this.cluster.startRouter();
    const dataDir = this.dataDir(index);
    mkdirSync(dataDir, { recursive: true });
    const env = routerEnvironment(dataDir, this.#others[index - 1]?.listen);
    const config = { WEICHE_CONFIG: join(this.cluster.directory, "router.yaml") };
    this.#others[index - 1] = await RunningProgram.start(this.#main, [], { ...env, ...config });
  }

  dataDir(index: number): string {
    return join(this.cluster.directory, index === 0 ? "data" : `data-${index}`);
  }

  /** Runs the command `weiche` against one of the routers. */
  weiche(index: number, ...args: readonly string[]): Promise<unknown> {
    return weiche(this.dataDir(index), args);
  }

  /** Resolves when every router reaches every node. */
  async linked(): Promise<void> {
    for (const index of this.routers.keys()) await this.cluster.linked((...args) => this.weiche(index, ...args));
  }

  async isReady(index: number): Promise<boolean> {
    const answer = await fetch(`http://${this.routers[index]!.listen["ops"]}/readyz`).catch(() => undefined);
    return answer?.status === 200;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#others.map((router) => router.stop()));
    await this.#opened.disposeAsync();
  }
}
