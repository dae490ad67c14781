/**
 * Who gets the places of the awake engine.
 *
 * - The waiter whose account used least of this engine is next (`fair-shares.ts`); within an account the oldest waiter.
 *   While the next waiter needs more places than are free, the others wait, too.
 * - A reserve of the places is given only to accounts that hold none, while another such account has asked lately. So one
 *   account cannot take every place and keep the next account out until its answers end. A small engine has no reserve.
 * - A waiter whose account holds no place may overtake the next waiter while that one waits for places. The places that
 *   overtake one waiter are bounded in total, so that every waiter has its turn.
 */
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";
import { comersOf, costOf, noShares, rememberedMs, used, usedBy } from "./fair-shares.ts";
import type { FairShares, TokensUsed } from "./fair-shares.ts";
import { awakeEngine, placesOf } from "./slot-state.ts";
import type { Awake, Holding, Overtaken, Slot, SlotEffect, Waiter } from "./slot-state.ts";

/** A reserve on fewer places would idle too much of the engine. */
const reserveFromPlaces = 5;

/** Places that may overtake one waiter on any engine: a waiter that needs the whole engine is blocked whatever it has. */
const overtakenMin = 4;

function reserveOf(places: number): number {
  return places < reserveFromPlaces ? 0 : Math.max(1, Math.floor(places / 8));
}

/**
 * Gives free places to these waiters, and rejects those that the engine can never serve. `isOpen`: new requests may come;
 * otherwise nothing is reserved.
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
  const own = waiters.filter((waiter) => waiter.model === model);
  if (own.length === 0) return slot;
  const answersMax = engine.endpoint.parallelMax ?? Infinity;
  const tooMany = own.filter(({ answers }) => answers > answersMax);
  for (const { ticket } of tooMany) effects.push({ kind: "reject", ticket, answersMax });
  const able = tooMany.length === 0 ? own : own.filter(({ answers }) => answers <= answersMax);
  const turns = new Turns(slot, model, able, placesOf(slot, engine), { isOpen, nowMs });
  turns.give();
  for (const [{ ticket }, holding] of turns.given) effects.push({ kind: "admit", ticket, engine, holding });
  if (turns.given.size + tooMany.length === 0) return { ...slot, reserveUntilMs: turns.reserveUntilMs };
  const done = new Set([...turns.given.keys(), ...tooMany]);
  return {
    ...slot,
    taken: turns.taken,
    running: [...slot.running, ...turns.given.values()],
    waiters: slot.waiters.filter((waiter) => !done.has(waiter)),
    shares: turns.given.size === 0 ? slot.shares : new Map(slot.shares).set(model, turns.shares),
    overtaken: turns.overtaken,
    reserveUntilMs: turns.reserveUntilMs,
  };
}

/** Gives back places of the awake engine, and learns what the request cost and how long it held them. */
export function release(slot: Slot, holding: Holding, tokens: TokensUsed | undefined, nowMs: number): Slot {
  const engine = awakeEngine(slot.state);
  if (!engine) return slot;
  const { model } = engine;
  const before = slot.heldMs.get(model) ?? nowMs - holding.sinceMs;
  const heldMs = before + newestHeldWeight * (nowMs - holding.sinceMs - before);
  return {
    ...slot,
    taken: slot.taken - holding.places,
    running: slot.running.filter((one) => one !== holding),
    heldMs: new Map(slot.heldMs).set(model, heldMs),
    shares: new Map(slot.shares).set(model, settled(sharesOf(slot, model), holding, tokens)),
  };
}

const newestHeldWeight = 0.1;

/** Where nothing was counted, the estimate counts: the engine worked all the same. */
function settled(shares: FairShares, { account, places, cost: expected }: Holding, tokens?: TokensUsed): FairShares {
  return used(shares, account, (tokens && costOf(tokens)) || expected, places);
}

export function sharesOf(slot: Slot, model: ModelId): FairShares {
  return slot.shares.get(model) ?? noShares;
}

/** An idle engine takes more answers than it has places, and queues the rest itself. */
export function placesFor(answers: number, places: number): number {
  return Math.min(answers, places);
}

