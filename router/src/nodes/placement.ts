/**
 * Chooses the node and slot for a request. Pure. The view may be a second old, and the slot makes the final decision. A
 * wrong choice therefore costs a detour, never correctness.
 */
import type { ModelId, NodeId, SlotName } from "@weiche/shared/ids.ts";
import { isServedBy, SlotState, waitingFor, type NodeView, type SlotView } from "./node-view.ts";
import { maximum, weightOf } from "./rendezvous.ts";

export interface PlacementRequest {
  readonly model: ModelId;
  /**
   * Equal for requests with the same account, model and beginning of a conversation. The node may have this prefix in
   * its cache.
   */
  readonly affinityKey?: string;
}

export interface Placed {
  readonly node: NodeId;
  readonly slot: SlotName;
}

export type Placement = Placed | Unplaced;

export interface Unplaced {
  readonly refused: "no_node_available" | "maintenance";
  /**
   * Time since the last report of a node that serves the model. Undefined if such a node is linked, or if none was ever
   * known.
   */
  readonly awayMs?: number;
}

/**
 * `nowMs` is monotonic, `random` is in [0, 1), and `exclude` contains the nodes tried already. Where an engine would
 * have to start or switch, all routers that decide at the same time choose the same slot.
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
  // A second attempt must not be a trial, because a third attempt does not exist.
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
  /** The candidates with the best rank so far. */
  best: Candidate[];
  /** Slots that were full when they reported, but perhaps are no longer. */
  readonly reportedFull: Candidate[];
  /** Slots in trouble that are due for a trial, with the ranks they would have without trouble. */
  readonly due: { readonly candidate: Candidate; readonly rank: Rank }[];
  /** Whether a candidate was left out because its requests fail. */
  isAvoiding: boolean;
  isMaintained: boolean;
  /** Time of the last report from an unreachable node that serves the model. */
  seenAtMs: number;
}

/** With `avoids`, slots whose requests fail are left out, and slow slots count as full. */
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
    const { maintenance, admitting } = node;
    const ageMs = nowMs - node.reportedAtMs;
    for (const slot of node.slots) {
      if (!slot.models.includes(model)) continue;
      found.isMaintained ||= maintenance;
      if (maintenance || !admitting) continue;
      const rank = rankOf(slot, ageMs, model);
      const trouble = avoids ? slot.troubles?.get(model) : undefined;
      if (!trouble && rank > found.rank && rank !== ranks.full) continue;
      const candidate = { node: node.node, slot, ageMs };
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
  /** The age of the node's report. */
  readonly ageMs: number;
}

/** Best first. */
const ranks = {
  active: 0,
  drainingOpen: 1,
  /** The slot starts the model, switches to it, or has waiters that will cause a switch to it. */
  starting: 2,
  empty: 3,
  idle: 4,
  /** Serves the model, but its engine is full or was full at the last report. The request may wait for a place. */
  full: 5,
  /** Serves or switches to another model, and requests for this model already wait for a later turn. */
  awaited: 6,
  /** Must drain another model first. */
  busy: 7,
  /** Switches to another model. The request would wait for the switch after it. */
  taken: 8,
  /** Served the model until now. Holds or refuses requests for it until its next turn. */
  closed: 9,
  backoff: 10,
} as const;

type Rank = (typeof ranks)[keyof typeof ranks];

/** Slots with the model share requests by load. Where an engine must start, all routers choose the same slot. */
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

function rankOf(slot: SlotView, ageMs: number, model: ModelId): Rank {
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

/** Requests for one model wait in the same slot, because each further slot with waiters costs a further switch. */
function rankBehind(slot: SlotView, model: ModelId): Rank {
  return waitingFor(slot, model) > 0 ? ranks.awaited : ranks.taken;
}

/** Whether this router's count and the report, however old, call the slot full. It may justify another engine. */
function isFull(slot: SlotView, model: ModelId): boolean {
  return slot.inFlight + othersAt(slot, model) >= (slot.maxConcurrent ?? Infinity);
}

/**
 * Returns whether probably less than one place is free. If an old report could exclude a running slot, all routers
 * would avoid it until its next report and fill the other slots meanwhile.
 */
function isStillFull({ slot, ageMs }: Candidate, model: ModelId): boolean {
  const others = othersAt(slot, model) * (1 - endedShare(slot, ageMs));
  return slot.inFlight + others > (slot.maxConcurrent ?? Infinity) - 1;
}

/**
 * The share of the reported requests that have probably ended since the report, 0 to 1. Among a dozen requests with
 * exponential durations, the oldest has run for about three times the mean.
 */
function endedShare({ oldestRunningMs = 0 }: SlotView, ageMs: number): number {
  return Math.min(1, (3 * ageMs) / Math.max(1, oldestRunningMs));
}

/** The load of other routers: the report without this router's requests, which `inFlight` already counts. */
function othersAt(slot: SlotView, model: ModelId): number {
  const mineWaiting = Math.max(0, slot.inFlight - slot.runningOfRouter);
  const running = Math.max(0, slot.running - slot.runningOfRouter);
  return running + Math.max(0, waitingFor(slot, model) - mineWaiting);
}

/** Reported load counts a quarter. With full weight for an old report all routers would choose the same slot. */
function loadOf(slot: SlotView, model: ModelId): number {
  return slot.inFlight + othersAt(slot, model) / 4;
}

/** Places for the model. 1 while the number of places is unknown. */
function placesOf(slot: SlotView, model: ModelId): number {
  return (isServedBy(slot, slot.activeModel, model) ? slot.maxConcurrent : undefined) ?? 1;
}

/** The share of the slot's places for the model that are taken. It may exceed 1. */
export function fullnessOf(slot: SlotView, model: ModelId): number {
  return (slot.inFlight + othersAt(slot, model)) / placesOf(slot, model);
}

/** Chooses the slot that is the least full after it has taken this request. Chance decides between equal slots. */
function leastFull(candidates: readonly Candidate[], model: ModelId, random: () => number): Candidate {
  let least = Infinity;
  let ties: Candidate[] = [];
  for (const candidate of candidates) {
    const fullness = (loadOf(candidate.slot, model) + 1) / placesOf(candidate.slot, model);
    if (fullness > least) continue;
    if (fullness < least) ties = [];
    least = fullness;
    ties.push(candidate);
  }
  return ties[Math.floor(random() * ties.length)]!;
}

/** The slot whose prefix cache a conversation uses. Rendezvous hashing weighs each slot by its places. */
function homeOf(affinityKey: string, candidates: readonly Candidate[], model: ModelId): Candidate {
  return maximum(candidates, (candidate) => {
    const chance = (weightOf(affinityKey, candidate.node, candidate.slot.name) + 0.5) / 2 ** 32;
    return -placesOf(candidate.slot, model) / Math.log(chance);
  });
}

/**
 * Returns whether the home may take the request. Its load must be below 1.25 times the mean. It also keeps places free
 * for requests that other routers may have sent since its report: one standard deviation of the number of ended and
 * replaced requests. With one router no place is kept free, because the router's own count is exact.
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
  return maximum(equal, (candidate) => weightOf(model, candidate.node, candidate.slot.name));
}

/** Idle time in doubling steps. Routers that saw a slot become idle at slightly different times still agree. */
function idleSteps(slot: SlotView, nowMs: number): number {
  return Math.floor(Math.log2(1 + (nowMs - (slot.idleSinceMs ?? nowMs)) / 1000));
}
