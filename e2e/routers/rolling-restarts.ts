/**
 * Restarts routers behind HAProxy one after the other as in the runbook while clients send requests. No client may notice,
 * and the bill must match what they received.
 */
import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, askStream, type Answer, type Client } from "../cluster/api-client.ts";
import { startBalancer } from "../cluster/balancer.ts";
import { billingFaults, type Received } from "../cluster/billing-check.ts";
import { until } from "../cluster/cluster.ts";
import { readSamples } from "../cluster/metrics-text.ts";
import { RouterGroup } from "../cluster/router-group.ts";
import { catalogueOf, simEngine } from "../cluster/sim-node.ts";
import { dumpAllUsage } from "../cluster/usage-dump.ts";

interface RollingOptions {
  readonly routers: number;
  readonly restarts: number;
  /** Clients that stream, one answer after the other. */
  readonly streams: number;
  readonly streamTokens: number;
  readonly requestsPerSecond: number;
  readonly acceptSeconds: number;
  /** The interval of HAProxy's readiness checks. Defaults to that in deploy/haproxy.cfg. */
  readonly checkMs?: number;
}

interface Rolled {
  readonly streams: number;
  readonly requests: number;
  /** Answers that were not whole. */
  readonly failed: readonly Answer[];
  /** The faults of the bill, each a sentence. */
  readonly faults: readonly string[];
  /** The number of streams that ran through a stopping router, over all restarts. */
  readonly ranOn: number;
  readonly exits: readonly (number | NodeJS.Signals)[];
}

const validFrom = "2026-01-01T00:00:00+01:00";
const terms = { validFrom, price: 1, credits: 1e12, requestsPerMinute: 1e6, parallel: 1e5, support: false };
const itlMs = 100;

export async function rollRestarts(options: RollingOptions): Promise<Rolled> {
  const engine = simEngine("sim", { "itl-ms": itlMs, tokens: options.streamTokens });
  const slots = [{ name: "a", engines: [{ ...engine, maxConcurrent: 1_000 }] }];
  await using group = await RouterGroup.start(options.routers, {
    catalogue: { models: catalogueOf("sim"), packages: [{ name: "Load", terms: [terms] }] },
    agents: { "node-1": { slots }, "node-2": { slots } },
    router: {
      shutdownAcceptSeconds: options.acceptSeconds,
      shutdownSeconds: 600,
      limits: { perIpPerSecond: 0, trustedProxies: ["127.0.0.1"] },
    },
  });
  const { cluster } = group;
  await using balancer = await startBalancer(group.routers, cluster.directory, options.checkMs);
  const { apiKey } = await cluster.account("Load", "Load");
  const load = new Load({ baseUrl: balancer.baseUrl, apiKey, agent: new Agent({ keepAlive: true }) }, options);
  await until("every client to stream", () => load.streaming >= options.streams);
  let ranOn = 0;
  const exits: (number | NodeJS.Signals)[] = [];
  for (let restart = 0; restart < options.restarts; restart++) {
    const index = restart % options.routers;
    ranOn += await running(group, index);
    exits.push(await group.routers[index]!.stop());
    await group.startAt(index);
    await until("the router to be ready", () => group.isReady(index));
    await until("the router to be used", async () => (await running(group, index)) > 0);
  }
  const answers = await load.finish();
  const received = answers.map((answer, mark): Received => ({ ...answer, mark, kind: "stream" }));
  let faults: readonly string[] = [];
  const isBilled = async () => {
    faults = billingFaults({ received, made: [], outages: [], usage: await dumpAllUsage(cluster) });
    return faults.length === 0;
  };
  await until("the bill to be right", isBilled, 30_000).catch(() => {});
  const failed = answers.filter(({ ending }) => ending !== "whole");
  const { length: all } = answers;
  return { streams: load.streams, requests: all - load.streams, failed, faults, ranOn, exits };
}

async function running(group: RouterGroup, index: number): Promise<number> {
  const samples = await readSamples(group.routers[index]!);
  return samples.get("weiche_router_parallel_requests{}") ?? 0;
}

/** Clients that keep their connections, like the API's users. */
class Load {
  streams = 0;
  /** Number of clients that stream now. */
  streaming = 0;
  readonly #client: Required<Client>;
  readonly #answers: Answer[] = [];
  readonly #running: Promise<unknown>;
  #isOver = false;

  constructor(client: Required<Client>, { streams, requestsPerSecond }: RollingOptions) {
    this.#client = client;
    const streaming = Array.from({ length: streams }, (_, index) => this.#stream(index / streams));
    this.#running = Promise.all([...streaming, this.#request(requestsPerSecond)]);
  }

  /** Resolves with all answers, once the last client has its answer. */
  async finish(): Promise<readonly Answer[]> {
    this.#isOver = true;
    await this.#running;
    this.#client.agent.destroy();
    return this.#answers;
  }

  /** `phase` is a number from 0 to 1 that delays a client, so that clients do not start in step. */
  async #stream(phase: number): Promise<void> {
    await sleep(phase * 1_000);
    this.streaming++;
    while (!this.#isOver) {
      this.streams++;
      this.#answers.push(await askStream({ ...this.#client, model: "sim", text: "go on", toTheEnd: true }));
    }
  }

  async #request(perSecond: number): Promise<void> {
    const sent: Promise<void>[] = [];
    const body = { model: "sim", messages: [{ role: "user", content: "sim:tokens=3,itl=5 go on" }] };
    while (!this.#isOver) {
      await sleep(1_000 / perSecond);
      sent.push(ask(this.#client, "/chat/completions", body).then((answer) => void this.#answers.push(answer)));
    }
    await Promise.all(sent);
  }
}
