/**
 * Chooses the node and slot for a request. Pure. The view may be a second old; the slot itself decides in the end, so that a
 * wrong choice costs a detour, never correctness.
 */
import type { ModelId, NodeId, SlotName } from "@weiche/shared/ids.ts";
import { isServedBy, SlotState, waitingFor, type NodeView, type SlotView } from "./node-view.ts";

export interface PlacementRequest {
  readonly model: ModelId;
  /** Equal for the same account, model and beginning of a conversation: the node may have the prefix in its cache. */
  readonly affinityKey?: string;
}

export interface Placed {
  readonly node: NodeId;
  readonly slot: SlotName;
}

export type Placement = Placed | Unplaced;

export interface Unplaced {
  readonly refused: "no_node_available" | "maintenance";
  /** For how long no node that serves the model has been heard of. Absent: one is there, or none was ever known. */
  readonly awayMs?: number;
}

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
  let found = look(model, nodes, nowMs, exclude, true);
  // A second attempt must not be a trial: nothing would be left to rescue it.
  const trial = exclude?.size ? undefined : found.due.find(({ rank }) => rank < ranks.empty && rank <= found.rank);
  if (trial) return placedOn(trial.candidate);
  if (found.rank > ranks.taken && found.isAvoiding) found = look(model, nodes, nowMs, exclude, false);
  const { best, rank, reportedFull, isMaintained } = found;
  if (best.length === 0) {
    if (isMaintained) return { refused: "maintenance" };
    const awayMs = nowMs - found.seenAtMs;
    return { refused: "no_node_available", ...(awayMs < Infinity && { awayMs }) };
  }
  if (rank === ranks.active) best.push(...reportedFull.filter(({ slot }) => slot.state === SlotState.ACTIVE));
  return placedOn(choose(best, rank, request, nowMs, random));
}

interface Found {
  rank: Rank;
  /** The candidates of this rank. */
  best: Candidate[];
  /** Full by their reports, but perhaps no longer. */
  readonly reportedFull: Candidate[];
  /** In trouble, and due to be tried; with the ranks that they would have otherwise. */
  readonly due: { readonly candidate: Candidate; readonly rank: Rank }[];
  /** Whether a candidate was left out because its requests fail. */
  isAvoiding: boolean;
  isMaintained: boolean;
  /** Time of the last report from a node that serves the model and is now out of reach. */
  seenAtMs: number;
}

/** `avoids`: slots whose requests fail are left out, and those that are slow count as full. */
function look(
  model: ModelId,
  nodes: readonly NodeView[],
  nowMs: number,
  exclude: ReadonlySet<NodeId> | undefined,
  avoids: boolean,
): Found {
  const found: Found = {
    ...{ rank: ranks.backoff, best: [], reportedFull: [], due: [], isAvoiding: false, isMaintained: false },
    seenAtMs: -Infinity,
  };
  for (const node of nodes) {
    if (exclude?.has(node.node)) continue;
    if (!node.reachable) {
      if (node.slots.some(({ models }) => models.includes(model)))
        found.seenAtMs = Math.max(found.seenAtMs, node.reportedAtMs);
      continue;
    }
    for (const slot of node.slots) {
      if (!slot.models.includes(model)) continue;
      found.isMaintained ||= node.maintenance;
      if (node.maintenance || !node.admitting) continue;
      const candidate = { node: node.node, slot, ageMs: nowMs - node.reportedAtMs };
      const rank = rankOf(candidate, model);
      const trouble = avoids ? slot.troubles?.get(model) : undefined;
      if (!trouble) add(found, candidate, rank, rank === ranks.full && !isStillFull(candidate, model));
      else {
        if (nowMs >= trouble.tryAtMs) found.due.push({ candidate, rank });
        if (trouble.kind === "failing") found.isAvoiding = true;
        else add(found, candidate, rank < ranks.full ? ranks.full : rank, false);
      }
    }
  }
  return found;
}

function add(found: Found, candidate: Candidate, rank: Rank, isReportedFull: boolean): void {
  if (isReportedFull) found.reportedFull.push(candidate);
  if (rank > found.rank) return;
  if (rank < found.rank) found.best = [];
  found.rank = rank;
  found.best.push(candidate);
}

function placedOn({ node, slot }: Candidate): Placed {
  return { node, slot: slot.name };
}

interface Candidate {
  readonly node: NodeId;
  readonly slot: SlotView;
  /** Of the report. */
  readonly ageMs: number;
}

/** Best first. */
const ranks = {
  active: 0,
  drainingOpen: 1,
  /** The slot starts the model, switches to it, or has waiters that will make it do so. */
  starting: 2,
  empty: 3,
  idle: 4,
  /** Serves the model, but its engine is full, or was when it last reported: the request may wait for a place. */
  full: 5,
  /** Another model is served or comes next, and requests for this model already wait for a later turn. */
  awaited: 6,
  /** Would have to drain another model first. */
  busy: 7,
  /** Switches to another model: ours would come after it. */
  taken: 8,
  /** Was serving the model, and holds or refuses requests for it until its next turn. */
  closed: 9,
  backoff: 10,
} as const;

type Rank = (typeof ranks)[keyof typeof ranks];

/** Slots that run or start the model share requests by load. Of the others, where an engine must start, all routers choose the same slot. */
function choose(
  candidates: readonly Candidate[],
  rank: Rank,
  { model, affinityKey }: PlacementRequest,
  nowMs: number,
  random: () => number,
): Candidate {
  const isShared = rank <= ranks.starting || rank === ranks.full || rank === ranks.awaited;
  if (!isShared) return agree(candidates, rank, model, nowMs);
  if (affinityKey !== undefined && rank < ranks.starting) {
    const home = homeOf(affinityKey, candidates, model);
    if (takesMore(home, candidates, model)) return home;
  }
  return leastFull(candidates, model, random);
}

