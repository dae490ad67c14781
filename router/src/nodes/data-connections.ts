/**
 * The router's ends of the data connections, which agents dial. The router uses a connection once its agent has named
 * its node. With TLS, the certificate must name the same node.
 */
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { FrameConnection } from "@weiche/shared/frames/frame-connection.ts";
import { ends, streamsMax } from "@weiche/shared/frames/frame.ts";
import type { NodeId } from "@weiche/shared/ids.ts";
import type { ListenAddress } from "@weiche/shared/http/listen.ts";
import {
  dataAlpn,
  metricsPath,
  requestsPath,
  connectionsMax,
  type NodeRequest,
  type RequestRecord,
} from "@weiche/shared/node-protocol.ts";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import type { Grants } from "../usage/grants.ts";
import { NodeAnswer, NodeRefused } from "./answer-body.ts";
import { askIdentity } from "./data-identity.ts";
import { certificateOf, crowded, maySpeakFor, openNodeListener, type NodeListener } from "./node-listener.ts";
import { readNodeRequests } from "./node-requests.ts";
import type { StrangerLimit } from "./stranger-limit.ts";
import { question } from "./connection-question.ts";
import type { NodeRegistry } from "./registry.ts";
import { NodeLost, type Upstream, type UpstreamRequest, type UpstreamResponse } from "./upstream.ts";

type DataRefusal = "crowd" | "tls" | "protocol" | "identity" | "name" | "too-many" | "too-often";

export interface DataConnectionsEvents {
  dataConnectionUp(node: NodeId, connections: number): void;
  dataConnectionDown(node: NodeId, connections: number): void;
  /**
   * The router closed a connection before its first request, or later because the agent broke a rule of the wire
   * (`protocol`). `detail` is for the log only, because it may contain text of an unauthenticated client. `from` is the
   * node, or the client's address while the node is unknown.
   */
  dataConnectionRefused(reason: DataRefusal, detail: string, from: string): void;
}

interface DataConnectionsOptions {
  readonly listen: ListenAddress;
  /** If undefined, the port uses plain TCP on loopback. */
  readonly tls?: TlsFiles;
  readonly strangers?: StrangerLimit;
  readonly routerId: string;
  readonly clock: Clock;
  readonly counts: NodeRegistry;
  /** Signs the identity that each attempt may be billed to. */
  readonly grants: Grants;
  readonly events: DataConnectionsEvents;
}

/** An agent replaces its data connections when its certificate changes. For a moment it has twice as many. */
const connectionsPerNodeMax = 2 * connectionsMax;

/** Prometheus gives up after 10 s by default. An agent with a hundred models returns about 300 KB. */
const metricsLimits = { answerMsMax: 8_000, answerBytesMax: 16 << 20 };

const readsDone = 1;

const requestsLimits = { answerMsMax: 2_000, answerBytesMax: 4 << 20 };

interface DataConnection {
  readonly node: NodeId;
  readonly bootId: string;
  readonly connection: FrameConnection;
}

export class DataConnections implements Upstream {
  readonly #options: DataConnectionsOptions;
  #listener!: NodeListener;
  readonly #usable = new Map<NodeId, Set<DataConnection>>();
  readonly #open = new Set<FrameConnection>();
  /** Number of admitted open connections by node, including connections after a GOAWAY. */
  readonly #admitted = new Map<NodeId, number>();

  private constructor(options: DataConnectionsOptions) {
    this.#options = options;
  }

