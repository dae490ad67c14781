/** Streams that go on and on in a cluster with the model `sim`, and in the end the comparison with what was billed. */
import { setTimeout as sleep } from "node:timers/promises";
import { until, type Cluster } from "./cluster.ts";
import { askStream, type Seen } from "./stream-client.ts";
import { dumpUsage } from "./usage-dump.ts";

/** Each has a customer of its own, and stays below the limits of the package. */
export const clients = 6;
const text = "sim:tokens=60,itl=20 go on";
const gauges = [
  "weiche_agent_outbox_records",
  "weiche_router_parallel_requests",
  "weiche_agent_running_requests",
  "weiche_agent_waiting_requests",
];

/** Request ids, but for `free`. */
export interface Bill {
  /** Billed twice, or though the client did not get it whole, or not as it got it. */
  readonly wrong: readonly string[];
  /** Whole, and neither billed nor declared void. */
  readonly lost: readonly string[];
  /**
   * How many are whole at their clients and yet declared void: a router that ends, or stands still until its nodes give it
   * up, between the last piece of an answer and its node's closing word errs on that side.
   */
  readonly free: number;
}

export class BilledLoad {
  readonly #cluster: Cluster;
  readonly #seen: Seen[] = [];
  #stopped = false;
  #running: Promise<unknown> = Promise.resolve();

  private constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  static async start(cluster: Cluster): Promise<BilledLoad> {
    const load = new BilledLoad(cluster);
    const keys: string[] = [];
    for (let number = 0; number < clients; number++) keys.push((await cluster.account(`Customer-${number}`)).apiKey);
    load.#running = Promise.all(keys.map((apiKey) => load.#askAgainAndAgain(apiKey)));
    await load.wholeAgain();
    return load;
  }

  /** How many answers their clients got whole. */
  get whole(): number {
    return this.#seen.filter(({ ending }) => ending === "whole").length;
  }

  /** Resolves when clients get whole answers. */
  async wholeAgain(): Promise<void> {
    const before = this.whole;
    await until("answers to be whole", () => this.whole >= before + 2 * clients, 60_000);
  }

  /** Ends it, waits until nothing runs and all usage is committed, and compares what clients got with what was billed. */
  async finish(): Promise<Bill> {
    this.#stopped = true;
    await this.#running;
    for (const gauge of gauges) await until(`${gauge} to be 0`, async () => (await this.#sum(gauge)) === 0, 60_000);
    const records = Map.groupBy(await dumpUsage(this.#cluster), ({ requestId }) => requestId);
    const whole = new Map(
      this.#seen.flatMap(({ id, ending, completionTokens }) => (ending === "whole" ? [[id!, completionTokens]] : [])),
    );
    const paid = (id: string) =>
      (records.get(id) ?? []).flatMap(({ completionTokens: tokens }) => (tokens > 0 ? [tokens] : []));
    const unpaid = [...whole.keys()].filter((id) => paid(id).length === 0);
    const isVoid = (id: string) => records.get(id)?.some(({ outcome }) => outcome === "void") ?? false;
    return {
      wrong: [...records.keys()].filter((id) => paid(id).length > 1 || paid(id).some((sum) => sum !== whole.get(id))),
      lost: unpaid.filter((id) => !isVoid(id)),
      free: unpaid.filter(isVoid).length,
    };
  }

  async #askAgainAndAgain(apiKey: string): Promise<void> {
    while (!this.#stopped) {
      const one = await askStream({ baseUrl: this.#cluster.baseUrl, apiKey, model: "sim", text });
      this.#seen.push(one);
      if (one.ending !== "whole") await sleep(500);
    }
  }

  /** Of the router's and all agents' metrics. */
  async #sum(name: string): Promise<number> {
    const texts = [this.#cluster.router, ...this.#cluster.agents.values()].map(async ({ listen }) =>
      (await fetch(`http://${listen["ops"]}/metrics`)).text(),
    );
    const lines = (await Promise.all(texts)).join("\n").split("\n");
    return lines.reduce((sum, line) => sum + (line.startsWith(name) ? Number(line.split(" ").at(-1)) : 0), 0);
  }
}
