/**
 * The state of the nodes: their reports, whether they can be reached, and this router's requests to them. No I/O. The
 * caller passes the time in monotonic milliseconds.
 */
import type { NodeId, SlotName } from "@weiche/shared/ids.ts";
import { isServedBy } from "./node-view.ts";
import type {
  EngineFailure,
  HostedSlot,
  NodeHello,
  NodeReport,
  NodeView,
  PastSwitch,
  SlotReport,
  SlotView,
} from "./node-view.ts";
import { Outcomes, type Attempted, type AttemptEnd, type OutcomeEvents } from "./outcomes/outcomes.ts";
import { fullnessOf } from "./placement.ts";
import { RecentWaits, WaitWatch } from "./recent-waits.ts";

/** A node in the form that operators see. */
export interface NodeDetail {
  readonly view: NodeView;
  readonly hello: NodeHello;
  readonly linked: boolean;
  readonly dataConnections: number;
  readonly report: NodeReport | undefined;
  /** Monotonic ms since when the node is linked. Undefined if it is not linked. */
  readonly linkedAtMs: number | undefined;
  /**
   * The past switches of each slot that the agent reported, oldest first. The array stays the same object until the
   * next switch.
   */
  readonly histories: ReadonlyMap<SlotName, readonly PastSwitch[]>;
  /** The failures of each slot's engines that the agent reported, oldest first. */
  readonly failures: ReadonlyMap<SlotName, readonly EngineFailure[]>;
}

/** A node without a report for this time is silent. Agents report each second. */
const silentMsMax = 3_000;
/** How long a node without a link stays known: an hour if it is in maintenance, a week otherwise. */
const maintainedMs = 3_600_000;
const missedMs = 7 * 86_400_000;

/** A link's access to its node. It has no effect once another link has replaced this link. */
export interface NodeLinkEntry {
  report(report: NodeReport, nowMs: number): void;
  /** Updates the models that the node may host. */
  hostingChanged(hello: NodeHello): void;
  down(nowMs: number): void;
}

/** A request that was sent to a slot. */
export interface Dispatched {
  /** The engine is done. The request's places are free, although the client may still read. */
  done(): void;
  /** No more data will come, and nothing is left to read. */
  over(): void;
}

export class NodeRegistry {
  /** Recent waits of requests from all routers. */
  readonly waits = new RecentWaits();
  readonly #nodes = new Map<NodeId, NodeEntry>();
  readonly #isMaintained: (node: NodeId) => boolean;
  readonly #outcomes: Outcomes;

  /** `isMaintained` returns whether operators have put a node into maintenance, whatever the node reports. */
  constructor(isMaintained: (node: NodeId) => boolean = () => false, events?: OutcomeEvents) {
    this.#isMaintained = isMaintained;
    this.#outcomes = new Outcomes(events);
  }

  /** Replaces the link of the node. Its last report stays unless the agent has restarted. */
  linkUp(hello: NodeHello, nowMs: number): NodeLinkEntry {
    const entry = this.#entry(hello.node);
    const link = {
      report: (report: NodeReport, nowMs: number) => {
        if (entry.link === link) entry.take(report, nowMs);
      },
      hostingChanged: (changed: NodeHello) => {
        if (entry.link === link) entry.rehost(changed);
      },
      down: (nowMs: number) => {
        if (entry.link !== link) return;
        entry.link = undefined;
        entry.linkedAtMs = undefined;
        entry.lostAtMs = nowMs;
      },
    };
    if (entry.hello?.bootId !== hello.bootId) entry.forget();
    entry.host(hello);
    entry.link = link;
    entry.linkedAtMs = nowMs;
    return link;
  }

  connectionUp(node: NodeId): void {
    this.#entry(node).dataConnections++;
  }

  connectionDown(node: NodeId): void {
    const entry = this.#entry(node);
    entry.dataConnections--;
    if (entry.dataConnections === 0 && !entry.hello) this.#forget(node);
  }

