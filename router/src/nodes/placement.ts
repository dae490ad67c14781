/**
 * Chooses the node and slot for a request. Pure. The view may be a second old; the slot itself decides in the end, so that a
 * wrong choice costs a detour, never correctness.
 */
import type { ModelId, NodeId, SlotName } from "@weiche/shared/ids.ts";
import { SlotState, waitingFor, type NodeView, type SlotView } from "./node-view.ts";

export interface PlacementRequest {
  readonly model: ModelId;
  /** Equal for the same account, model and beginning of a conversation: the node may have the prefix in its cache. */
  readonly affinityKey?: string;
}

export interface Placed {
  readonly node: NodeId;
  readonly slot: SlotName;
}

export type Placement = Placed | { readonly refused: "no_node_available" | "maintenance" };

/**
 * `nowMs` is monotonic, `random` is in [0, 1), `exclude` are nodes that were tried already. Several routers that decide at
 * once choose the same slot where an engine would have to start or switch.
 */
export function place(
  request: PlacementRequest,
  nodes: readonly NodeView[],
  nowMs: number,
  random: () => number,
  exclude?: ReadonlySet<NodeId>,
): Placement {
  const { model } = request;
  let best: Candidate[] = [];
  let bestRank: number = Infinity;
  let maintained = false;
  for (const node of nodes) {
    if (!node.reachable || exclude?.has(node.node)) continue;
    for (const slot of node.slots) {
      if (!slot.models.includes(model)) continue;
      maintained ||= node.maintenance;
      if (node.maintenance || !node.admitting) continue;
      const rank = rankOf(slot, model, nowMs - node.reportedAtMs);
      if (rank > bestRank) continue;
      if (rank < bestRank) best = [];
      bestRank = rank;
      best.push({ node: node.node, slot });
    }
  }
  if (best.length === 0) return { refused: maintained ? "maintenance" : "no_node_available" };
  const { node, slot } = isShared(bestRank)
    ? share(best, request.affinityKey, model, random)
    : bestRank === ranks.full
      ? leastOf(best, (waiting) => loadOf(waiting, model) / (waiting.maxConcurrent ?? 1), random)
      : agree(best, bestRank, model, nowMs);
  return { node, slot: slot.name };
}

interface Candidate {
  readonly node: NodeId;
  readonly slot: SlotView;
}

/** Best first. */
const ranks = {
  active: 0,
  drainingOpen: 1,
  /** The slot starts the model, switches to it, or has waiters that will make it do so. */
  starting: 2,
  empty: 3,
  idle: 4,
  /** Serves the model, but its engine is full: the request would wait for a place. */
  full: 5,
  /** Would have to drain another model first. */
  busy: 6,
  /** Switches to another model: ours would come after it. */
  taken: 7,
  /** Was serving the model and refuses it now. */
  closed: 8,
  backoff: 9,
} as const;

type Rank = (typeof ranks)[keyof typeof ranks];

/** Whether slots of this rank share requests by load. Of the others, where an engine must start, all routers choose the same slot. */
function isShared(rank: number): boolean {
  return rank <= ranks.starting;
}

function rankOf(slot: SlotView, model: ModelId, ageMs: number): Rank {
  const isOwn = slot.activeModel === model;
  switch (slot.state) {
    case SlotState.ACTIVE:
      if (isOwn) return isFull(slot, model) ? ranks.full : ranks.active;
      if (slot.waiting > 0) return waitingFor(slot, model) > 0 ? ranks.starting : ranks.taken;
      return slot.running === 0 ? ranks.idle : ranks.busy;
    case SlotState.STARTING:
      if (!isOwn) return ranks.taken;
      return isFull(slot, model) ? ranks.full : ranks.starting;
    case SlotState.DRAINING_OPEN:
      if (slot.nextModel === model) return ranks.starting;
      if (!isOwn) return ranks.taken;
      if ((slot.closesInMs ?? Infinity) <= ageMs) return ranks.closed;
      return isFull(slot, model) ? ranks.full : ranks.drainingOpen;
    case SlotState.DRAINING_CLOSED:
    case SlotState.STOPPING:
      if (slot.nextModel === model) return ranks.starting;
      return isOwn ? ranks.closed : ranks.taken;
    case SlotState.EMPTY:
      return ranks.empty;
    case SlotState.FAILED:
      return (slot.retryInMs ?? 0) > ageMs ? ranks.backoff : ranks.empty;
  }
}

