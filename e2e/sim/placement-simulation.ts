/**
 * Simulates several routers that place requests on the same nodes. Each router knows reports that are up to a second
 * old, and its own requests in flight. A seed determines everything.
 */
import { createRandom, type Random } from "@weiche/shared/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { asId, type AccountId, type ModelId, type NodeId, type RequestId } from "@weiche/shared/ids.ts";
import { reportEveryMs } from "@weiche/node-agent/src/links/load.ts";
import { failed, mayAskAnother, untold } from "@weiche/router/src/api/attempt-end.ts";
import type { Placed, PlacementRequest } from "@weiche/router/src/nodes/placement.ts";
import { NodeRegistry } from "@weiche/router/src/nodes/registry.ts";
import { PlacementNode } from "./placement-node.ts";
import type { Strategy } from "./placement-strategies.ts";
import { drained } from "./sim-clock.ts";

export interface PlacementOptions {
  readonly seed: number;
  readonly routers: number;
  readonly nodes: number;
  /** The places of the nodes, in turn. */
  readonly places: readonly number[];
  /** Whether the engines run from the beginning. Otherwise they start within `startMs`. */
  readonly awake: boolean;
  readonly startMs: number;
  /** The time that a report takes to reach a router. */
  readonly newsMs: number;
  /** Requests arrive as a Poisson process, each at a random router. */
  readonly perSecond: number;
  /** Mean duration of a request, with an exponential distribution. */
  readonly meanRunMs: number;
  /** Requests in this first period are not counted. */
  readonly warmUpMs: number;
  readonly countedMs: number;
  /** Number of conversations that requests belong to, chosen at random. With 0, requests belong to no conversation. */
  readonly conversations: number;
  /** Creates the strategy of each router. */
  readonly strategy: () => Strategy;
  /** Number of models, each on all nodes and with equal demand. Defaults to 1. */
  readonly models?: number;
  /** Number of accounts, chosen at random for each request. Defaults to 20. */
  readonly accounts?: number;
  /** The fate of an attempt after the warm-up. By default each attempt is served. */
  readonly fate?: (attempt: SimAttempt) => Fate;
  /** The most attempts of a request. Defaults to 2. */
  readonly attemptsMax?: number;
}

export interface SimAttempt {
  /** Number of the node, from 0. */
  readonly node: number;
  readonly model: number;
  readonly account: number;
  /** Time since the end of the warm-up. */
  readonly sinceMs: number;
  readonly random: () => number;
}

/**
 * The time until an attempt fails, or until its first byte. By default it is served, and its first byte comes at once.
 * An answer that has begun is not tried again. `isRefused`: the engine refuses the request with 400 though it is valid.
 */
export type Fate =
  | { readonly failsAfterMs: number; readonly hasBegun?: boolean; readonly isRefused?: boolean }
  | { readonly firstByteMs: number }
  | undefined;

/** Counts of one period of ten seconds. */
interface TenSeconds {
  requests: number;
  /** Requests whose clients got a failure. */
  failed: number;
  /** Attempts that failed, even if the second attempt of the request succeeded. */
  failedAttempts: number;
  /** Attempts by the number of their node, served or not. */
  readonly attempts: number[];
}

/** Counts of requests. */
export interface PlacementResult {
  requests: number;
  /** Requests that did not get a place at once. */
  metFull: number;
  /** Requests that came to the node of their conversation's previous request, among the `laterTurns` that have one. */
  hits: number;
  laterTurns: number;
  /** Number of engine starts. */
  starts: number;
  /** Filled only with a `fate`. */
  readonly course: TenSeconds[];
}

export async function simulatePlacement(options: PlacementOptions): Promise<PlacementResult> {
  const world = new PlacementWorld(options);
  await world.run();
  return world.result;
}

