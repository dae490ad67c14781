/**
 * A node with slots on virtual time that reports to routers: each second, and soon after a slot's state has changed.
 * Most reports are never looked at. A report is therefore made when its router next asks, from the state that the node
 * had at the report's time.
 */
import type { ModelId, NodeId } from "@weiche/shared/ids.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { loadReport, reportEveryMs, reportSpacingMs } from "@weiche/node-agent/src/links/load.ts";
import type { Slot } from "@weiche/node-agent/src/slots/slot-state.ts";
import { activeOf, nextOf, shownState, viewOf, type SlotView } from "@weiche/node-agent/src/slots/slot-view.ts";
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
  readonly router: number;
  readonly entry: NodeLinkEntry;
  /** Reports are made at this time of each second. */
  readonly phaseMs: number;
  /** The time of the newest report that the router has. */
  takenMs: number;
  /** The states at the times of the last two reports before the last change. */
  newest: Snapshot;
  older: Snapshot;
}

export class TimedNode {
  readonly name: NodeId;
  readonly slots: readonly TimedSlot[];
  readonly models: ReadonlySet<ModelId>;
  readonly #clock: Clock;
  readonly #newsMs: number;
  readonly #links: Link[] = [];
  #told: string;
  #reportedAtMs = -Infinity;
  #isReporting = false;

  /** `newsMs`: the time that a report takes to reach a router. */
  constructor(name: NodeId, slots: readonly TimedSlotOptions[], newsMs: number, clock: Clock) {
    this.name = name;
    this.#clock = clock;
    this.#newsMs = newsMs;
    this.slots = slots.map((options) => new TimedSlot(options, clock));
    this.models = new Set(slots.flatMap(({ engines }) => engines.map(({ model }) => model)));
    this.#told = this.#states();
    for (const slot of this.slots) {
      slot.onBefore = () => this.#keep();
      slot.onAfter = () => this.#reportMove();
    }
  }

  linkTo(router: number, registry: NodeRegistry, phaseMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    const slots = this.slots.map(({ name, engines }) => ({ name, models: engines.map(({ model }) => model) }));
    const entry = registry.linkUp({ node: this.name, bootId: "1", agentVersion: "", slots }, nowMs);
    registry.connectionUp(this.name);
    const now = this.#snapshot(nowMs);
    const link: Link = { router, entry, phaseMs, takenMs: nowMs, newest: now, older: now };
    this.#links.push(link);
    this.#take(link, now);
  }

  /** Brings the router's knowledge of this node up to date. */
  refresh(router: number): void {
    const link = this.#links[router]!;
    this.#refresh(link, this.#clock.monotonicMs() - this.#newsMs);
  }

  #refresh(link: Link, untilMs: number): void {
    const atMs = lastReportMs(link, untilMs);
    if (atMs <= link.takenMs) return;
    const { newest, older } = link;
    // The first report after the last change tells since when a slot is idle.
    const changedMs = newest.atMs + reportEveryMs;
    if (atMs > changedMs && link.takenMs < changedMs) this.#take(link, this.#snapshot(changedMs));
    this.#take(link, atMs > newest.atMs ? this.#snapshot(atMs) : atMs === newest.atMs ? newest : older);
  }

  /** Keeps the state for reports that were due before the change that follows. */
  #keep(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const link of this.#links) {
      const atMs = lastReportMs(link, nowMs);
      if (atMs <= link.newest.atMs) continue;
      link.older = link.newest;
      link.newest = this.#snapshot(atMs);
    }
  }

  #snapshot(atMs: number): Snapshot {
    return { atMs, seen: this.slots.map(({ slot, held }) => ({ slot, held })) };
  }

  #states(): string {
    const nowMs = this.#clock.monotonicMs();
    const stateOf = ({ slot }: TimedSlot) => `${shownState(slot.state, nowMs)} ${activeOf(slot.state)} ${nextOf(slot)}`;
    return this.slots.map(stateOf).join();
  }

  #reportMove(): void {
    const now = this.#states();
    if (now === this.#told) return;
    this.#told = now;
    if (this.#isReporting) return;
    this.#isReporting = true;
    const nowMs = this.#clock.monotonicMs();
    this.#clock.after(Math.max(0, this.#reportedAtMs + reportSpacingMs - nowMs), () => {
      this.#isReporting = false;
      this.#reportedAtMs = this.#clock.monotonicMs();
      const snapshot = this.#snapshot(this.#reportedAtMs);
      this.#clock.after(this.#newsMs, () => {
        for (const link of this.#links) {
          this.#refresh(link, snapshot.atMs);
          this.#take(link, snapshot);
        }
      });
    });
  }

  #take(link: Link, { atMs, seen }: Snapshot): void {
    link.takenMs = Math.max(link.takenMs, atMs);
    const slots = seen.map((each, index) => viewAt(this.slots[index]!, each, atMs));
    const load = { slots, engines: new Map(), maintenance: false, admitting: true };
    link.entry.report(readReport(loadReport(load, nameOf(link.router), 0n)), atMs + this.#newsMs);
  }
}

function viewAt({ name, engines }: TimedSlot, { slot, held }: Seen, atMs: number): SlotView {
  const sinceMs = slot.running[0]?.sinceMs ?? atMs;
  const running = held.flatMap((places, router) => (places > 0 ? [{ routerId: nameOf(router), places, sinceMs }] : []));
  return viewOf(slot, { name, engines, askedOf: () => undefined, running, sleepers: [] }, atMs);
}

function lastReportMs({ phaseMs }: Link, atMs: number): number {
  return Math.floor((atMs - phaseMs) / reportEveryMs) * reportEveryMs + phaseMs;
}

function nameOf(router: number): string {
  return `router-${router}`;
}
