/** The operators' API that steers nodes: maintenance and prewarm. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Type, type Static } from "typebox";
import { sleep, type Clock } from "@weiche/shared/time/clock.ts";
import { nearest } from "@weiche/shared/files/config-file.ts";
import { asId, type ModelId, type NodeId } from "@weiche/shared/ids.ts";
import { Refused } from "../../rights/refused.ts";
import type { NodeWishes } from "../../nodes/node-wishes.ts";
import type { Placement } from "../../nodes/placement.ts";
import type { NodeDetail } from "../../nodes/registry.ts";
import { nodeState } from "./node-views.ts";

export interface NodeSteering {
  readonly wishes: Pick<NodeWishes, "of" | "setMaintenance" | "prewarm">;
  readonly nodes: () => readonly NodeDetail[];
  readonly models: () => readonly ModelId[];
  readonly place: (model: ModelId) => Placement;
  readonly clock: Clock;
}

const closed = { additionalProperties: false } as const;
const maintenance = Type.Object({ node: Type.String(), on: Type.Boolean() }, closed);
const prewarm = Type.Object({ model: Type.String(), node: Type.Optional(Type.String()) }, closed);

/** How long a node is given to report that it did as told. */
const agreedMsMax = 1_500;
const lookEveryMs = 20;

export function addNodeRoutes(app: FastifyInstance, steering: NodeSteering): void {
  app.post("/nodes/maintenance", { schema: { body: maintenance } }, async (request: FastifyRequest) => {
    const { node, on } = request.body as Static<typeof maintenance>;
    return setMaintenance(asId<NodeId>(node), on, steering);
  });
  app.post("/prewarm", { schema: { body: prewarm } }, async (request: FastifyRequest) => {
    const { model, node } = request.body as Static<typeof prewarm>;
    requireKnown("model", model, steering.models());
    const target = node === undefined ? chooseNode(asId(model), steering) : findNode(asId(node), asId(model), steering);
    return prewarmOn(target, asId(model), steering);
  });
}

/** Answers with the state that the node is in then: it stays in maintenance when its own side says so too. */
async function setMaintenance(node: NodeId, on: boolean, { wishes, nodes, clock }: NodeSteering) {
  const detail = () => nodes().find(({ view }) => view.node === node);
  if (!wishes.of(node)) requireNode(node, nodes());
  await wishes.setMaintenance(node, on);
  const untilMs = clock.monotonicMs() + agreedMsMax;
  const agrees = () => !detail()?.linked || detail()?.report?.maintenance === on;
  while (!agrees() && clock.monotonicMs() < untilMs) await sleep(clock, lookEveryMs);
  const seen = detail();
  return { node, maintenance: on, state: seen ? nodeState(seen.view, seen.linked) : "gone" };
}

async function prewarmOn(detail: NodeDetail, model: ModelId, { wishes }: NodeSteering) {
  const { node, slots } = detail.view;
  const active = slots.find((slot) => slot.active === model && slot.kind === "active" && slot.waiting === 0);
  if (active) return { model, node, slot: active.name, state: "active" };
  await wishes.prewarm(node, model);
  return { model, node, state: "asked" };
}

/** Where a request for the model would go. */
function chooseNode(model: ModelId, { nodes, place }: NodeSteering): NodeDetail {
  const placed = place(model);
  if ("node" in placed) return nodes().find(({ view }) => view.node === placed.node)!;
  if (placed.refused === "maintenance") throw new Refused("conflict", `every node of ${model} is in maintenance`);
  throw new Refused("conflict", `no node that has ${model} can be reached`);
}

function findNode(node: NodeId, model: ModelId, { nodes }: NodeSteering): NodeDetail {
  const detail = requireNode(node, nodes());
  if (!detail.hello.slots.some((slot) => slot.models.includes(model)))
    throw new Refused("invalid", `${node} does not have ${model}`);
  if (!detail.view.reachable) throw new Refused("conflict", `${node} cannot be reached`);
  return detail;
}

function requireNode(node: NodeId, nodes: readonly NodeDetail[]): NodeDetail {
  const names = nodes.map(({ view }) => view.node);
  requireKnown("node", node, names);
  return nodes[names.indexOf(node)]!;
}

function requireKnown(what: string, name: string, known: readonly string[]): void {
  if (known.includes(name)) return;
  const near = nearest(name, known);
  throw new Refused(
    "not_found",
    `there is no ${what} "${name}"${near === undefined ? "" : `; did you mean "${near}"?`}`,
  );
}
