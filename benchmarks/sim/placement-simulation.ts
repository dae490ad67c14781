/**
 * Several routers that place requests on the same nodes, each by what it knows of their load: reports that are up to a
 * second old, and its own requests in flight. Everything follows from a seed.
 */
import { createRandom, type Random } from "@weiche/shared/testing/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { asId, type AccountId, type ModelId, type NodeId, type RequestId } from "@weiche/shared/ids.ts";
import { reportEveryMs } from "@weiche/node-agent/src/links/load.ts";
import type { Placed } from "@weiche/router/src/nodes/placement.ts";
import { NodeRegistry } from "@weiche/router/src/nodes/registry.ts";
import { PlacementNode } from "./placement-node.ts";
import type { Strategy } from "./placement-strategies.ts";
import { drained } from "./sim-clock.ts";

export interface PlacementOptions {
  readonly seed: number;
  readonly routers: number;
  readonly nodes: number;
  /** Of the nodes in turn. */
  readonly places: readonly number[];
  /** Whether the engines run from the beginning. Those that do not start within `startMs`. */
  readonly awake: boolean;
  readonly startMs: number;
  /** How long a report is on its way to a router. */
  readonly newsMs: number;
  /** Requests come by chance (Poisson), each to any of the routers. */
  readonly perSecond: number;
  /** Mean of the exponential distribution of how long a request runs. */
  readonly meanRunMs: number;
  /** What came before is not counted. */
  readonly warmUpMs: number;
  readonly countedMs: number;
  /** Requests belong to so many conversations, each to any of them. 0: to none. */
  readonly conversations: number;
  /** Makes the strategy of each router. */
  readonly strategy: () => Strategy;
}

/** Counts of requests. */
export interface PlacementResult {
  requests: number;
  /** Did not get a place at once. */
  metFull: number;
  /** Came to the node of their conversation's previous request; of `laterTurns`, those that have one. */
  hits: number;
  laterTurns: number;
  /** Engines that were started. */
  starts: number;
}

const model = asId<ModelId>("m");

export async function simulatePlacement(options: PlacementOptions): Promise<PlacementResult> {
  const world = new PlacementWorld(options);
  await world.run();
  return world.result;
}

class PlacementWorld {
  readonly result: PlacementResult = { requests: 0, metFull: 0, hits: 0, laterTurns: 0, starts: 0 };
  readonly #options: PlacementOptions;
  readonly #clock = new VirtualClock(0);
  readonly #random: Random;
  readonly #nodes: ReadonlyMap<NodeId, PlacementNode>;
  readonly #routers: readonly Router[];
  /** The node of the previous request of each conversation. */
  readonly #turns = new Map<string, NodeId>();
  #requests = 0;

  constructor(options: PlacementOptions) {
    this.#options = options;
    this.#random = createRandom(options.seed);
    const names = Array.from({ length: options.nodes }, (_, index) => asId<NodeId>(`node-${index}`));
    const clock = this.#clock;
    this.#nodes = new Map(
      names.map((name, index) => {
        const places = options.places[index % options.places.length]!;
        return [name, new PlacementNode({ ...options, name, clock, model, places })];
      }),
    );
    this.#routers = Array.from({ length: options.routers }, (_, index) => {
      const random = createRandom(options.seed * 1_000 + index);
      return { id: `router-${index}`, registry: new NodeRegistry(), strategy: options.strategy(), random };
    });
  }

  async run(): Promise<void> {
    const { newsMs, warmUpMs, countedMs } = this.#options;
    await drained(); // engines that run are found
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
    const { conversations, meanRunMs } = this.#options;
    const conversation = conversations > 0 ? `conversation ${this.#random.below(conversations)}` : undefined;
    const runMs = exponential(this.#random, meanRunMs);
    const nowMs = this.#clock.monotonicMs();
    const request = { model, affinityKey: conversation };
    const placed = router.strategy(request, router.registry.view(nowMs), nowMs, () => router.random.next());
    if ("refused" in placed) throw new Error(`the router knows no node: ${placed.refused}`);
    const isCounted = nowMs >= this.#options.newsMs + this.#options.warmUpMs;
    if (isCounted) this.result.requests++;
    if (conversation !== undefined) this.#turn(conversation, placed.node, isCounted);
    void this.#serve(router, placed, runMs, isCounted);
  }

  #turn(conversation: string, node: NodeId, isCounted: boolean): void {
    const before = this.#turns.get(conversation);
    this.#turns.set(conversation, node);
    if (!isCounted || before === undefined) return;
    this.result.laterTurns++;
    if (before === node) this.result.hits++;
  }

  async #serve(router: Router, { node, slot }: Placed, runMs: number, isCounted: boolean): Promise<void> {
    const settle = router.registry.dispatched(node, slot);
    const requestId = asId<RequestId>(`request-${++this.#requests}`);
    const { signal } = new AbortController();
    const account = asId<AccountId>("one");
    const asked = { requestId, model, account, slot, answers: 1, routerId: router.id, signal };
    if (isCounted) this.result.metFull++; // until it has a place
    try {
      const admission = await this.#nodes.get(node)!.slots.admit(asked);
      if (isCounted && admission.waitedMs === 0) this.result.metFull--;
      this.#clock.after(runMs, () => {
        admission.release();
        settle();
      });
    } catch {
      settle(); // the queue of the slot is full
    }
  }
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
