/**
 * Several nodes with one slot each under a load on virtual time. Slots are production ones with engines that only take time.
 * Routers place requests with the production registry by production reports.
 */
import type { ModelId, NodeId } from "@weiche/shared/ids.ts";
import { asId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/testing/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { loadReport, reportEveryMs, reportSpacingMs } from "@weiche/node-agent/src/links/load.ts";
import { activeOf, shownState, viewOf, type Running } from "@weiche/node-agent/src/slots/slot-view.ts";
import { readReport } from "@weiche/router/src/nodes/node-link-codec.ts";
import type { PlacementRequest } from "@weiche/router/src/nodes/placement.ts";
import { NodeRegistry, type NodeLinkEntry } from "@weiche/router/src/nodes/registry.ts";
import type { Strategy } from "../placement-strategies.ts";
import { serveLoad, type Attempt, type RunOptions, type RunResult } from "./policy-run.ts";
import { TimedSlot, type Arrival } from "./timed-slot.ts";

interface FleetOptions extends RunOptions {
  readonly seed: number;
  /** The number of nodes. Each has one slot, which may serve every model. */
  readonly slots: number;
  readonly routers: number;
  /** The time that a report takes to reach a router. */
  readonly newsMs: number;
  readonly strategy: Strategy;
  /** Returns what a router knows about a request besides its model. */
  readonly known: (arrival: Arrival) => Omit<PlacementRequest, "model"> & { readonly tokens?: number };
}

/** The maximum number of nodes that a router asks for one attempt of a client. */
const nodesMax = 2;

export function runFleet(options: FleetOptions): Pick<RunResult, "outcomes" | "refusals" | "switches"> {
  const clock = new VirtualClock(0);
  const random = createRandom(options.seed);
  const nodes = Array.from({ length: options.slots }, (_, index) => new FleetNode(`node-${index}`, options, clock));
  const routers = Array.from({ length: options.routers }, (_, index) => {
    const registry = new NodeRegistry();
    for (const node of nodes) node.linkTo(`router-${index}`, registry, random.next() * reportEveryMs);
    return { id: `router-${index}`, registry };
  });
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const attempt: Attempt = (arrival, on) => {
    const { id, registry } = random.pick(routers);
    const tried = new Set<NodeId>();
    const ask = (refusal?: Parameters<typeof on.refused>) => {
      const nowMs = clock.monotonicMs();
      const request = { ...options.known(arrival), model: arrival.model };
      const placed = options.strategy(request, registry.view(nowMs), nowMs, () => random.next(), tried);
      if ("refused" in placed) return on.refused(...(refusal ?? (["overloaded", 1_000] as const)));
      tried.add(placed.node);
      const dispatched = registry.dispatched(placed.node, placed.slot);
      byName.get(placed.node)!.ask(id, arrival, {
        admitted: () => on.admitted(),
        ended: () => dispatched.over(),
        refused: (...why) => {
          dispatched.over();
          if (tried.size < nodesMax) ask(why);
          else on.refused(...why);
        },
      });
    };
    ask();
  };
  clock.advance(options.newsMs);
  const lastMs = options.load.at(-1)!.atMs;
  const result = serveLoad(options.load, clock, attempt, lastMs + settleMs);
  return { ...result, switches: nodes.reduce((sum, { starts }) => sum + starts, 0) };
}

/** The time for the last requests to end, because reports continue without end. */
const settleMs = 3_600_000;

class FleetNode {
  readonly name: NodeId;
  readonly #slot: TimedSlot;
  readonly #clock: VirtualClock;
  readonly #options: FleetOptions;
  readonly #links = new Map<string, NodeLinkEntry>();
  readonly #running = new Set<Running>();
  #told = "";
  #reportedAtMs = -Infinity;
  #isReporting = false;

  constructor(name: string, options: FleetOptions, clock: VirtualClock) {
    this.name = asId<NodeId>(name);
    this.#options = options;
    this.#clock = clock;
    this.#slot = new TimedSlot(options, clock);
    this.#slot.onEvent = () => this.#reportMove();
  }

  get starts(): number {
    return this.#slot.starts;
  }

  ask(
    routerId: string,
    arrival: Arrival,
    on: { admitted(): void; ended(): void; refused: Parameters<Attempt>[1]["refused"] },
  ): void {
    let running: Running | undefined;
    this.#slot.ask({
      arrival,
      refused: on.refused,
      admitted: () => {
        running = { routerId, places: 1, sinceMs: this.#clock.monotonicMs() };
        this.#running.add(running);
        on.admitted();
      },
      ended: () => {
        this.#running.delete(running!);
        on.ended();
      },
    });
  }

  linkTo(routerId: string, registry: NodeRegistry, afterMs: number): void {
    const slots = [{ name: "a" as never, models: this.#options.models as ModelId[] }];
    const link = registry.linkUp({ node: this.name, bootId: "1", agentVersion: "", slots }, this.#clock.monotonicMs());
    registry.connectionUp(this.name);
    this.#links.set(routerId, link);
    const report = () => {
      this.#report(routerId, link);
      this.#clock.after(reportEveryMs, report);
    };
    this.#report(routerId, link);
    this.#clock.after(afterMs, report);
  }

  /** Reports soon after the slot's state has changed, like an agent. */
  #reportMove(): void {
    const { slot } = this.#slot;
    const nowMs = this.#clock.monotonicMs();
    const now = `${shownState(slot.state, nowMs)} ${activeOf(slot.state)}`;
    if (now === this.#told) return;
    this.#told = now;
    if (this.#isReporting) return;
    this.#isReporting = true;
    this.#clock.after(Math.max(0, this.#reportedAtMs + reportSpacingMs - nowMs), () => {
      this.#isReporting = false;
      this.#reportedAtMs = this.#clock.monotonicMs();
      for (const [routerId, link] of this.#links) this.#report(routerId, link);
    });
  }

  #report(routerId: string, link: NodeLinkEntry): void {
    const running = [...this.#running];
    const view = viewOf(
      this.#slot.slot,
      {
        name: "a" as never,
        engines: this.#options.models.map((model) => ({ model })),
        askedOf: () => undefined,
        running,
        sleepers: [],
      },
      this.#clock.monotonicMs(),
    );
    const load = { slots: [view], engines: new Map(), maintenance: false, admitting: true };
    const report = readReport(loadReport(load, routerId, 0n));
    if (typeof report === "string") throw new Error(report);
    this.#clock.after(this.#options.newsMs, () => link.report(report, this.#clock.monotonicMs()));
  }
}