  /** Counts a request of this router to the slot, with all its answers. */
  dispatched(node: NodeId, slot: SlotName, answers = 1): Dispatched {
    const entry = this.#entry(node);
    let counted: keyof OwnAnswers | undefined;
    const countAs = (next: keyof OwnAnswers | undefined) => {
      if (counted) entry.count(slot, counted, -answers);
      if (next) entry.count(slot, next, answers);
      counted = next;
    };
    countAs("inFlight");
    return {
      done: () => counted === "inFlight" && countAs("unread"),
      over: () => countAs(undefined),
    };
  }

  /** Call before an attempt is sent. Call the returned function with the attempt's end. It ignores further calls. */
  began(at: Attempted, nowMs: number): (end: AttemptEnd | "overloaded", nowMs: number) => void {
    const ended = this.#outcomes.began(at, nowMs);
    return (end, endedMs) => ended(end === "overloaded" ? this.#endOfOverloaded(at) : end, endedMs);
  }

  /**
   * If a slot is at most half full and refuses a request because it has no room, load is not the cause. The attempt
   * then counts as failed.
   */
  #endOfOverloaded({ node, slot: name, model }: Attempted): AttemptEnd {
    const slot = this.#nodes.get(node)?.slots.find((one) => one.name === name);
    const hasRoom = slot && isServedBy(slot, slot.activeModel, model) && fullnessOf(slot, model) <= 1 / 2;
    return { outcome: hasRoom ? "failed" : "untold" };
  }

  /** Returns the known nodes. The objects are live: use them before the next `await`. */
  view(nowMs: number): readonly NodeView[] {
    const views: NodeView[] = [];
    for (const [node, entry] of this.#nodes) {
      if (!entry.hello) continue;
      const keptMs = entry.maintenance ? maintainedMs : missedMs;
      if (!entry.link && nowMs - entry.lostAtMs > keptMs && entry.dataConnections === 0) this.#forget(node);
      else views.push(entry.look(nowMs));
    }
    return views;
  }

  details(nowMs: number): readonly NodeDetail[] {
    return this.view(nowMs).map((view) => {
      const { hello, link, dataConnections, report, linkedAtMs, histories, failures } = this.#nodes.get(view.node)!;
      const linked = link !== undefined;
      return { view, hello: hello!, linked, dataConnections, report, linkedAtMs, histories, failures };
    });
  }

  #forget(node: NodeId): void {
    this.#nodes.delete(node);
    this.#outcomes.forget(node);
  }

  #entry(node: NodeId): NodeEntry {
    let entry = this.#nodes.get(node);
    if (!entry) this.#nodes.set(node, (entry = new NodeEntry(node, this.#isMaintained, this.waits, this.#outcomes)));
    return entry;
  }
}

/** This router's answers in a slot. */
interface OwnAnswers {
  inFlight: number;
  unread: number;
}

type LiveSlot = Omit<SlotView, keyof OwnAnswers> & OwnAnswers;

/**
 * One node, which is also its view. Requests stay counted until their streams end, even if links change or the agent
 * restarts.
 */
class NodeEntry implements NodeView {
  readonly node: NodeId;
  hello: NodeHello | undefined;
  link: NodeLinkEntry | undefined;
  linkedAtMs: number | undefined;
  lostAtMs = -Infinity;
  report: NodeReport | undefined;
  reportedAtMs = -Infinity;
  dataConnections = 0;
  reachable = false;
  slots: readonly LiveSlot[] = [];
  readonly histories = new Map<SlotName, readonly PastSwitch[]>();
  readonly failures = new Map<SlotName, readonly EngineFailure[]>();
  readonly #own = new Map<SlotName, OwnAnswers>();
  readonly #isMaintained: (node: NodeId) => boolean;
  readonly #waits: WaitWatch;
  readonly #outcomes: Outcomes;

  constructor(node: NodeId, isMaintained: (node: NodeId) => boolean, waits: RecentWaits, outcomes: Outcomes) {
    this.node = node;
    this.#isMaintained = isMaintained;
    this.#outcomes = outcomes;
    this.#waits = new WaitWatch(waits);
  }