function rankOf({ slot, ageMs }: Candidate, model: ModelId): Rank {
  const isOwn = isServedBy(slot, slot.activeModel, model);
  const isNext = isServedBy(slot, slot.nextModel, model);
  switch (slot.state) {
    case SlotState.ACTIVE:
      if (isOwn) return isFull(slot, model) ? ranks.full : ranks.active;
      if (slot.waiting > 0) return waitingFor(slot, model) > 0 ? ranks.starting : ranks.taken;
      return slot.running === 0 ? ranks.idle : ranks.busy;
    case SlotState.STARTING:
      if (!isOwn) return rankBehind(slot, model);
      return isFull(slot, model) ? ranks.full : ranks.starting;
    case SlotState.DRAINING_OPEN:
      if (isNext) return ranks.starting;
      if (!isOwn) return rankBehind(slot, model);
      if ((slot.closesInMs ?? Infinity) <= ageMs) return ranks.closed;
      return isFull(slot, model) ? ranks.full : ranks.drainingOpen;
    case SlotState.DRAINING_CLOSED:
    case SlotState.STOPPING:
      if (isNext) return ranks.starting;
      return isOwn ? ranks.closed : rankBehind(slot, model);
    case SlotState.EMPTY:
      return ranks.empty;
    case SlotState.FAILED:
      return (slot.retryInMs ?? 0) > ageMs ? ranks.backoff : ranks.empty;
  }
}

/** Requests for one model wait in the same slot, because each slot in which they wait has one more switch. */
function rankBehind(slot: SlotView, model: ModelId): Rank {
  return waitingFor(slot, model) > 0 ? ranks.awaited : ranks.taken;
}

/** By what this router knows and the report says, whatever its age: reason enough to start another engine. */
function isFull(slot: SlotView, model: ModelId): boolean {
  return slot.inFlight + othersAt(slot, model) >= (slot.maxConcurrent ?? Infinity);
}

/**
 * Whether probably less than one place is free. If an old report could exclude a slot among running ones, all routers would
 * keep away from it until its next report, and fill the other ones meanwhile.
 */
function isStillFull({ slot, ageMs }: Candidate, model: ModelId): boolean {
  const others = othersAt(slot, model) * (1 - endedShare(slot, ageMs));
  return slot.inFlight + others > (slot.maxConcurrent ?? Infinity) - 1;
}

/**
 * The share of reported requests that have probably ended since the report, 0 to 1. Of a dozen requests with exponential
 * durations, the oldest has run for about three times the mean.
 */
function endedShare({ oldestRunningMs = 0 }: SlotView, ageMs: number): number {
  return Math.min(1, (3 * ageMs) / Math.max(1, oldestRunningMs));
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

/** Places for the model; 1 while its engine has not said how many it has. */
function placesOf(slot: SlotView, model: ModelId): number {
  return (isServedBy(slot, slot.activeModel, model) ? slot.maxConcurrent : undefined) ?? 1;
}

/** The share of the slot's places for the model that are taken, 0 or more. */
export function fullnessOf(slot: SlotView, model: ModelId): number {
  return (slot.inFlight + othersAt(slot, model)) / placesOf(slot, model);
}

/** Chooses the slot that would be the least full with this request, ties at random. */
function leastFull(candidates: readonly Candidate[], model: ModelId, random: () => number): Candidate {
  const fullness = ({ slot }: Candidate) => (loadOf(slot, model) + 1) / placesOf(slot, model);
  const least = Math.min(...candidates.map(fullness));
  const ties = candidates.filter((candidate) => fullness(candidate) === least);
  return ties[Math.floor(random() * ties.length)]!;
}

/** The slot whose prefix cache a conversation uses: rendezvous hashing, by which a slot gets as much as it has places. */
function homeOf(affinityKey: string, candidates: readonly Candidate[], model: ModelId): Candidate {
  return maximum(candidates, (candidate) => {
    const chance = (weightOf(affinityKey, candidate) + 0.5) / 2 ** 32;
    return -placesOf(candidate.slot, model) / Math.log(chance);
  });
}

/**
 * Whether the home takes more: its load is below 1.25 times the mean, and it keeps places free for what other routers may
 * have sent since its report, one standard deviation of the number of requests that have ended and been replaced. With one
 * router nothing is kept free: its own view is exact.
 */
function takesMore(home: Candidate, candidates: readonly Candidate[], model: ModelId): boolean {
  let [load, taken, places] = [1, 0, 0];
  for (const { slot } of candidates) {
    load += loadOf(slot, model);
    taken += slot.inFlight + othersAt(slot, model);
    places += placesOf(slot, model);
  }
  const homePlaces = placesOf(home.slot, model);
  const timesMean = loadOf(home.slot, model) / homePlaces / (load / places);
  const replaced = othersAt(home.slot, model) === 0 ? 0 : endedShare(home.slot, home.ageMs);
  const keptFree = Math.sqrt(replaced / homePlaces);
  return timesMean < 1.25 && timesMean * (taken / places) < 1 - keptFree;
}

/** Chooses by values that all routers see alike, then by rendezvous hashing of model and slot. */
function agree(candidates: readonly Candidate[], rank: Rank, model: ModelId, nowMs: number): Candidate {
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
  let best = candidates[0]!;
  let most = -Infinity;
  for (const candidate of candidates) {
    const its = weight(candidate);
    if (its > most) [best, most] = [candidate, its];
  }
  return best;
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
