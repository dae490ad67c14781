/** Lets clients stream from a cluster with the model `sim`, and compares their answers with the bill at the end. */
import { setTimeout as sleep } from "node:timers/promises";
import { until, type Cluster } from "../cluster/cluster.ts";
import { askStream, type Answer } from "../cluster/api-client.ts";
import { readSamples } from "../cluster/metrics-text.ts";
import { dumpUsage } from "../cluster/usage-dump.ts";

/** Each client has its own account and stays below the limits of its package. */
export const clients = 6;
const text = "sim:tokens=60,itl=20 go on";
const gauges = [
  "weiche_agent_outbox_records",
  "weiche_router_parallel_requests",
  "weiche_agent_running_requests",
  "weiche_agent_waiting_requests",
];

interface Bill {
  /** Ids of requests that were billed twice, with wrong counts, or without a whole answer. */
  readonly wrong: readonly string[];
  /** Ids of requests with a whole answer that are neither billed nor void. */
  readonly lost: readonly string[];
  /**
   * Number of void whole answers. A router declares an answer void if it ends or freezes between the answer's last
   * piece and its END.
   */
  readonly free: number;
}

export class BilledLoad {
  readonly #cluster: Cluster;
  readonly #seen: Answer[] = [];
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

  /** Number of whole answers so far. */
  get whole(): number {
    return this.#seen.filter(({ ending }) => ending === "whole").length;
  }

  /** Resolves when clients get whole answers again. */
  async wholeAgain(): Promise<void> {
    const before = this.whole;
    await until("whole answers", () => this.whole >= before + 2 * clients, 60_000);
  }

  /**
   * Stops the clients and waits until nothing runs and all usage is committed. Compares the answers with the records.
   */
  async finish(): Promise<Bill> {
    this.#stopped = true;
    await this.#running;
    for (const gauge of gauges) await until(`${gauge} to be 0`, async () => (await this.#sum(gauge)) === 0, 60_000);
    const records = Map.groupBy(await dumpUsage(this.#cluster), ({ requestId }) => requestId);
    const answers = this.#seen.filter(({ ending }) => ending === "whole");
    const whole = new Map(answers.map(({ id, usage }) => [id!, usage!.completion_tokens]));
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

  /** Adds up the samples of the router and all agents. */
  async #sum(name: string): Promise<number> {
    const samples = await Promise.all([this.#cluster.router, ...this.#cluster.agents.values()].map(readSamples));
    const own = samples.flatMap((each) => [...each]).filter(([series]) => series.startsWith(`${name}{`));
    return own.reduce((sum, [, value]) => sum + value, 0);
  }
}
