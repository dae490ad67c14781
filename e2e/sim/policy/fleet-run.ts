/**
 * Several nodes with one slot each under a load on virtual time. Slots are production ones with engines that only take time.
 * Routers place requests with the production registry by production reports.
 */
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { reportEveryMs } from "@weiche/node-agent/src/links/load.ts";
import type { PlacementRequest } from "@weiche/router/src/nodes/placement.ts";
import { NodeRegistry } from "@weiche/router/src/nodes/registry.ts";
import { EventQueue } from "@weiche/router/src/simulate/engine/event-queue.ts";
import { TimedNode } from "@weiche/router/src/simulate/engine/timed-node.ts";
import type { Strategy } from "../placement-strategies.ts";
import { policySlot, type Arrival } from "./arrival.ts";
import { serveLoad, type Attempt, type RunOptions, type RunResult } from "./policy-run.ts";

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
  const clock = new EventQueue();
  const random = createRandom(options.seed);
  const slot = policySlot(options);
  const nodes = Array.from(
    { length: options.slots },
    (_, index) => new TimedNode(asId<NodeId>(`node-${index}`), [slot], options.newsMs, clock),
  );
  const routers = Array.from({ length: options.routers }, (_, index) => {
    const registry = new NodeRegistry();
    for (const node of nodes) node.linkTo(index, registry, random.next() * reportEveryMs);
    return { number: index, registry };
  });
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const attempt: Attempt = (arrival, on) => {
    const { number, registry } = random.pick(routers);
    const { model, account, promptTokens, completionTokens } = arrival;
    const tried = new Set<NodeId>();
    const ask = (refusal?: Parameters<typeof on.refused>) => {
      const nowMs = clock.monotonicMs();
      for (const node of nodes) node.refresh(number);
      const request = { ...options.known(arrival), model };
      const placed = options.strategy(request, registry.view(nowMs), nowMs, () => random.next(), tried);
      if ("refused" in placed) return on.refused(...(refusal ?? (["overloaded", 1_000] as const)));
      tried.add(placed.node);
      const dispatched = registry.dispatched(placed.node, placed.slot);
      byName.get(placed.node)!.slots[0]!.ask({
        ...{ model, account, inputTokens: promptTokens, outputTokens: completionTokens, router: number },
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
  const result = serveLoad(options.load, clock, attempt);
  return { ...result, switches: nodes.reduce((sum, { slots }) => sum + slots[0]!.times.starts, 0) };
}
