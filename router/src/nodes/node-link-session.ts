/**
 * One link: hello, welcome, then reports and usage from the agent, rules and wishes to it.
 *
 *   waiting ──hello──▶ linked ──end, replaced, stopped, misbehaved──▶ over
 *      └── no hello in time, a bad one, or a stranger's ────────▶ over
 */
import { X509Certificate } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { status } from "@grpc/grpc-js";
import type { DesiredState, KnownRouter, LoadReport, UsageBatch } from "@weiche/proto/weiche/node/v1/node_control.ts";
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import type { ModelId, NodeId } from "@weiche/shared/ids.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { version } from "@weiche/shared/program/version.ts";
import { linkSilenceMsMax, Silence } from "@weiche/shared/time/silence.ts";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import type { Attempt } from "@weiche/shared/usage-record.ts";
import { modelsMax, settledMax } from "@weiche/shared/wire/link-bounds.ts";
import type { UsageLedger } from "../usage/usage-ledger.ts";
import type { UnreadableRecord } from "../usage/records-set-aside.ts";
import { maySpeakFor } from "./node-listener.ts";
import { encodeRules, readHello, readRecords, readReport } from "./node-link-codec.ts";
import type { Downlink, LinkCall, Uplink } from "./node-link-codec.ts";
import type { NodeHello } from "./node-view.ts";
import type { NodeLinkEntry, NodeRegistry } from "./registry.ts";

export interface NodeLinkEvents {
  nodeLinked(node: NodeId, bootId: string, agentVersion: string): void;
  nodeUnlinked(node: NodeId, reason: UnlinkReason): void;
  /**
   * `detail` is for the log only, because it may contain text of an unauthenticated client. `from` is the node, or the
   * client's address while the node is unknown.
   */
  nodeRefused(reason: RefusalReason, detail: string, from: string): void;
  /** The node lists models that the catalogue assigns to other nodes. The router sends it no request for them. */
  hostingIgnored(node: NodeId, models: readonly ModelId[]): void;
  /** A report has slots in states that this version does not know. The router does not use these slots. */
  reportUnreadable(node: NodeId, slots: number): void;
  /**
   * The ledger set these records aside for a person. The router acknowledges them, because the agent would otherwise
   * send them for ever.
   */
  usageRejected(node: NodeId, rejected: readonly UnreadableRecord[]): void;
  /** The router did not acknowledge the records. The agent sends them again. */
  usageNotRecorded(node: NodeId, records: number, error: unknown): void;
}

/** `ended`: by the agent or the connection. `silent`: reports stopped. `replaced`: the node has another link. `stopped`: this router stops. */
type UnlinkReason = "ended" | "silent" | "replaced" | "stopped" | "misbehaved";
/**
 * `tls`: the client has no certificate of our authority. `crowd`: too many such clients, refused before TLS. `too-many`:
 * the client's certificate has too many connections. `too-often`: it connects too often.
 */
type RefusedAtDoor = "crowd" | "tls" | "too-many" | "too-often";
export type RefusalReason = RefusedAtDoor | "invalid" | "name" | "older-boot" | "late" | "stopping";

export interface NodeLinkParts {
  /** If set, a link needs a certificate that names its node. */
  readonly tls?: TlsFiles;
  readonly routerId: string;
  /** The host:port that agents dial for data connections. */
  readonly dataAddress: string;
  /** The routers that nodes may link to, including this router. */
  readonly routers: () => readonly KnownRouter[];
  readonly clock: Clock;
  readonly registry: NodeRegistry;
  readonly ledger: Pick<UsageLedger, "record">;
  /** Returns the rules of these models, without models that are not in the catalogue. */
  readonly rulesOf: (models: readonly ModelId[]) => readonly ModelRules[];
  /** Returns whether the catalogue lets the node host the model. */
  readonly mayHost: (node: NodeId, model: ModelId) => boolean;
  readonly desiredStateOf: (node: NodeId) => DesiredState | undefined;
  /** Called when a node has linked. Connections of earlier processes of its agent are over. */
  readonly onBoot: (node: NodeId, bootId: string) => void;
  readonly events: NodeLinkEvents;
}

const helloMsMax = 5_000;
/** Batches of one node that wait for the database at the same time. The agent sends further batches again. */
const batchesMax = 16;
/** Checking a record takes some 5 µs. */
const recordsPerTurn = 250;
/** The time for which the router gathers settled attempts. Agents need them only when a router dies. */
const settledMs = 50;
/** The router ends the link of an agent that leaves more messages unread. */
const unreadMax = 1_000;

/** The links by node. A node has one link, its newest. */
export type LinksByNode = Map<NodeId, NodeLinkSession>;