  static async open(options: DataConnectionsOptions): Promise<DataConnections> {
    const data = new DataConnections(options);
    data.#listener = await openNodeListener({
      ...options,
      alpn: dataAlpn,
      accept: (socket) => void data.#admit(socket),
      onCrowd: (from) => options.events.dataConnectionRefused("crowd", crowded, from),
      onTooMany: (reason, names, from) => options.events.dataConnectionRefused(reason, names, from),
      onTlsRefused: (reason, from) => options.events.dataConnectionRefused("tls", reason, from),
    });
    return data;
  }

  get address(): ListenAddress {
    return this.#listener.address;
  }

  /** Admits an accepted connection, or closes it. */
  async #admit(socket: Socket): Promise<void> {
    const { clock, events, tls } = this.#options;
    let data: DataConnection | undefined;
    let isRefused = false;
    const connection = new FrameConnection(socket, {
      clock,
      draining: () => data && this.#unuse(data), // running requests end on this connection
      closed: (reason, broken) => {
        this.#open.delete(connection);
        if (data) this.#countAdmitted(data.node, -1);
        if (data) this.#unuse(data);
        if (broken) refuse("protocol", reason);
      },
    });
    this.#open.add(connection);
    const address = socket.remoteAddress ?? "";
    const refuse = (reason: DataRefusal, detail: string) => {
      if (!isRefused) events.dataConnectionRefused(reason, detail, data?.node ?? address);
      isRefused = true;
      connection.destroy();
    };
    if (socket instanceof TLSSocket && socket.alpnProtocol !== dataAlpn)
      return refuse("protocol", `the agent does not offer ${dataAlpn}`);
    const identity = await askIdentity(connection, clock);
    if (typeof identity === "string") return refuse("identity", identity);
    const node = identity.node as NodeId;
    const certificate = certificateOf(socket);
    if (!maySpeakFor(node, certificate, tls))
      return refuse("name", `${node} has the certificate of ${certificate?.subjectAltName}`);
    if (!connection.isOpen) return connection.destroy();
    if ((this.#admitted.get(node) ?? 0) >= connectionsPerNodeMax) return refuse("too-many", node);
    this.#countAdmitted(node, 1);
    data = { node, bootId: identity.bootId, connection };
    this.#use(data);
  }

  #countAdmitted(node: NodeId, by: 1 | -1): void {
    const count = (this.#admitted.get(node) ?? 0) + by;
    if (count === 0) this.#admitted.delete(node);
    else this.#admitted.set(node, count);
  }

  async send(node: NodeId, request: UpstreamRequest, signal: EndSignal): Promise<UpstreamResponse> {
    for (;;) {
      signal.throwIfAborted();
      const data = this.#leastLoaded(node);
      if (!data) throw new NodeLost(`no data connection to ${node}`);
      try {
        return await this.#sendOn(data, request, signal);
      } catch (error) {
        // The connection ended while this request was on its way. Another connection may take it.
        if (!(error instanceof NodeRefused) || data.connection.isOpen) throw error;
      }
    }
  }

  #sendOn(
    { node, connection }: DataConnection,
    request: UpstreamRequest,
    signal: EndSignal,
  ): Promise<UpstreamResponse> {
    const { slot, answers, body } = request;
    const dispatched = slot === undefined ? undefined : this.#options.counts.dispatched(node, slot, answers);
    const answer = new NodeAnswer(signal, dispatched);
    // `#leastLoaded` returns only open connections.
    answer.stream = connection.open(JSON.stringify(this.#recordOf(node, request)), answer)!;
    answer.stream.write(body);
    answer.stream.end(ends.complete);
    return answer.begun;
  }

  /** Returns the text of the node's `/metrics`. Rejects with a reason for people if the node returns none. */
  async metricsOf(node: NodeId): Promise<string> {
    const data = this.#leastLoaded(node);
    if (!data) throw new NodeLost(`${node} has no data connection`);
    const { status, text } = await question(data.connection, metricsPath, metricsLimits, this.#options.clock);
    if (status === 200) return text;
    throw new Error(`${node} does not return its metrics (${status}); is its agent older than the router?`);
  }

  /**
   * Returns the requests that the node serves. Rejects if the node does not answer, or if its agent is too old for this
   * question.
   */
  async requestsOf(node: NodeId): Promise<readonly NodeRequest[]> {
    const data = this.#leastLoaded(node);
    if (!data) throw new NodeLost(`${node} has no data connection`);
    const { status, text } = await question(data.connection, requestsPath, requestsLimits, this.#options.clock);
    if (status !== 200) throw new Error(`${node} does not list its requests (${status})`);
    return readNodeRequests(text);
  }

  /** Closes the data connections of earlier processes of the node's agent. */
  dropEarlierBoots(node: NodeId, bootId: string): void {
    for (const { bootId: other, connection } of this.#usable.get(node) ?? [])
      if (other !== bootId) connection.destroy();
  }

  /** Closes all data connections at once. Agents record that the router ended the requests, not the clients. */
  cut(): void {
    for (const connections of this.#usable.values()) for (const { connection } of connections) connection.destroy();
  }

  /** Stops accepting connections, lets running answers end, and closes the remaining connections after `deadlineMs`. */
  async close(deadlineMs: number): Promise<void> {
    const closed = this.#listener.close(deadlineMs);
    for (const connection of this.#open) connection.goAway();
    await closed;
  }

  #use(data: DataConnection): void {
    const { node } = data;
    const { counts, events } = this.#options;
    const connections = this.#usable.get(node) ?? new Set();
    this.#usable.set(node, connections.add(data));
    counts.connectionUp(node);
    events.dataConnectionUp(node, connections.size);
  }

  #unuse(data: DataConnection): void {
    const { node } = data;
    const { counts, events } = this.#options;
    const connections = this.#usable.get(node);
    if (!connections?.delete(data)) return;
    if (connections.size === 0) this.#usable.delete(node);
    counts.connectionDown(node);
    events.dataConnectionDown(node, connections.size);
  }

  #leastLoaded(node: NodeId): DataConnection | undefined {
    let least: DataConnection | undefined;
    for (const data of this.#usable.get(node) ?? []) {
      const { isOpen, streams } = data.connection;
      if (!isOpen || streams >= streamsMax) continue;
      if (!least || streams < least.connection.streams) least = data;
    }
    return least;
  }

  #recordOf(node: NodeId, request: UpstreamRequest): RequestRecord {
    const { path, requestId, attempt, model, slot = "", billing, tokensMax, remainingMs, body } = request;
    const { accountId, userId, keyId, factor } = billing;
    const grant = this.#options.grants.sign(node, { ...request, ...billing });
    return [
      ...([path, requestId, attempt, model, slot, accountId, userId, keyId, Number(factor)] as const),
      ...([tokensMax, grant, Math.floor(remainingMs), this.#options.routerId, body.length, readsDone] as const),
    ];
  }
}
