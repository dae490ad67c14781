/** Starts three routers that share the limits of accounts in a real store, and clients that hold requests open. */
import { until } from "../cluster/cluster.ts";
import { RouterGroup } from "../cluster/router-group.ts";
import { ValkeyServer } from "@weiche/router/test/limits/valkey-server.ts";
import { askStream, type Answer } from "../cluster/api-client.ts";
import { readSamples, seriesOf } from "../cluster/metrics-text.ts";
import { catalogueOf, simEngine } from "../cluster/sim-node.ts";

const terms = { validFrom: "2026-01-01T00:00:00+01:00", price: 1, credits: 1e12, support: false };

/** The packages of accounts, named by the limits that they test. */
const packages = [
  { name: "Both", terms: [{ ...terms, requestsPerMinute: 60, parallel: 10 }] },
  { name: "Parallel", terms: [{ ...terms, requestsPerMinute: 1_000_000, parallel: 10 }] },
  { name: "Minute", terms: [{ ...terms, requestsPerMinute: 60, parallel: 1_000 }] },
];

const decidedAlone = "weiche_router_limits_decided_alone_total";

/** `running`: the first token has come. Otherwise, the limit that refused the request, or how its answer ended. */
type Outcome = "running" | "parallel" | "minute" | Answer["ending"];

export interface HeldRequest {
  readonly router: number;
  readonly outcome: Outcome;
  /** Number of tokens so far. */
  pieces(): number;
  readonly answer: Promise<Answer>;
  readonly isOver: boolean;
  /** Lets the client leave. Resolves once the answer is over. */
  leave(): Promise<Answer>;
}

export class SharedLimits implements AsyncDisposable {
  readonly group: RouterGroup;
  readonly store: ValkeyServer;
  #accounts = 0;

  private constructor(group: RouterGroup, store: ValkeyServer) {
    this.group = group;
    this.store = store;
  }

  static async start(): Promise<SharedLimits> {
    await using opened = new AsyncDisposableStack();
    const store = opened.use(await ValkeyServer.start());
    const slots = [{ name: "a", engines: [{ ...simEngine("model-a"), maxConcurrent: 500 }] }];
    const group = await RouterGroup.start(3, {
      catalogue: { models: catalogueOf("model-a"), packages },
      agents: { "node-1": { slots } },
      router: { limits: { store: store.url } },
    });
    opened.move();
    return new SharedLimits(group, store);
  }

  /** Creates an account and returns its key. */
  async account(packageName: "Both" | "Parallel" | "Minute"): Promise<string> {
    return (await this.group.cluster.account(`Account${++this.#accounts}`, packageName)).apiKey;
  }

  /** Sends requests at once, to these routers in turn. Resolves once each is admitted or refused. */
  async ask(apiKey: string, count: number, routers: readonly number[] = [0, 1, 2], tokens = 20_000) {
    const asked = Array.from({ length: count }, (_, n) => this.#ask(apiKey, routers[n % routers.length]!, tokens));
    return await Promise.all(asked);
  }

  async #ask(apiKey: string, router: number, tokens: number): Promise<HeldRequest> {
    const leaving = new AbortController();
    const begun = Promise.withResolvers<Outcome>();
    let pieces = 0;
    const answer = askStream({
      baseUrl: `http://${this.group.routers[router]!.listen["api"]}/v1`,
      ...{ apiKey, model: "model-a", text: `sim:tokens=${tokens},itl=50`, signal: leaving.signal },
      onPiece(count) {
        pieces = count;
        begun.resolve("running");
      },
    });
    let isOver = false;
    void answer.finally(() => (isOver = true));
    return {
      router,
      outcome: await Promise.race([begun.promise, answer.then(outcomeOf)]),
      pieces: () => pieces,
      answer,
      get isOver() {
        return isOver;
      },
      async leave() {
        leaving.abort();
        return await answer;
      },
    };
  }

  /**
   * Returns the result of a run in which the store decided on every request. On a busy machine the store may take
   * longer than its 0.1 s, so that a router decides alone. Such a run is repeated, up to four times.
   */
  async shared<T>(run: () => Promise<T>): Promise<T> {
    const alone: string[] = [];
    while (alone.length < 5) {
      await until("all routers to use the store", async () => (await this.storeUp()).every((up) => up !== 0));
      const before = await this.#sample(decidedAlone);
      const result = await run();
      const after = await this.#sample(decidedAlone);
      // A killed router reports no count.
      if (after.every((count, index) => count === undefined || count === before[index])) return result;
      alone.push(`${before.join(" ")} to ${after.join(" ")}`);
    }
    throw new Error(`in each run a router decided alone: ${alone.join("; ")}`);
  }

  /** Returns 1 for each router that reaches the store, and undefined for a killed router. */
  async storeUp(): Promise<readonly (number | undefined)[]> {
    return await this.#sample("weiche_router_limit_store_up");
  }

  /**
   * Returns the value of each router, and undefined for a killed one. Throws if a running router does not report it.
   */
  async #sample(name: string): Promise<readonly (number | undefined)[]> {
    return await Promise.all(
      this.group.routers.map(async (router) => {
        const samples = await readSamples(router).catch((error: Error) => {
          if ((error.cause as NodeJS.ErrnoException | undefined)?.code === "ECONNREFUSED") return undefined;
          throw new Error(`the metrics of a running router: ${error.message}`, { cause: error });
        });
        if (samples && !samples.has(seriesOf(name, {}))) throw new Error(`a router has no metric ${name}`);
        return samples?.get(seriesOf(name, {}));
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.group[Symbol.asyncDispose]();
    await this.store[Symbol.asyncDispose]();
  }
}

function outcomeOf({ ending, error }: Answer): Outcome {
  if (error?.code !== "rate_limit_exceeded") return ending;
  return error.message.includes("parallel") ? "parallel" : "minute";
}

/** Counts the requests by outcome. */
export function outcomes(held: readonly HeldRequest[]): Readonly<Partial<Record<Outcome, number>>> {
  const groups = Object.groupBy(held, ({ outcome }) => outcome);
  return Object.fromEntries(Object.entries(groups).map(([outcome, { length }]) => [outcome, length]));
}

export function running(held: readonly HeldRequest[]): readonly HeldRequest[] {
  return held.filter(({ outcome }) => outcome === "running");
}

export async function leaveAll(held: readonly HeldRequest[]): Promise<void> {
  await Promise.all(held.map((each) => each.leave()));
}