export class NodeLinkSession {
  readonly #call: LinkCall;
  readonly #parts: NodeLinkParts;
  readonly #links: LinksByNode;
  readonly #helloTimer: Timer;
  /** An agent reports each second. */
  readonly #silence: Silence;
  #hello: NodeHello | undefined;
  #entry: NodeLinkEntry | undefined;
  #batches = 0;
  #usageAtMs = -Infinity;
  #rulesSent = "";
  #ignored = "";
  #isOver = false;
  #settled: Attempt[] = [];
  #settledTimer: Timer | undefined;

  constructor(call: LinkCall, parts: NodeLinkParts, links: LinksByNode) {
    this.#call = call;
    this.#parts = parts;
    this.#links = links;
    this.#helloTimer = parts.clock.after(helloMsMax, () => this.refuse("late", "no hello in time"));
    this.#silence = new Silence(parts.clock, linkSilenceMsMax, () => this.end("silent"));
    call.on("data", ({ message, mistake }) => (mistake ? this.refuse("invalid", mistake) : this.#take(message)));
    call.on("end", () => this.end("ended")); // also the first event of a lost connection
    call.on("cancelled", () => this.end("ended"));
    call.on("error", () => this.end("ended"));
  }

  /** Ends the link and tells the agent why. */
  refuse(reason: Exclude<RefusalReason, RefusedAtDoor>, detail: string): void {
    if (this.#isOver) return;
    this.#parts.events.nodeRefused(reason, detail, this.#hello?.node ?? addressOf(this.#call));
    this.end("misbehaved", { code: refusalStatus[reason], details: detail });
  }

  /** Ends the link. An agent that did not end the link itself links again. */
  end(reason: UnlinkReason, error?: { readonly code: status; readonly details: string }): void {
    if (this.#isOver) return;
    this.#sendSettled();
    this.#isOver = true;
    this.#helloTimer.cancel();
    this.#silence.cancel();
    if (this.#hello) {
      const { node } = this.#hello;
      if (this.#links.get(node) === this) this.#links.delete(node);
      this.#entry?.down(this.#parts.clock.monotonicMs());
      this.#parts.events.nodeUnlinked(node, reason);
    }
    if (error) this.#call.emit("error", error); // grpc-js sends it as the status
    else this.#call.end();
  }

  /** Monotonic ms of the last usage. Undefined while usage waits for the database. */
  get usageQuietSinceMs(): number | undefined {
    return this.#batches > 0 ? undefined : this.#usageAtMs;
  }

  /** Reports the attempt to the agent within 50 ms. One message carries several attempts. */
  settled({ requestId, attempt }: Attempt): void {
    this.#settled.push({ requestId, attempt });
    if (this.#settled.length === 1) this.#settledTimer = this.#parts.clock.after(settledMs, () => this.#sendSettled());
  }

  #sendSettled(): void {
    this.#settledTimer?.cancel();
    const attempts = this.#settled;
    this.#settled = [];
    for (let first = 0; first < attempts.length; first += settledMax)
      this.#send({ $case: "settled", value: { attempts: attempts.slice(first, first + settledMax) } });
  }

  /** Sends news to the agent. Does nothing before the agent has named its node. */
  tell(news: Downlink): void {
    if (this.#hello) this.#send(news);
  }

  goodbye(): void {
    this.#send({ $case: "goodbye", value: {} });
  }

  desiredStateChanged(): void {
    const desired = this.#hello && this.#parts.desiredStateOf(this.#hello.node);
    if (desired) this.#send({ $case: "desiredState", value: desired });
  }

  /** Sends the node its rules if they have changed. */
  rulesChanged(): void {
    if (!this.#hello) return;
    this.#entry?.hostingChanged(this.#believed(this.#hello));
    const rules = this.#rules(this.#hello);
    const text = JSON.stringify(rules);
    if (text === this.#rulesSent) return;
    this.#rulesSent = text;
    this.#send({ $case: "modelRulesChanged", value: { models: rules.map(encodeRules) } });
  }

  #take(message: Uplink): void {
    if (this.#isOver) return;
    if (!message) return this.refuse("invalid", "the message is empty");
    if (message.$case === "hello") {
      const hello = readHello(message.value);
      return typeof hello === "string" ? this.refuse("invalid", hello) : this.#welcome(hello);
    }
    if (!this.#hello) return this.refuse("invalid", "the first message is not hello");
    if (message.$case === "loadReport") this.#report(this.#hello.node, message.value);
    else this.#record(this.#hello.node, message.value);
  }

  #report(node: NodeId, load: LoadReport): void {
    const report = readReport(load);
    this.#silence.heard();
    const unreadable = load.slots.length - report.slots.length;
    if (unreadable > 0) this.#parts.events.reportUnreadable(node, unreadable);
    this.#entry!.report(report, this.#parts.clock.monotonicMs());
  }

  #welcome(hello: NodeHello): void {
    const { node, bootId } = hello;
    if (this.#hello) return this.refuse("invalid", "a second hello");
    const certificate = this.#certificate();
    if (!maySpeakFor(node, certificate, this.#parts.tls))
      return this.refuse("name", `${node} has the certificate of ${certificate?.subjectAltName ?? "nobody"}`);
    const other = this.#links.get(node);
    if (other && other.#hello!.bootId > bootId)
      return this.refuse("older-boot", `${node} has been started again since`);
    other?.end("replaced", { code: status.ABORTED, details: "another link of this node has taken its place" });
    this.#helloTimer.cancel();
    this.#silence.heard();
    this.#hello = hello;
    this.#links.set(node, this);
    this.#parts.onBoot(node, bootId);
    this.#parts.events.nodeLinked(node, bootId, hello.agentVersion);
    this.#entry = this.#parts.registry.linkUp(this.#believed(hello), this.#parts.clock.monotonicMs());
    const rules = this.#rules(hello);
    this.#rulesSent = JSON.stringify(rules);
    const { routerId, dataAddress, desiredStateOf } = this.#parts;
    const desiredState = desiredStateOf(node);
    const routers = { routers: this.#parts.routers() };
    const welcome = { routerId, dataAddress, models: rules.map(encodeRules), desiredState, routers };
    this.#send({ $case: "welcome", value: { ...welcome, routerVersion: version } });
  }

  /**
   * The client's certificate. Undefined without TLS, on loopback. It is not kept, because a thousand certificates take
   * much memory.
   */
  #certificate(): X509Certificate | undefined {
    const raw = this.#call.getAuthContext().sslPeerCertificate?.raw;
    return raw && new X509Certificate(raw);
  }

  #record(node: NodeId, { batchId, records }: UsageBatch): void {
    if (this.#batches < batchesMax) void this.#acknowledge(node, batchId, records.length, this.#hand(node, records));
  }

  /** Hands records to the ledger, some in each turn of the event loop. Resolves with the commits to await. */
  async #hand(node: NodeId, wires: UsageBatch["records"]): Promise<readonly Promise<void>[]> {
    const commits: Promise<void>[] = [];
    for (let first = 0; first < wires.length; first += recordsPerTurn) {
      if (first > 0) await nextTurn();
      const { records, rejected } = readRecords(wires.slice(first, first + recordsPerTurn));
      if (rejected.length > 0) this.#parts.events.usageRejected(node, rejected);
      const commit = this.#parts.ledger.record(node, records, rejected);
      commit.catch(() => {}); // `#acknowledge` awaits it
      commits.push(commit);
    }
    return commits;
  }

  /**
   * Takes no records as an argument. Otherwise each repetition would keep them in memory while the database is away.
   */
  async #acknowledge(
    node: NodeId,
    batchId: bigint,
    records: number,
    handed: Promise<readonly Promise<void>[]>,
  ): Promise<void> {
    this.#batches++;
    try {
      await Promise.all(await handed);
      this.#send({ $case: "usageAck", value: { batchId } });
    } catch (error) {
      this.#parts.events.usageNotRecorded(node, records, error);
    } finally {
      this.#batches--;
      this.#usageAtMs = this.#parts.clock.monotonicMs();
    }
  }

  /** Returns the hello without models that the node may not host. Sends one event for each set of such models. */
  #believed(hello: NodeHello): NodeHello {
    const { node } = hello;
    const { mayHost, events } = this.#parts;
    const claimed = new Set(hello.slots.flatMap((slot) => slot.models));
    const ignored = [...claimed].filter((model) => !mayHost(node, model));
    if (ignored.length > 0 && ignored.join(" ") !== this.#ignored) events.hostingIgnored(node, ignored);
    this.#ignored = ignored.join(" ");
    const foreign = new Set(ignored);
    const slots = hello.slots.map((slot) => ({ ...slot, models: slot.models.filter((m) => !foreign.has(m)) }));
    return { ...hello, slots };
  }

  #rules(hello: NodeHello): readonly ModelRules[] {
    return this.#parts.rulesOf([...new Set(hello.slots.flatMap((slot) => slot.models))]).slice(0, modelsMax);
  }

  #send(message: Downlink): void {
    if (this.#isOver) return;
    this.#call.write({ message });
    if (this.#call.writableLength > unreadMax)
      this.end("misbehaved", { code: status.RESOURCE_EXHAUSTED, details: "the agent does not read" });
  }
}

/** Without the port, which differs when the client comes again. */
function addressOf(call: LinkCall): string {
  return call.getPeer().replace(/:\d+$/, "");
}

const refusalStatus = {
  invalid: status.INVALID_ARGUMENT,
  name: status.PERMISSION_DENIED,
  "older-boot": status.ALREADY_EXISTS,
  late: status.DEADLINE_EXCEEDED,
  stopping: status.UNAVAILABLE,
} as const;