/** Gives places to one waiter after the other, as long as one may have them. */
class Turns {
  readonly given = new Map<Waiter, Holding>();
  taken: number;
  overtaken: Overtaken | undefined;
  /** Until when the next waiter is kept waiting by the reserve alone. */
  reserveUntilMs: number | undefined;
  readonly #places: number;
  readonly #reserve: number;
  readonly #nowMs: number;
  readonly #queues: Map<AccountId, Waiter[]>;
  readonly #held = new Map<AccountId, number>();
  /** What running requests of each account will probably cost. */
  readonly #expected = new Map<AccountId, number>();
  #shares: FairShares;

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
    this.#shares = sharesOf(slot, model);
    const hasRoom = slot.taken < places;
    this.#queues = hasRoom ? Map.groupBy(waiters, ({ account }) => account) : new Map();
    // Where nobody is in the way of the only waiter, who holds what does not matter.
    const isEasy = waiters.length === 1 && this.#needs(waiters[0]!) <= places - slot.taken - this.#reserve;
    if (hasRoom && !isEasy) for (const holding of slot.running) this.#hold(holding);
  }

  get shares(): FairShares {
    return this.#shares;
  }

  give(): void {
    for (;;) {
      const next = this.#least(() => true);
      if (!next) return;
      if (this.#fits(next)) this.#take(next);
      else if (!this.#overtake(next)) return this.#noteReserve(next);
    }
  }

  /** The oldest waiter of the account that used least; with the same use, of the one that holds fewer places. */
  #least(isAble: (waiter: Waiter) => boolean): Waiter | undefined {
    let least: Waiter | undefined;
    let [leastUsed, leastHeld] = [Infinity, Infinity];
    for (const [account, [waiter]] of this.#queues) {
      if (!waiter || !isAble(waiter)) continue;
      const used = usedBy(this.#shares, account) + (this.#expected.get(account) ?? 0);
      const held = this.#held.get(account) ?? 0;
      const order = used - leastUsed || held - leastHeld || waiter.ticket - least!.ticket;
      if (least && order >= 0) continue;
      [least, leastUsed, leastHeld] = [waiter, used, held];
    }
    return least;
  }

  #fits(waiter: Waiter): boolean {
    const needed = this.#needs(waiter);
    const free = this.#places - this.taken;
    if (needed > free) return false;
    if (needed <= free - this.#reserve || !this.#isReserved(waiter.account)) return true;
    const common = this.#places - this.#reserve;
    return !this.#held.has(waiter.account) && (needed <= this.#reserve || needed > common);
  }

  #overtake(next: Waiter): boolean {
    const common = this.#places - this.#reserve;
    const already = this.overtaken?.ticket === next.ticket ? this.overtaken.places : 0;
    const room = Math.max(this.#reserve, common - this.#needs(next), overtakenMin) - already;
    if (room <= 0) return false;
    const other = this.#least(
      (waiter) => !this.#held.has(waiter.account) && this.#needs(waiter) <= room && this.#fits(waiter),
    );
    if (!other) return false;
    this.overtaken = { ticket: next.ticket, places: already + this.#needs(other) };
    this.#take(other);
    return true;
  }

  #take(waiter: Waiter): void {
    const { account, answers } = waiter;
    const places = this.#needs(waiter);
    const holding = { account, places, cost: answers * this.#shares.answerCost, sinceMs: this.#nowMs };
    this.#shares = { ...this.#shares, level: usedBy(this.#shares, account) };
    this.given.set(waiter, holding);
    this.taken += places;
    this.#hold(holding);
    const queue = this.#queues.get(account)!;
    queue.shift();
    if (queue.length === 0) this.#queues.delete(account);
  }

  #hold({ account, places, cost }: Holding): void {
    this.#held.set(account, (this.#held.get(account) ?? 0) + places);
    this.#expected.set(account, (this.#expected.get(account) ?? 0) + cost);
  }

  #needs({ answers }: Waiter): number {
    return placesFor(answers, this.#places);
  }

  /** Whether another account may ask for the reserve. */
  #isReserved(account: AccountId): boolean {
    return this.#reserve > 0 && !this.#comersBeside(account).next().done;
  }

  /** Other accounts that hold no place and have asked lately, with the time. One that waits for more than the reserve is none. */
  *#comersBeside(account: AccountId): Generator<number> {
    for (const [comer, askedMs] of comersOf(this.#shares, this.#nowMs)) {
      if (comer === account || this.#held.has(comer)) continue;
      const [waiter] = this.#queues.get(comer) ?? [];
      if (!waiter || this.#needs(waiter) <= this.#reserve) yield askedMs;
    }
  }

  #noteReserve(next: Waiter): void {
    if (this.#needs(next) > this.#places - this.taken) return;
    this.reserveUntilMs = Math.max(...this.#comersBeside(next.account)) + rememberedMs;
  }
}
