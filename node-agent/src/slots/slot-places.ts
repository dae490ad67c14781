/**
 * Decides which waiters get the places of the awake engine.
 *
 * - Rule 6: the next waiter is the oldest waiter of the account that has used least of this engine (`fair-shares.ts`).
 * - Rule 7: while the next waiter needs more places than are free, the others wait too. A waiter of an account without a
 *   place may overtake it. The places that may overtake one waiter are limited, so that every waiter gets its turn.
 * - Rule 8: some places are in reserve for accounts that hold none, while another such account has sent a request lately.
 *   So one account cannot take all places and block the next account until its answers end.
 */
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";
import { costOf, isComer, noShares, rememberedMs, shareOf, taken, used } from "./fair-shares.ts";
import type { FairShares, Share, TokensUsed } from "./fair-shares.ts";
import { heldFor } from "./held-times.ts";
import { awakeEngine, placesOf } from "./slot-state.ts";
import type { Awake, Holding, Overtaken, Slot, SlotEffect, Waiter } from "./slot-state.ts";

/** The fewest places with a reserve. A reserve of fewer would leave too much of the engine idle. */
const reserveFromPlaces = 5;

/**
 * The places that may overtake a waiter on any engine. Without it, a waiter that needs the whole engine would block all
 * others.
 */
const overtakenMin = 4;

function reserveOf(places: number): number {
  return places < reserveFromPlaces ? 0 : Math.max(1, Math.floor(places / 8));
}

/**
 * Gives free places to these waiters, and rejects waiters that the engine can never serve. `isOpen`: new requests may
 * come. If not, nothing is reserved.
 */
export function admit(
  before: Slot,
  engine: Awake,
  waiters: readonly Waiter[],
  { isOpen, nowMs }: { readonly isOpen: boolean; readonly nowMs: number },
  effects: SlotEffect[],
): Slot {
  const slot = before.reserveUntilMs === undefined ? before : { ...before, reserveUntilMs: undefined };
  const { model } = engine;
  const own = ofModel(waiters, model);
  if (own.length === 0) return slot;
  const answersMax = engine.endpoint.parallelMax ?? Infinity;
  const tooMany = own.filter(({ answers }) => answers > answersMax);
  for (const { ticket } of tooMany) effects.push({ kind: "reject", ticket, answersMax });
  const places = placesOf(slot, engine);
  if (tooMany.length === 0 && slot.taken >= places) return slot;
  const able = tooMany.length === 0 ? own : own.filter(({ answers }) => answers <= answersMax);
  const turns =
    soleTurn(slot, able, places, { isOpen, nowMs }) ?? new Turns(slot, model, able, places, { isOpen, nowMs }).give();
  for (const [{ ticket }, holding] of turns.given) effects.push({ kind: "admit", ticket, engine, holding });
  const { reserveUntilMs } = turns;
  if (turns.given.length + tooMany.length === 0)
    return reserveUntilMs === undefined ? slot : { ...slot, reserveUntilMs };
  const done = new Set(tooMany);
  for (const [waiter] of turns.given) done.add(waiter);
  return {
    ...slot,
    taken: turns.taken,
    running: slot.running.concat(turns.given.map(([, holding]) => holding)),
    waiters: done.size === slot.waiters.length ? [] : slot.waiters.filter((waiter) => !done.has(waiter)),
    shares: turns.given.length === 0 ? slot.shares : new Map(slot.shares).set(model, turns.shares),
    overtaken: turns.overtaken,
    reserveUntilMs,
  };
}

function ofModel(waiters: readonly Waiter[], model: ModelId): readonly Waiter[] {
  return waiters.every((waiter) => waiter.model === model)
    ? waiters
    : waiters.filter((waiter) => waiter.model === model);
}

/** Gives back places of the awake engine, and records the cost of the request and how long it held them. */
export function release(slot: Slot, holding: Holding, tokens: TokensUsed | undefined, nowMs: number): Slot {
  const engine = awakeEngine(slot.state);
  if (!engine) return slot;
  const { model } = engine;
  return {
    ...slot,
    taken: slot.taken - holding.places,
    running: without(slot.running, holding),
    held: new Map(slot.held).set(model, heldFor(slot.held.get(model), nowMs - holding.sinceMs)),
    shares: new Map(slot.shares).set(model, settled(sharesOf(slot, model), holding, tokens)),
  };
}

