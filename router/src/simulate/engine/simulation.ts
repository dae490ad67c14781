/**
 * Runs a fleet under a load on virtual time. Routers take places in the accounts' limits, place requests by old reports
 * and ask a second node after a refusal, with the code of the router. Refused clients come back. A seed determines
 * everything else.
 */
import { asId, type AccountId, type ModelId, type NodeId, type RequestId } from "@weiche/shared/ids.ts";
import { shownRetrySeconds } from "@weiche/shared/errors.ts";
import { createRandom, type Random } from "@weiche/shared/random.ts";
import { reportEveryMs } from "@weiche/node-agent/src/links/load.ts";
import type { RefusalKind } from "@weiche/node-agent/src/slots/slot-state.ts";
import { attemptsMax, endOfRefusal, failed, mayAskAnother } from "../../api/attempt-end.ts";
import type { AccountLimits } from "../../limits/limiter.ts";
import { MemoryLimiter } from "../../limits/memory-limiter.ts";
import { place } from "../../nodes/placement.ts";
import { NodeRegistry } from "../../nodes/registry.ts";
import type { Load, LoadRequest } from "../load.ts";
import { EventQueue } from "./event-queue.ts";
import { Tally, type ModelTally } from "./tally.ts";
import { TimedNode } from "./timed-node.ts";
import type { Timeline } from "./timeline.ts";
import type { TimedSlotOptions } from "./timed-slot.ts";

export interface SimulationOptions {
  readonly seed: number;
  readonly load: Load;
  /** The duration of the load. Only the progress of a run depends on it. */
  readonly durationMs: number;
  readonly nodes: readonly { readonly name: NodeId; readonly slots: readonly TimedSlotOptions[] }[];
  /** Nodes that lose their power at a time, until another time if it is given. */
  readonly failures?: readonly { readonly node: NodeId; readonly atMs: number; readonly untilMs?: number }[];
  /** Records what happens over the time of the run. */
  readonly timeline?: Timeline;
  /** Each request comes to a random router. */
  readonly routers: number;
  /** The time that a report takes to reach a router. */
  readonly newsMs: number;
  /** The limits of each account. Undefined if accounts have none. */
  readonly limits?: AccountLimits;
  /** A refused client tries again after each of these times, or after `retry-after` if it is longer. Then it gives up. */
  readonly retryMs: readonly number[];
  /** Whether accounts share the places of engines. Otherwise all requests count for one account. */
  readonly isFair: boolean;
}

interface Router {
  readonly number: number;
  readonly registry: NodeRegistry;
}

/** A request of the load. */
interface Client {
  readonly request: LoadRequest;
  readonly model: ModelId;
  readonly tally: ModelTally;
  readonly id: RequestId;
  attempts: number;
}

const everyone = asId<AccountId>("everyone");
/** The assumed bytes of a body for each token. Only comparisons of requests with each other depend on it. */
const bytesPerToken = 4;
/** The time after which a client tries again if no node was available. */
const noNodeRetryMs = 1_000;
const nothing = { nodeFault: undefined, engineDeath: undefined };