  get admitting(): boolean {
    return this.report?.admitting ?? false;
  }

  get maintenance(): boolean {
    return this.#isMaintained(this.node) || (this.report?.maintenance ?? false);
  }

  look(nowMs: number): NodeView {
    this.reachable = this.link !== undefined && this.dataConnections > 0 && nowMs - this.reportedAtMs <= silentMsMax;
    return this;
  }

  forget(): void {
    this.report = undefined;
    this.slots = [];
    this.reportedAtMs = -Infinity;
    this.histories.clear();
    this.failures.clear();
    this.#waits.forget();
    this.#outcomes.forget(this.node);
  }

  /** Sets the slots and models of the node. */
  host(hello: NodeHello): void {
    this.hello = hello;
    const names = hello.slots.map(({ name }) => name);
    this.#outcomes.retain(this.node, names);
  }

  rehost(hello: NodeHello): void {
    this.host(hello);
    this.slots = this.slots.map((slot) => ({ ...slot, ...this.#hostedBy(slot.name) }));
  }

  take(report: NodeReport, nowMs: number): void {
    const before = this.slots;
    // An agent sends these two only when they have changed.
    const { machine = this.report?.machine, machineReading = this.report?.machineReading } = report;
    this.report = { ...report, machine, machineReading };
    if (nowMs - this.reportedAtMs > silentMsMax) this.#waits.forget();
    this.#waits.take(report.slots, (name) => this.#hostedBy(name), nowMs);
    this.reportedAtMs = nowMs;
    // A slot name that is not in the hello would stay in memory as long as the node is known.
    for (const slot of report.slots) if (named(this.hello!.slots, slot.name)) this.#remember(slot, nowMs);
    this.slots = report.slots.map((slot) => {
      const hosted = named(this.hello!.slots, slot.name);
      const own = this.#own.get(slot.name);
      return {
        ...slot,
        models: hosted?.models ?? [],
        engines: hosted?.engines,
        inFlight: own?.inFlight ?? 0,
        unread: own?.unread ?? 0,
        waiting: slot.waiters.reduce((sum, { waiting }) => sum + waiting, 0),
        idleSinceMs: idleSince(slot, named(before, slot.name), nowMs),
        troubles: hosted && this.#outcomes.troublesOf(this.node, slot.name),
      };
    });
  }

  /** Stores what the report of a slot says about its past. An agent sends it only when it has changed. */
  #remember({ name, history, failures }: SlotReport, nowMs: number): void {
    if (history) {
      const past = history.switches.map(({ endedAgoMs, ...one }) => ({ ...one, endedAtMs: nowMs - endedAgoMs }));
      this.histories.set(name, past);
    }
    if (failures) {
      const known = failures.failures.map(({ agoMs, ...one }) => ({ ...one, atMs: nowMs - agoMs }));
      this.failures.set(name, known as EngineFailure[]);
    }
  }

  #hostedBy(name: SlotName): Pick<HostedSlot, "models" | "engines"> {
    const { models = [], engines } = named(this.hello!.slots, name) ?? {};
    return { models, engines };
  }

  count(name: SlotName, what: keyof OwnAnswers, by: number): void {
    const own = this.#own.get(name) ?? { inFlight: 0, unread: 0 };
    own[what] += by;
    if (own.inFlight + own.unread === 0) this.#own.delete(name);
    else this.#own.set(name, own);
    const slot = named(this.slots, name);
    if (slot) [slot.inFlight, slot.unread] = [own.inFlight, own.unread];
  }
}

/** A node has few slots, so that no map is made for them. */
function named<One extends { readonly name: SlotName }>(slots: readonly One[], name: SlotName): One | undefined {
  for (const slot of slots) if (slot.name === name) return slot;
  return undefined;
}

function idleSince(slot: SlotReport, before: SlotView | undefined, nowMs: number): number | undefined {
  if (slot.running > 0 || slot.waiters.length > 0) return undefined;
  const unchanged = before?.activeModel === slot.activeModel ? before?.idleSinceMs : undefined;
  return unchanged ?? nowMs;
}