function without(running: readonly Holding[], holding: Holding): readonly Holding[] {
  const index = running.indexOf(holding);
  return index < 0 ? running : running.slice(0, index).concat(running.slice(index + 1));
}

/** Uses the estimate if the request counted nothing, because the engine worked for it. */
function settled(shares: FairShares, holding: Holding, tokens?: TokensUsed): FairShares {
  return used(shares, holding, (tokens && costOf(tokens)) || holding.cost);
}

export function sharesOf(slot: Slot, model: ModelId): FairShares {
  return slot.shares.get(model) ?? noShares;
}

/**
 * Returns the places that these answers take. An idle engine takes more answers than it has places, and queues the rest
 * itself.
 */
export function placesFor(answers: number, places: number): number {
  return Math.min(answers, places);
}

/** Admits the only waiter directly if the reserve is not touched. Shares do not matter then. */
function soleTurn(
  slot: Slot,
  [waiter, second]: readonly Waiter[],
  places: number,
  { isOpen, nowMs }: { readonly isOpen: boolean; readonly nowMs: number },
): Given | undefined {
  if (!waiter || second) return undefined;
  const needed = placesFor(waiter.answers, places);
  if (needed > places - slot.taken - (isOpen ? reserveOf(places) : 0)) return undefined;
  const { model, account, answers } = waiter;
  const shares = sharesOf(slot, model);
  const cost = answers * shares.answerCost;
  return {
    given: [[waiter, { account, places: needed, cost, sinceMs: nowMs }]],
    taken: slot.taken + needed,
    shares: taken(shares, waiter, needed, cost),
    overtaken: slot.overtaken,
    reserveUntilMs: undefined,
  };
}

/** Which waiters got places, and what that changes. */
interface Given {
  readonly given: readonly (readonly [Waiter, Holding])[];
  readonly taken: number;
  readonly shares: FairShares;
  readonly overtaken: Overtaken | undefined;
  /** Until when the next waiter waits only because of the reserve. */
  readonly reserveUntilMs: number | undefined;
}

/** The waiters of one account, from the oldest one without a place. */
interface Queue {
  readonly account: AccountId;
  readonly waiters: Waiter[];
  next: number;
  /** The use of the account plus the estimated cost of its running requests. */
  used: number;
  held: number;
}

/** Gives places to one waiter after another while one may have them. */
class Turns implements Given {
  readonly given: (readonly [Waiter, Holding])[] = [];
  taken: number;
  shares: FairShares;
  overtaken: Overtaken | undefined;
  reserveUntilMs: number | undefined;
  readonly #places: number;
  readonly #reserve: number;
  readonly #nowMs: number;
  readonly #queues: ReadonlyMap<AccountId, Queue>;

  constructor(
    slot: Slot,
    model: ModelId,
    waiters: readonly Waiter[],
    places: number,
    { isOpen, nowMs }: { readonly isOpen: boolean; readonly nowMs: number },
  ) {
    this.taken = slot.taken;
    this.overtaken = slot.overtaken;
    this.#places = places;
    this.#reserve = isOpen ? reserveOf(places) : 0;
    this.#nowMs = nowMs;
    this.shares = sharesOf(slot, model);
    this.#queues = slot.taken < places ? queuesOf(waiters, this.shares) : noQueues;
  }

  give(): this {
    while (this.taken < this.#places) {
      const next = this.#least(() => true);
      if (!next) break;
      if (this.#fits(next)) this.#take(next);
      else if (!this.#overtake(next)) {
        this.#noteReserve(next);
        break;
      }
    }
    return this;
  }

  /** The oldest waiter of the account with the least use. Equal accounts are ordered by the places that they hold. */
  #least(isAble: (queue: Queue, waiter: Waiter) => boolean): Queue | undefined {
    let least: Queue | undefined;
    for (const queue of this.#queues.values()) {
      const waiter = queue.waiters[queue.next];
      if (!waiter || !isAble(queue, waiter)) continue;
      if (!least || isBefore(queue, least)) least = queue;
    }
    return least;
  }

