/**
 * Answers how much the fleet can take: runs the last week of its usage on the fleet as it is. A thread simulates, so that
 * streams are not delayed. One run at a time.
 */
import { Worker } from "node:worker_threads";
import type { Pool } from "pg";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { isUnavailable } from "../../db/failures.ts";
import type { NodeDetail } from "../../nodes/registry.ts";
import { ownFleet, type OwnFleet } from "./own-fleet.ts";
import type { OwnReport } from "./own-report.ts";
import { readOwnUsage, type OwnUsage } from "./own-usage.ts";
import type { OwnJob, OwnNews } from "./own-worker.ts";

/** The thread is ended if it needs more. A week of a million requests needs a third of it. */
const memoryMiBMax = 512;

/** Why a run gave no answer. */
type CapacityProblem = "no-usage" | "no-node" | "no-model" | "database" | "too-large" | "failed";

/** The result of a run that ended. */
interface CapacityAnswer extends OwnReport, Pick<OwnUsage, "fromMs" | "toMs" | "requests"> {
  readonly endedAtMs: number;
  /** Requests for models that no node serves now. */
  readonly leftOut: number;
  readonly measured: OwnFleet["measured"];
  readonly assumed: OwnFleet["assumed"];
}

export interface CapacityState {
  readonly step: "idle" | "reading" | "simulating";
  /** The completed share of the step. */
  readonly share: number;
  /** Of the last run. Undefined if it gave an answer, runs, or was cancelled. */
  readonly problem: CapacityProblem | undefined;
  readonly wasCancelled: boolean;
  /** The newest answer. It stays when a later run fails. */
  readonly answer: CapacityAnswer | undefined;
}

export interface CapacityEvents {
  /** A run has failed for a reason that nobody expects. */
  capacityFailed(error: unknown): void;
}

interface CapacityDeps {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly details: () => readonly NodeDetail[];
  /** The number of routers that place requests. */
  readonly routers: () => number;
  readonly events: CapacityEvents;
  /** The memory of the thread. By default, 512 MiB. */
  readonly memoryMiB?: number;
}

export class OwnCapacity implements AsyncDisposable {
  readonly #deps: CapacityDeps;
  #state: CapacityState = { step: "idle", share: 0, problem: undefined, wasCancelled: false, answer: undefined };
  #run: AbortController | undefined;
  #ended: Promise<void> = Promise.resolve();

  constructor(deps: CapacityDeps) {
    this.#deps = deps;
  }

  get state(): CapacityState {
    return this.#state;
  }

  /** Returns whether it started. It does not while another run goes on. */
  start(): boolean {
    if (this.#run) return false;
    const run = (this.#run = new AbortController());
    this.#change({ step: "reading", share: 0, problem: undefined, wasCancelled: false });
    this.#ended = this.#answer(run.signal)
      .then(
        (outcome) => this.#change(outcome),
        (error: unknown) => this.#change({ problem: this.#problemOf(error) }),
      )
      .finally(() => {
        this.#run = undefined;
        this.#change({ step: "idle", share: 0 });
      });
    return true;
  }

  /** Resolves when the run has ended. */
  async cancel(): Promise<void> {
    this.#run?.abort();
    await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cancel();
  }

  async #answer(signal: AbortSignal): Promise<Partial<CapacityState>> {
    const { pool, clock, details, routers } = this.#deps;
    const usage = await readOwnUsage(pool, clock.now(), {
      goOn: (share) => (this.#change({ share }), !signal.aborted),
    });
    if (!usage) return { wasCancelled: true };
    if (usage.requests === 0) return { problem: "no-usage" };
    const fleet = ownFleet(details(), usage.models);
    if (!fleet) return { problem: "no-node" };
    const job = jobOf(usage, fleet, routers());
    const names = [...usage.models];
    const leftOut = names.reduce(
      (sum, [, { requests }], index) => sum + (job.served[index] === undefined ? requests : 0),
      0,
    );
    if (leftOut === usage.requests) return { problem: "no-model" };
    this.#change({ step: "simulating", share: 0 });
    const memoryMiB = this.#deps.memoryMiB ?? memoryMiBMax;
    const report = await simulate(job, { memoryMiB, signal, onShare: (share) => this.#change({ share }) });
    if (!report) return { wasCancelled: true };
    const { fromMs, toMs, requests } = usage;
    const { measured, assumed } = fleet;
    return { answer: { ...report, fromMs, toMs, requests, leftOut, measured, assumed, endedAtMs: clock.now() } };
  }

  #problemOf(error: unknown): CapacityProblem {
    if (isUnavailable(error)) return "database";
    this.#deps.events.capacityFailed(error);
    return (error as NodeJS.ErrnoException).code === "ERR_WORKER_OUT_OF_MEMORY" ? "too-large" : "failed";
  }

  #change(change: Partial<CapacityState>): void {
    this.#state = { ...this.#state, ...change };
  }
}

function jobOf(
  { hours, models, fromMs, toMs }: OwnUsage,
  { nodes, retryMs, servedAs, gpus }: OwnFleet,
  routers: number,
): OwnJob {
  const names = [...models.keys()];
  const sold = new Map<string, { tokens: number; credits: number }>();
  for (const [model, { tokens, credits }] of models) {
    const sum = sold.getOrInsertComputed(servedAs.get(model) ?? model, () => ({ tokens: 0, credits: 0 }));
    sum.tokens += tokens;
    sum.credits += Number(credits);
  }
  const perToken = Array.from(sold, ([model, sum]) => [model, sum.credits / Math.max(1, sum.tokens)] as const);
  return {
    ...{ nodes, retryMs, hours, fromMs, toMs, routers },
    served: names.map((model) => servedAs.get(model)),
    money: { perToken: new Map(perToken), gpus },
  };
}

interface ThreadOptions {
  readonly memoryMiB: number;
  readonly signal: AbortSignal;
  readonly onShare: (share: number) => void;
}

/** Returns undefined if it was cancelled. */
function simulate(job: OwnJob, { memoryMiB, signal, onShare }: ThreadOptions): Promise<OwnReport | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<OwnReport | undefined>();
  const thread = new Worker(new URL("./own-worker.ts", import.meta.url), {
    workerData: job,
    resourceLimits: { maxOldGenerationSizeMb: memoryMiB },
  });
  const cancel = () => void thread.terminate();
  signal.addEventListener("abort", cancel, { once: true });
  thread.on("message", (news: OwnNews) => ("share" in news ? onShare(news.share) : resolve(news.report)));
  thread.on("error", reject);
  thread.on("exit", () => (signal.aborted ? resolve(undefined) : reject(new Error("the simulation's thread ended"))));
  return promise.finally(() => signal.removeEventListener("abort", cancel));
}
