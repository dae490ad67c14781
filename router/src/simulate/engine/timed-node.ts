/**
 * A node with slots on virtual time that reports to routers: each second, and soon after a slot's state has changed.
 * Most reports are never looked at. A report is therefore made when its router next asks, from the state that the node
 * had at the report's time.
 */
import type { ModelId, NodeId } from "@weiche/shared/ids.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { loadReport, reportEveryMs, reportSpacingMs, type NodeLoad } from "@weiche/node-agent/src/links/load.ts";
import type { Slot } from "@weiche/node-agent/src/slots/slot-state.ts";
import {
  activeOf,
  nextOf,
  shownState,
  viewOf,
  type ShownState,
  type SlotView,
} from "@weiche/node-agent/src/slots/slot-view.ts";
import { readReport } from "../../nodes/node-link-codec.ts";
import type { NodeLinkEntry, NodeRegistry } from "../../nodes/registry.ts";
import { TimedSlot, type TimedSlotOptions } from "./timed-slot.ts";

/** The part of a report about one slot. */
interface Seen {
  readonly slot: Slot;
  readonly held: readonly number[];
}

/** The state of the node at one time. */
interface Snapshot {
  readonly atMs: number;
  readonly seen: readonly Seen[];
}

interface Link {
  readonly routerId: string;
  readonly registry: NodeRegistry;
  readonly entry: NodeLinkEntry;
  /** Reports are made at this time of each second. */
  readonly phaseMs: number;
  /** The time of the newest report that the router has. */
  takenMs: number;
  /** The states at the last reports before changes, as long as the router may still ask for them. Oldest first. */
  kept: Snapshot[];
}

/** A router notices by three checks without data that a node is lost, which takes 3 to 4 s. */
const lostAfterMs = 3_500;

/** What reports name of a slot's state. */
interface Told {
  readonly shown: ShownState | undefined;
  readonly active: ModelId | undefined;
  readonly next: ModelId | undefined;
}

export class TimedNode {
  readonly name: NodeId;
  readonly slots: readonly TimedSlot[];
  readonly models: ReadonlySet<ModelId>;
  readonly #clock: Clock;
  readonly #newsMs: number;
  readonly #links: Link[] = [];
  readonly #told: Told[];
  #reportedAtMs = -Infinity;
  #isReporting = false;
  /** The number of failures. */
  #life = 0;
  #isDown = false;
  #isLinked = true;

  /** `newsMs`: the time that a report takes to reach a router. */
  constructor(name: NodeId, slots: readonly TimedSlotOptions[], newsMs: number, clock: Clock) {
    this.name = name;
    this.#clock = clock;
    this.#newsMs = newsMs;
    this.slots = slots.map((options) => new TimedSlot(options, clock));
    this.models = new Set(slots.flatMap(({ engines }) => engines.map(({ model }) => model)));
    this.#told = this.slots.map(() => ({ shown: undefined, active: undefined, next: undefined }));
    this.#hasMoved();
    for (const slot of this.slots) {
      slot.onBefore = () => this.#keep();
      slot.onAfter = () => this.#reportMove();
    }
  }

  linkTo(router: number, registry: NodeRegistry, phaseMs: number): void {
    this.#links[router] = this.#link(nameOf(router), registry, phaseMs);
  }