  #fits({ account, held, waiters, next }: Queue): boolean {
    const needed = this.#needs(waiters[next]!);
    const free = this.#places - this.taken;
    if (needed > free) return false;
    if (needed <= free - this.#reserve || !this.#isReserved(account)) return true;
    const common = this.#places - this.#reserve;
    return held === 0 && (needed <= this.#reserve || needed > common);
  }

  #overtake(queue: Queue): boolean {
    const next = queue.waiters[queue.next]!;
    const common = this.#places - this.#reserve;
    const already = this.overtaken?.ticket === next.ticket ? this.overtaken.places : 0;
    const room = Math.max(this.#reserve, common - this.#needs(next), overtakenMin) - already;
    if (room <= 0) return false;
    const other = this.#least((one, waiter) => one.held === 0 && this.#needs(waiter) <= room && this.#fits(one));
    if (!other) return false;
    this.overtaken = { ticket: next.ticket, places: already + this.#needs(other.waiters[other.next]!) };
    this.#take(other);
    return true;
  }

  #take(queue: Queue): void {
    const { account } = queue;
    const waiter = queue.waiters[queue.next++]!;
    const places = this.#needs(waiter);
    const cost = waiter.answers * this.shares.answerCost;
    this.given.push([waiter, { account, places, cost, sinceMs: this.#nowMs }]);
    this.taken += places;
    this.shares = taken(this.shares, waiter, places, cost);
    queue.used += cost;
    queue.held += places;
  }

  #needs({ answers }: Waiter): number {
    return placesFor(answers, this.#places);
  }

  /** Returns whether another account may need the reserve. */
  #isReserved(account: AccountId): boolean {
    if (this.#reserve === 0) return false;
    return this.shares.accounts.some((bucket) => bucket.some((share) => this.#mayCome(share, account)));
  }

  /**
   * Returns whether the share is of another account that may need the reserve. An account that waits for more places
   * than the reserve does not.
   */
  #mayCome(share: Share, account: AccountId): boolean {
    if (!isComer(share, this.#nowMs) || share.account === account) return false;
    const queue = this.#queues.get(share.account);
    const waiter = queue?.waiters[queue.next];
    return !waiter || this.#needs(waiter) <= this.#reserve;
  }

  #noteReserve({ account, waiters, next }: Queue): void {
    if (this.#needs(waiters[next]!) > this.#places - this.taken) return;
    let latestMs = -Infinity;
    for (const bucket of this.shares.accounts)
      for (const share of bucket) if (this.#mayCome(share, account)) latestMs = Math.max(latestMs, share.askedMs);
    this.reserveUntilMs = latestMs + rememberedMs;
  }
}

/** Returns the waiters in the order in which they would get places if all of them became free one after another. */
export function orderOf(slot: Slot, model: ModelId, waiters: readonly Waiter[]): readonly Waiter[] {
  const shares = sharesOf(slot, model);
  const turns = queuesOf(waiters, shares)
    .values()
    .flatMap(({ used, held, waiters: own }) =>
      own.map((waiter) => {
        const turn = { waiter, used, held };
        used += waiter.answers * shares.answerCost;
        held += waiter.answers;
        return turn;
      }),
    )
    .toArray();
  const byUse = turns.sort((a, b) => a.used - b.used || a.held - b.held || a.waiter.ticket - b.waiter.ticket);
  return byUse.map(({ waiter }) => waiter);
}

const noQueues: ReadonlyMap<AccountId, Queue> = new Map();

function isBefore(a: Queue, b: Queue): boolean {
  const order = a.used - b.used || a.held - b.held || a.waiters[a.next]!.ticket - b.waiters[b.next]!.ticket;
  return order < 0;
}

function queuesOf(waiters: readonly Waiter[], shares: FairShares): ReadonlyMap<AccountId, Queue> {
  const queues = new Map<AccountId, Queue>();
  for (const waiter of waiters) {
    const { account } = waiter;
    const queue = queues.get(account);
    if (queue) {
      queue.waiters.push(waiter);
      continue;
    }
    const { used = shares.level, expected = 0, places = 0 } = shareOf(shares, account) ?? {};
    queues.set(account, { account, waiters: [waiter], next: 0, used: used + expected, held: places });
  }
  return queues;
}
