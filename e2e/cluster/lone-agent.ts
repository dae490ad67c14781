/** Runs a real agent process with this process as its router, so that a test sees its reports and controls each request. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { AgentStatus } from "@weiche/node-agent/src/status/status.ts";
import type { NodeRegistry } from "@weiche/router/src/nodes/registry.ts";
import { askSocket } from "@weiche/shared/program/admin-socket.ts";
import { parseCatalogue } from "@weiche/shared/catalogue.ts";
import { systemClock as clock } from "@weiche/shared/time/clock.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type ModelId, type NodeId, type RequestId } from "@weiche/shared/ids.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { stringify } from "yaml";
import { readAnswer } from "./read-answer.ts";
import { enginePids, isAlive, reachableDirectory, startAgent, until, type RunningProgram } from "./cluster.ts";
import { readMetrics, samplesOf, type MetricFamily } from "./metrics-text.ts";
import { openNodeEnd, type NodeEnd } from "./node-end.ts";
import { catalogueOf } from "./sim-node.ts";

interface LoneAgentOptions {
  /** The slots of `agent.yaml`. */
  readonly slots: readonly object[];
  readonly models: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Further keys of `agent.yaml`. */
  readonly more?: object;
  /** A program that runs the agent in place of the usual one. */
  readonly main?: string;
}

export interface LoneAnswer {
  readonly status: number;
  readonly body: string;
  readonly ending: string | undefined;
  readonly firstByteMs: number;
}

const streamed = { stream: true, stream_options: { include_usage: true } };
const node = asId<NodeId>("node-1");

export class LoneAgent implements AsyncDisposable {
  readonly #root = reachableDirectory("weiche-lone-agent-");
  /** The agent's data directory. */
  readonly directory = join(this.#root, "data");
  /** The router acknowledges usage when this promise resolves. A test may set a pending one. */
  recording: Promise<void> = Promise.resolve();
  program!: RunningProgram;
  readonly #options: LoneAgentOptions;
  #end!: NodeEnd;

  private constructor(options: LoneAgentOptions) {
    this.#options = options;
  }

  static async start(options: LoneAgentOptions): Promise<LoneAgent> {
    const lone = new LoneAgent(options);
    const { catalogue } = parseCatalogue(stringify(catalogueOf(...options.models)));
    lone.#end = await openNodeEnd(catalogue!, () => lone.recording);
    await lone.#run();
    return lone;
  }

  /** The address of the router that the agent dials. */
  get router(): string {
    return this.#end.address;
  }

  get registry(): NodeRegistry {
    return this.#end.registry;
  }

  async #run(): Promise<void> {
    const { slots, more, environment, main } = this.#options;
    const config = { node, routers: [this.#end.address], shutdownSeconds: 5, slots, ...more };
    this.program = await startAgent(this.directory, config, environment, main);
    await until("the agent to link", () => this.#isLinked);
  }

  get #isLinked(): boolean {
    return this.registry.view(clock.monotonicMs())[0]?.reachable ?? false;
  }

  /** Kills the agent with `kill -9` and starts another with the same data. Resolves when this one is linked. */
  async restart(): Promise<void> {
    this.program.kill("SIGKILL");
    await this.program.exited();
    await until("the agent's link to end", () => !this.#isLinked);
    await this.#run();
  }

  /** Returns the output of `weiche-agent status --json`. */
  async status(): Promise<AgentStatus> {
    return (await askSocket(join(this.directory, "agent/admin.sock"), "GET", "/status")).body as AgentStatus;
  }

  /**
   * Sends a chat from a new account, or from `account`. Rejects if `signal` aborts or the agent ends. Calls `onBegun` when
   * the agent answers.
   */
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
    const startMs = performance.now();
    const request = {
      ...{ path: nodePaths.chat, requestId: asId<RequestId>(uuidv7(clock)), attempt: 1, remainingMs },
      model: asId<ModelId>(model),
      billing: { accountId: who, userId: who, keyId: who, factor: millicredits(1_000n) },
      tokensMax: 1_000_000,
      body: Buffer.from(JSON.stringify({ model, messages, ...(stream && streamed) })),
    };
    const answer = await this.#end.data.send(node, request, signal);
    signal.addEventListener("abort", () => answer.body.cancel(), { once: true });
    onBegun();
    let firstByteMs = NaN;
    const { first, whole } = readAnswer(answer);
    void first.then(() => (firstByteMs = performance.now() - startMs));
    const body = String(await whole);
    signal.throwIfAborted();
    return { status: answer.status, body, ending: answer.body.ending, firstByteMs };
  }

  metrics(): Promise<ReadonlyMap<string, MetricFamily>> {
    return readMetrics(this.program);
  }

  async samples(): Promise<ReadonlyMap<string, number>> {
    return samplesOf(await this.metrics());
  }

  /** Closes the router's end while the agent continues to run. */
  async closeRouter(): Promise<void> {
    await this.#end[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const engines = [...enginePids(this.directory).values()];
    await this.program.stop();
    await this.closeRouter();
    for (const pid of engines.filter(isAlive)) process.kill(-pid, "SIGKILL");
    rmSync(this.#root, { recursive: true, force: true });
  }
}