export class Simulation {
  readonly tally = new Tally();
  readonly nodes: readonly TimedNode[];
  readonly clock = new EventQueue();
  readonly #options: SimulationOptions;
  readonly #random: Random;
  readonly #routers: readonly Router[];
  readonly #limiter: MemoryLimiter;
  readonly #byName: ReadonlyMap<NodeId, TimedNode>;
  readonly #hosting = new Map<ModelId, readonly TimedNode[]>();
  readonly #requests: Iterator<LoadRequest>;
  #begun = 0;
  #live = 0;
  #isBegun = false;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#random = createRandom(options.seed);
    this.#limiter = new MemoryLimiter(this.clock);
    this.nodes = options.nodes.map(({ name, slots }) => new TimedNode(name, slots, options.newsMs, this.clock));
    this.#byName = new Map(this.nodes.map((node) => [node.name, node]));
    this.#routers = Array.from({ length: options.routers }, (_, number) => {
      const registry = new NodeRegistry();
      for (const node of this.nodes) node.linkTo(number, registry, this.#random.next() * reportEveryMs);
      return { number, registry };
    });
    options.timeline?.watch(this.nodes);
    this.#requests = options.load[Symbol.iterator]();
    for (const { node, atMs, untilMs } of options.failures ?? []) {
      const failing = this.#byName.get(node)!;
      this.clock.after(atMs, () => failing.fail());
      if (untilMs !== undefined) this.clock.after(untilMs, () => failing.boot());
    }
  }

  /**
   * Handles at most this many events. Returns whether requests of the load are left. The number has no influence on the
   * result.
   */
  advance(events: number): boolean {
    if (!this.#isBegun) this.#next();
    this.#isBegun = true;
    for (let left = events; left > 0 && this.#live > 0; left--) if (!this.clock.step()) break;
    return this.#live > 0;
  }

  /** Ends the run, so that the times of slots are complete. */
  end(): void {
    const nowMs = this.clock.monotonicMs();
    for (const node of this.nodes) for (const { slot, times } of node.slots) times.count(slot.state, nowMs);
  }

  /** Schedules the next request of the load, so that only one is in memory before it comes. */
  #next(): void {
    const { value, done } = this.#requests.next();
    if (done) return;
    this.#live++;
    this.clock.after(value.atMs - this.clock.monotonicMs(), () => {
      this.#next();
      this.#come(value);
    });
  }

  #come(request: LoadRequest): void {
    const tally = this.tally.of(request.model);
    tally.requests++;
    const id = asId<RequestId>(`${++this.#begun}`);
    this.#attempt({ request, model: asId<ModelId>(request.model), tally, id, attempts: 0 });
  }

  #attempt(client: Client): void {
    const { limits } = this.#options;
    const account = asId<AccountId>(client.request.account);
    client.tally.attempts++;
    client.attempts++;
    if (limits) {
      const decision = this.#limiter.enter(account, client.id, limits);
      if (!decision.admitted) {
        client.tally.limited++;
        return this.#comeBack(client, decision.retryAfterMs);
      }
    }
    const router = this.#routers.length === 1 ? this.#routers[0]! : this.#random.pick(this.#routers);
    this.#ask(client, router, account, new Set());
  }

  /** Asks nodes until one does not refuse, like the router's `generate`. */
  #ask(client: Client, router: Router, account: AccountId, tried: Set<NodeId>, retryAfterMs = noNodeRetryMs): void {
    const { model, request } = client;
    const nowMs = this.clock.monotonicMs();
    for (const node of this.#nodesOf(model)) node.refresh(router.number);
    const affinityKey = request.conversation && `${account} ${model} ${request.conversation}`;
    const views = router.registry.view(nowMs);
    const placed = place({ model, affinityKey }, views, nowMs, () => this.#random.next(), tried);
    if ("refused" in placed) return this.#refused(client, account, retryAfterMs);
    tried.add(placed.node);
    const dispatched = router.registry.dispatched(placed.node, placed.slot);
    const bodyBytes = request.inputTokens * bytesPerToken;
    const ended = router.registry.began({ ...placed, model, account, bodyBytes }, nowMs);
    let admittedAtMs = nowMs;
    let firstByteMs: number | undefined;
    const slot = this.#byName.get(placed.node)!.slots.find(({ name }) => name === placed.slot)!;
    slot.ask({
      ...{ model, router: router.number, account: this.#options.isFair ? account : everyone },
      ...{ inputTokens: request.inputTokens, outputTokens: request.outputTokens },
      admitted: () => {
        admittedAtMs = this.clock.monotonicMs();
        slot.times.waitedMs += admittedAtMs - nowMs;
      },
      began: (stepMs) => {
        client.tally.wait.add(admittedAtMs - request.atMs);
        this.#options.timeline?.waited(model, request.atMs, admittedAtMs - request.atMs);
        const firstAtMs = this.clock.monotonicMs() + stepMs;
        client.tally.firstToken.add(firstAtMs - request.atMs);
        firstByteMs = firstAtMs - admittedAtMs;
        ended({ outcome: "answered" }, firstAtMs);
      },
      ended: () => {
        dispatched.over();
        ended({ outcome: "served", firstByteMs }, this.clock.monotonicMs());
        if (this.#options.limits) this.#limiter.leave(account, client.id);
        client.tally.served++;
        const { tokens } = slot.times;
        tokens.set(model, (tokens.get(model) ?? 0) + request.inputTokens + request.outputTokens);
        this.#live--;
      },
      refused: (kind, afterMs) => {
        dispatched.over();
        ended(endOfRefusal(errorOf(kind), nothing), this.clock.monotonicMs());
        if (tried.size < attemptsMax && mayAskAnother(busy, nothing))
          this.#ask(client, router, account, tried, afterMs);
        else this.#refused(client, account, afterMs);
      },
      lost: () => {
        dispatched.over();
        ended(failed, this.clock.monotonicMs());
        if (firstByteMs !== undefined) this.#broke(client, account);
        else if (tried.size < attemptsMax) this.#ask(client, router, account, tried);
        else this.#refused(client, account, noNodeRetryMs);
      },
    });
  }

  /** The client has read a part of its answer, so the router asks no second node. The client asks again. */
  #broke({ request, tally, id }: Client, account: AccountId): void {
    tally.broken++;
    if (this.#options.limits) this.#limiter.leave(account, id);
    this.#come({ ...request, atMs: this.clock.monotonicMs() });
  }

  #nodesOf(model: ModelId): readonly TimedNode[] {
    return this.#hosting.getOrInsertComputed(model, () => this.nodes.filter(({ models }) => models.has(model)));
  }

  #refused(client: Client, account: AccountId, retryAfterMs: number): void {
    client.tally.refused++;
    if (this.#options.limits) this.#limiter.leave(account, client.id);
    this.#comeBack(client, retryAfterMs);
  }

  #comeBack(client: Client, retryAfterMs: number): void {
    const ownMs = this.#options.retryMs[client.attempts - 1];
    if (ownMs === undefined) {
      client.tally.gaveUp++;
      this.#live--;
      return;
    }
    const toldMs = 1_000 * shownRetrySeconds(retryAfterMs / 1_000);
    this.clock.after(Math.max(ownMs, toldMs), () => this.#attempt(client));
  }
}

/** Every refusal of a slot has this status. */
const busy = { status: 503 };

function errorOf(code: RefusalKind): Parameters<typeof endOfRefusal>[0] {
  return { body: { error: { message: "", type: "", param: null, code } } };
}