function isFull(slot: SlotView, model: ModelId): boolean {
  const seen = slot.running + waitingFor(slot, model);
  return Math.max(seen, slot.inFlight + othersAt(slot, model)) >= (slot.maxConcurrent ?? Infinity);
}

/** The load of other routers: the report without this router's requests, which `inFlight` counts already. */
function othersAt(slot: SlotView, model: ModelId): number {
  const mineWaiting = Math.max(0, slot.inFlight - slot.runningOfRouter);
  const running = Math.max(0, slot.running - slot.runningOfRouter);
  return running + Math.max(0, waitingFor(slot, model) - mineWaiting);
}

/** Reported load counts a quarter: the report is old, and all routers that followed it would choose the same slot. */
function loadOf(slot: SlotView, model: ModelId): number {
  return slot.inFlight + othersAt(slot, model) / 4;
}

/** Chooses by affinity unless that slot is overloaded, otherwise the least loaded slot, ties at random. */
function share(
  candidates: readonly Candidate[],
  affinityKey: string | undefined,
  model: ModelId,
  random: () => number,
): Candidate {
  const load = (slot: SlotView) => loadOf(slot, model);
  if (affinityKey === undefined) return leastOf(candidates, load, random);
  const total = candidates.reduce((sum, { slot }) => sum + load(slot), 0);
  const bound = (1.25 * (total + 1)) / candidates.length;
  const cool = candidates.filter(({ slot }) => load(slot) < bound);
  return maximum(cool, (candidate) => weightOf(affinityKey, candidate));
}

function leastOf(candidates: readonly Candidate[], load: (slot: SlotView) => number, random: () => number): Candidate {
  const least = Math.min(...candidates.map(({ slot }) => load(slot)));
  const ties = candidates.filter(({ slot }) => load(slot) === least);
  return ties[Math.floor(random() * ties.length)]!;
}

/** Chooses by values that all routers see alike, then by rendezvous hashing of model and slot. */
function agree(candidates: readonly Candidate[], rank: number, model: ModelId, nowMs: number): Candidate {
  const cost = ({ slot }: Candidate) => {
    if (rank === ranks.idle) return -idleSteps(slot, nowMs);
    if (rank === ranks.busy) return slot.running;
    if (rank === ranks.taken) return slot.waiting;
    return 0;
  };
  const least = Math.min(...candidates.map(cost));
  const equal = candidates.filter((candidate) => cost(candidate) === least);
  return maximum(equal, (candidate) => weightOf(model, candidate));
}

/** Idle time in doubling steps: routers that saw a slot become idle at slightly different times still agree. */
function idleSteps(slot: SlotView, nowMs: number): number {
  return Math.floor(Math.log2(1 + (nowMs - (slot.idleSinceMs ?? nowMs)) / 1000));
}

function maximum(candidates: readonly Candidate[], weight: (candidate: Candidate) => number): Candidate {
  return candidates.reduce((best, candidate) => (weight(candidate) > weight(best) ? candidate : best));
}

/** Rendezvous weight of a slot for a key: FNV-1a over the names, then murmur3's finalizer to spread it. */
function weightOf(key: string, { node, slot }: Candidate): number {
  let hash = 0x811c9dc5;
  for (const part of [key, node, slot.name]) {
    for (let i = 0; i < part.length; i++) hash = Math.imul(hash ^ part.charCodeAt(i), 0x01000193);
    hash = Math.imul(hash ^ 0xff, 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