class PlacementWorld {
  readonly result: PlacementResult = { requests: 0, metFull: 0, hits: 0, laterTurns: 0, starts: 0, course: [] };
  readonly #options: PlacementOptions;
  readonly #clock = new VirtualClock(0);
  readonly #random: Random;
  readonly #nodes: ReadonlyMap<NodeId, PlacementNode>;
  readonly #routers: readonly Router[];
  /** The node of the previous request of each conversation. */
  readonly #turns = new Map<string, NodeId>();
  readonly #models: readonly ModelId[];
  #requests = 0;

  constructor(options: PlacementOptions) {
    this.#options = options;
    this.#random = createRandom(options.seed);
    this.#models = Array.from({ length: options.models ?? 1 }, (_, index) => asId<ModelId>(`m-${index}`));
    const models = this.#models;
    const names = Array.from({ length: options.nodes }, (_, index) => asId<NodeId>(`node-${index}`));
    const clock = this.#clock;
    this.#nodes = new Map(
      names.map((name, index) => {
        const places = options.places[index % options.places.length]!;
        return [name, new PlacementNode({ ...options, name, clock, models, places })];
      }),
    );
    this.#routers = Array.from({ length: options.routers }, (_, index) => {
      const random = createRandom(options.seed * 1_000 + index);
      return { id: `router-${index}`, registry: new NodeRegistry(), strategy: options.strategy(), random };
    });
  }

  async run(): Promise<void> {
    const { newsMs, warmUpMs, countedMs } = this.#options;
    await drained(); // slots find their running engines
    for (const node of this.#nodes.values())
      for (const { id, registry } of this.#routers) node.linkTo(id, registry, this.#random.next() * reportEveryMs);
    await this.#advance(newsMs);
    this.#comeAgain();
    await this.#advance(warmUpMs + countedMs);
    this.result.starts = [...this.#nodes.values()].reduce((sum, { starts }) => sum + starts, 0);
  }

  async #advance(ms: number): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + ms;
    do await drained();
    while (this.#clock.step(untilMs));
    this.#clock.advance(untilMs - this.#clock.monotonicMs());
  }

  #comeAgain(): void {
    this.#clock.after(exponential(this.#random, 1_000 / this.#options.perSecond), () => {
      this.#come();
      this.#comeAgain();
    });
  }

  #come(): void {
    const router = this.#random.pick(this.#routers);
    const { conversations, meanRunMs, accounts = 20 } = this.#options;
    const conversation = conversations > 0 ? `conversation ${this.#random.below(conversations)}` : undefined;
    const runMs = exponential(this.#random, meanRunMs);
    const number = this.#models.length > 1 ? this.#random.below(this.#models.length) : 0;
    const account = this.#options.fate ? this.#random.below(accounts) : 0;
    const isCounted = this.#sinceMs() >= 0;
    if (isCounted) this.result.requests++;
    const model = this.#models[number]!;
    const asked = { router, model, number, account, runMs, conversation, isCounted };
    void this.#serve(asked, { model, affinityKey: conversation });
  }

  /** Time since the end of the warm-up. Negative before it. */
  #sinceMs(): number {
    return this.#clock.monotonicMs() - this.#options.newsMs - this.#options.warmUpMs;
  }

  #turn(conversation: string, node: NodeId, isCounted: boolean): void {
    const before = this.#turns.get(conversation);
    this.#turns.set(conversation, node);
    if (!isCounted || before === undefined) return;
    this.result.laterTurns++;
    if (before === node) this.result.hits++;
  }

  /** Repeats a failed attempt like a router does. */
  async #serve(asked: Asked, request: PlacementRequest): Promise<void> {
    const { router, conversation, isCounted } = asked;
    const { attemptsMax = 2 } = this.#options;
    const tried = new Set<NodeId>();
    const refused: ((outcome: typeof failed | typeof untold) => void)[] = [];
    this.#count((ten) => ten.requests++);
    while (tried.size < attemptsMax) {
      const nowMs = this.#clock.monotonicMs();
      const placed = router.strategy(request, router.registry.view(nowMs), nowMs, () => router.random.next(), tried);
      if ("refused" in placed) {
        if (tried.size > 0) break;
        throw new Error(`the router knows no node: ${placed.refused}`);
      }
      if (conversation !== undefined && tried.size === 0) this.#turn(conversation, placed.node, isCounted);
      tried.add(placed.node);
      const end = await this.#attempt(asked, placed, isCounted && tried.size === 1, refused);
      if (end === "served") for (const ended of refused) ended(failed);
      if (end === "served") return;
      if (end === "over") break;
    }
    for (const ended of refused) ended(untold);
    this.#count((ten) => ten.failed++);
  }

  /**
   * Resolves with how the attempt ended. After `tried-again` a router asks another node. `refused` gets the report of a
   * refusal by an engine, whose outcome depends on the other attempt.
   */
  async #attempt(
    asked: Asked,
    { node, slot }: Placed,
    isFirst: boolean,
    refused: ((outcome: typeof failed | typeof untold) => void)[],
  ): Promise<"served" | "over" | "tried-again"> {
    const { router, model, account, runMs } = asked;
    const clock = this.#clock;
    const of = { node, slot, model, account: asId<AccountId>(`account-${account}`), bodyBytes: 1_000 };
    const dispatched = router.registry.dispatched(node, slot);
    const ended = router.registry.began(of, clock.monotonicMs());
    const requestId = asId<RequestId>(`request-${++this.#requests}`);
    const { signal } = new AbortController();
    if (isFirst) this.result.metFull++; // counted down once it has a place
    try {
      const admission = await this.#nodes.get(node)!.slots.admit({
        ...{ requestId, model, account: of.account, slot, answers: 1, routerId: router.id, signal },
      });
      if (isFirst && admission.waitedMs === 0) this.result.metFull--;
      const { promise, resolve } = Promise.withResolvers<void>();
      const fate = this.#fateOf(asked, node);
      const failure = fate && "failsAfterMs" in fate ? fate : undefined;
      const firstByteMs = fate && "firstByteMs" in fate ? fate.firstByteMs : 0;
      clock.after(failure?.failsAfterMs ?? runMs + firstByteMs, () => {
        admission.release();
        dispatched.over();
        resolve();
      });
      await promise;
      if (!failure) {
        ended({ outcome: "served", firstByteMs }, clock.monotonicMs());
        return "served";
      }
      this.#count((ten) => ten.failedAttempts++);
      const { isRefused, hasBegun } = failure;
      if (isRefused) refused.push((outcome) => ended(outcome, clock.monotonicMs()));
      else ended(failed, clock.monotonicMs());
      const [status, nodeFault] = isRefused ? ([400, "engine-refused"] as const) : ([500, "node-failed"] as const);
      return hasBegun || !mayAskAnother({ status }, { nodeFault }) ? "over" : "tried-again";
    } catch {
      dispatched.over(); // the queue of the slot is full
      ended("overloaded", clock.monotonicMs());
      return this.#options.fate ? "tried-again" : "served";
    }
  }

  #fateOf({ number: model, account }: Asked, name: NodeId): Fate {
    const node = [...this.#nodes.keys()].indexOf(name);
    this.#count((ten) => (ten.attempts[node] = (ten.attempts[node] ?? 0) + 1));
    const sinceMs = this.#sinceMs();
    if (sinceMs < 0) return undefined;
    return this.#options.fate?.({ node, model, account, sinceMs, random: () => this.#random.next() });
  }

  #count(add: (ten: TenSeconds) => void): void {
    const index = Math.floor(this.#sinceMs() / 10_000);
    if (index < 0 || !this.#options.fate) return;
    add((this.result.course[index] ??= { requests: 0, failed: 0, failedAttempts: 0, attempts: [] }));
  }
}

interface Asked {
  readonly router: Router;
  readonly model: ModelId;
  /** Number of the model. */
  readonly number: number;
  readonly account: number;
  readonly runMs: number;
  readonly conversation: string | undefined;
  readonly isCounted: boolean;
}

interface Router {
  readonly id: string;
  readonly registry: NodeRegistry;
  readonly strategy: Strategy;
  readonly random: Random;
}

function exponential(random: Random, mean: number): number {
  return -mean * Math.log(1 - random.next());
}