  #link(routerId: string, registry: NodeRegistry, phaseMs: number): Link {
    const nowMs = this.#clock.monotonicMs();
    const slots = this.slots.map(({ name, engines }) => ({ name, models: engines.map(({ model }) => model) }));
    const entry = registry.linkUp({ node: this.name, bootId: `${this.#life}`, agentVersion: "", slots }, nowMs);
    registry.connectionUp(this.name);
    const link: Link = { routerId, registry, entry, phaseMs, takenMs: nowMs, kept: [] };
    // The report seems to be older, because none may come from the future.
    this.#take(link, this.#snapshot(nowMs), nowMs - this.#newsMs);
    return link;
  }

  /** The node loses its power. Its routers notice it some seconds later, by its silence. */
  fail(): void {
    if (this.#isDown) return;
    for (const link of this.#links) this.#refresh(link, this.#clock.monotonicMs());
    this.#isDown = true;
    const life = ++this.#life;
    for (const slot of this.slots) slot.fail();
    this.#clock.after(lostAfterMs, () => {
      if (life === this.#life) this.#lose();
    });
  }

  /** The node is back and links to its routers again. */
  boot(): void {
    if (!this.#isDown) return;
    this.#lose();
    this.#isDown = false;
    this.#isLinked = true;
    for (const [index, { routerId, registry, phaseMs }] of this.#links.entries())
      this.#links[index] = this.#link(routerId, registry, phaseMs);
    for (const slot of this.slots) slot.boot();
  }

  #lose(): void {
    if (!this.#isLinked) return;
    this.#isLinked = false;
    for (const { registry, entry } of this.#links) {
      entry.down(this.#clock.monotonicMs());
      registry.connectionDown(this.name);
    }
    for (const slot of this.slots) slot.lose();
  }

  /** Brings the router's knowledge of this node up to date. */
  refresh(router: number): void {
    const link = this.#links[router]!;
    this.#refresh(link, this.#clock.monotonicMs() - this.#newsMs);
  }

  #refresh(link: Link, untilMs: number): void {
    if (this.#isDown) return;
    const atMs = lastReportMs(link, untilMs);
    if (atMs <= link.takenMs) return;
    const report = this.#at(link, atMs);
    // The reports around each change tell since when a slot is idle.
    if (report.seen.some(isIdle))
      for (const { atMs: beforeMs } of link.kept)
        for (const eachMs of [beforeMs, beforeMs + reportEveryMs])
          if (link.takenMs < eachMs && eachMs < atMs) this.#take(link, this.#at(link, eachMs));
    this.#take(link, report);
    link.kept = link.kept.filter((one) => one.atMs >= atMs);
  }

  /** Returns the state at the time of a report. It did not change from a report until the next kept one. */
  #at({ kept }: Link, atMs: number): Snapshot {
    const found = kept.find((one) => one.atMs >= atMs);
    return found ? { atMs, seen: found.seen } : this.#snapshot(atMs);
  }

  /** Keeps the state for reports that were due before the change that follows. */
  #keep(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const link of this.#links) {
      const atMs = lastReportMs(link, nowMs);
      const last = link.kept.at(-1);
      if (!last || last.atMs < atMs) link.kept.push(this.#snapshot(atMs));
    }
  }

  #snapshot(atMs: number): Snapshot {
    return { atMs, seen: this.slots.map(({ slot, held }) => ({ slot, held })) };
  }

  /** Returns whether a state that reports name has changed since the last call. */
  #hasMoved(): boolean {
    const nowMs = this.#clock.monotonicMs();
    let hasMoved = false;
    for (let index = 0; index < this.slots.length; index++) {
      const { slot } = this.slots[index]!;
      const told = this.#told[index]!;
      const [shown, active, next] = [shownState(slot.state, nowMs), activeOf(slot.state), nextOf(slot)];
      if (told.shown === shown && told.active === active && told.next === next) continue;
      this.#told[index] = { shown, active, next };
      hasMoved = true;
    }
    return hasMoved;
  }

  #reportMove(): void {
    if (!this.#hasMoved() || this.#isReporting) return;
    this.#isReporting = true;
    const life = this.#life;
    const nowMs = this.#clock.monotonicMs();
    this.#clock.after(Math.max(0, this.#reportedAtMs + reportSpacingMs - nowMs), () => {
      this.#isReporting = false;
      if (life !== this.#life) return;
      this.#reportedAtMs = this.#clock.monotonicMs();
      const snapshot = this.#snapshot(this.#reportedAtMs);
      this.#clock.after(this.#newsMs, () => {
        if (life !== this.#life) return;
        for (const link of this.#links) {
          this.#refresh(link, snapshot.atMs);
          this.#take(link, snapshot);
        }
      });
    });
  }

  #take(link: Link, { atMs, seen }: Snapshot, madeMs: number = atMs): void {
    link.takenMs = Math.max(link.takenMs, atMs);
    const slots = seen.map((each, index) => viewAt(this.slots[index]!, each, atMs));
    const load = { slots, engines: noEngines, maintenance: false, admitting: true };
    link.entry.report(readReport(loadReport(load, link.routerId, 0n)), madeMs + this.#newsMs);
  }
}

const noEngines: NodeLoad["engines"] = new Map();
const nobodyElse = () => undefined;

function viewAt({ name, engines, models }: TimedSlot, { slot, held }: Seen, atMs: number): SlotView {
  const sinceMs = slot.running[0]?.sinceMs ?? atMs;
  const running = [];
  for (let router = 0; router < held.length; router++)
    if (held[router]! > 0) running.push({ routerId: nameOf(router), places: held[router]!, sinceMs });
  return viewOf(slot, { name, engines, models, askedOf: nobodyElse, running, sleepers: [] }, atMs);
}

function isIdle({ slot }: Seen): boolean {
  return slot.taken === 0 && slot.waiters.length === 0;
}

function lastReportMs({ phaseMs }: Link, atMs: number): number {
  return Math.floor((atMs - phaseMs) / reportEveryMs) * reportEveryMs + phaseMs;
}

const names: string[] = [];

function nameOf(router: number): string {
  return (names[router] ??= `router-${router}`);
}
