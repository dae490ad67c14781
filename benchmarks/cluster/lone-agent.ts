/**
 * A real agent process whose router is this process: its link and data sessions, without API, keys, limits or database.
 * What it measures and reports can be seen, and every request that it gets be steered.
 */
import { randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentStatus } from "@weiche/node-agent/src/status/status.ts";
import { createGrants } from "@weiche/router/src/usage/grants.ts";
import { openDataConnections, type DataConnections } from "@weiche/router/src/nodes/data-connections.ts";
import { openNodeLink, type NodeLink } from "@weiche/router/src/nodes/node-link.ts";
import { NodeRegistry } from "@weiche/router/src/nodes/registry.ts";
import { askSocket } from "@weiche/shared/program/admin-socket.ts";
import { parseCatalogue, rulesOf } from "@weiche/shared/catalogue.ts";
import { systemClock as clock } from "@weiche/shared/time/clock.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type ModelId, type NodeId, type RequestId } from "@weiche/shared/ids.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { plainJobs } from "@weiche/shared/testing/plain-jobs.ts";
import { stringify } from "yaml";
import { textOf } from "./read-answer.ts";
import { RunningProgram, enginePids, isAlive, reachableDirectory, until } from "./cluster.ts";
import { parseMetrics, samplesOf, type MetricFamily } from "./metrics-text.ts";
import { catalogueOf } from "./sim-node.ts";

export interface LoneAgentOptions {
  /** Of `agent.yaml`. */
  readonly slots: readonly object[];
  readonly models: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** More keys of `agent.yaml`. */
  readonly more?: object;
}

export interface LoneAnswer {
  readonly status: number;
  readonly body: string;
  readonly ending: string | undefined;
}

const streamed = { stream: true, stream_options: { include_usage: true } };
const node = asId<NodeId>("node-1");

export class LoneAgent implements AsyncDisposable {
  readonly directory = reachableDirectory("weiche-lone-agent-");
  readonly registry = new NodeRegistry();
  /** Resolves with the acknowledgement of usage; another promise holds it up. */
  recording: Promise<void> = Promise.resolve();
  program!: RunningProgram;
  #data!: DataConnections;
  #link!: NodeLink;
  #environment: Readonly<Record<string, string>> = {};

  private constructor() {}

  static async start({ slots, models, environment = {}, more = {} }: LoneAgentOptions): Promise<LoneAgent> {
    const lone = new LoneAgent();
    const events = new Proxy({}, { get: () => () => {} }) as never;
    const shared = { routerId: uuidv7(clock), clock, events, listen: { host: "127.0.0.1", port: 0 } };
    const rules = [...parseCatalogue(stringify(catalogueOf(...models))).catalogue!.values()].map(rulesOf);
    lone.#data = await openDataConnections({
      ...shared,
      counts: lone.registry,
      grants: createGrants(randomBytes(32)),
    });
    lone.#link = await openNodeLink({
      ...shared,
      job: plainJobs(clock),
      registry: lone.registry,
      dataAddress: `127.0.0.1:${lone.#data.address.port}`,
      ledger: { record: () => lone.recording },
      rulesOf: () => rules,
      mayHost: () => true,
      desiredStateOf: () => undefined,
      onBoot: () => {},
    });
    lone.#environment = environment;
    writeFileSync(lone.#file, stringify({ node, routers: [lone.router], shutdownSeconds: 5, slots, ...more }));
    await lone.#run();
    return lone;
  }

  get #file(): string {
    return join(this.directory, "agent.yaml");
  }

  async #run(): Promise<void> {
    this.program = await RunningProgram.start("node-agent/src/main.ts", [], {
      WEICHE_DATA_DIR: this.directory,
      WEICHE_AGENT_CONFIG: this.#file,
      WEICHE_AGENT_OPS_LISTEN: "127.0.0.1:0",
      ...this.#environment,
    });
    await until("the agent to link", () => this.registry.view(clock.monotonicMs())[0]?.reachable ?? false);
  }

  /** Ends it with `kill -9`. The next one takes over what it left; resolves when that one is linked. */
  async restart(): Promise<void> {
    this.program.kill("SIGKILL");
    await this.program.exited();
    await until("its link to be gone", () => !this.registry.view(clock.monotonicMs())[0]?.reachable);
    await this.#run();
  }

  /** As `weiche-agent status --json` says it. */
  async status(): Promise<AgentStatus> {
    return (await askSocket(join(this.directory, "agent/admin.sock"), "GET", "/status")).body as AgentStatus;
  }

  /** As the agent calls it. */
  get router(): string {
    return `127.0.0.1:${this.#link.address.port}`;
  }

  /** A chat, streamed unless told otherwise; rejects if `signal` aborts or the agent goes. Of an account of its own unless told otherwise. `onBegun`: it answers. */
  async chat(
    model: string,
    content: string,
    {
      signal = new AbortController().signal,
      remainingMs = 600_000,
      stream = true,
      account = uuidv7(clock) as string,
      onBegun = () => {},
    } = {},
  ): Promise<LoneAnswer> {
    const who = asId<never>(account);
    const messages = [{ role: "user", content }];
    const answer = await this.#data.send(
      node,
      {
        ...{ path: nodePaths.chat, requestId: asId<RequestId>(uuidv7(clock)), attempt: 1, remainingMs },
        model: asId<ModelId>(model),
        billing: { accountId: who, userId: who, keyId: who, factor: millicredits(1_000n) },
        tokensMax: 1_000_000,
        body: Buffer.from(JSON.stringify({ model, messages, ...(stream && streamed) })),
      },
      signal,
    );
    onBegun();
    const body = await textOf(answer);
    signal.throwIfAborted();
    return { status: answer.status, body, ending: answer.body.ending };
  }

  async metrics(): Promise<ReadonlyMap<string, MetricFamily>> {
    return parseMetrics(await (await fetch(`http://${this.program.listen["ops"]}/metrics`)).text());
  }

  async samples(): Promise<ReadonlyMap<string, number>> {
    return samplesOf(await this.metrics());
  }

  /** Closes the router's end: the agent stays. */
  async closeRouter(): Promise<void> {
    await Promise.all([this.#link.close(0), this.#data.close(0)]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const engines = [...enginePids(this.directory).values()];
    await this.program.stop();
    await this.closeRouter();
    for (const pid of engines.filter(isAlive)) process.kill(-pid, "SIGKILL");
    rmSync(this.directory, { recursive: true, force: true });
  }
}
