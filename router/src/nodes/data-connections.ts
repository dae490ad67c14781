/**
 * The router's ends of the data connections. Agents dial; on each connection that is accepted the router is the HTTP/2
 * client. A session is used once its agent has named its node and, with TLS, its certificate names the same node.
 */
import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { NodeId } from "@weiche/shared/ids.ts";
import type { ListenAddress } from "@weiche/shared/http/listen.ts";
import {
  metricsPath,
  nodeHeaders,
  requestsPath,
  routerWindowBytes,
  sessionMemoryMiB,
  sessionsMax,
  sessionWindowBytes,
  streamsPerSessionMax,
  type NodeRequest,
} from "@weiche/shared/node-protocol.ts";
import { watchPulse } from "@weiche/shared/time/session-pulse.ts";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import type { Grants } from "../usage/grants.ts";
import { NodeAnswer } from "./answer-body.ts";
import { askIdentity } from "./data-identity.ts";
import { certificateOf, maySpeakFor, openNodeListener, type NodeListener } from "./node-listener.ts";
import { readNodeRequests } from "./node-requests.ts";
import { question } from "./session-question.ts";
import type { NodeRegistry } from "./registry.ts";
import { NodeLost, type Upstream, type UpstreamRequest, type UpstreamResponse } from "./upstream.ts";

export interface DataConnectionsEvents {
  dataSessionUp(node: NodeId, sessions: number): void;
  dataSessionDown(node: NodeId, sessions: number): void;
  /** `detail`: for the log only, since it may contain text of an unauthenticated client. */
  dataSessionRefused(reason: "tls" | "identity" | "name" | "too-many", detail: string): void;
}

interface DataConnectionsOptions {
  readonly listen: ListenAddress;
  /** Absent: plain TCP, on loopback. */
  readonly tls?: TlsFiles;
  readonly routerId: string;
  readonly clock: Clock;
  readonly counts: Pick<NodeRegistry, "sessionUp" | "sessionDown" | "dispatched">;
  /** Signs whom each attempt may be billed to. */
  readonly grants: Pick<Grants, "sign">;
  readonly events: DataConnectionsEvents;
}

/** An agent replaces its sessions when its certificate changes: for a moment there are twice as many. */
const sessionsPerNodeMax = 2 * sessionsMax;

/** Prometheus gives up after 10 s by default. An agent with a hundred models says about 300 KB. */
const metricsLimits = { answerMsMax: 8_000, answerBytesMax: 16 << 20 };

const requestsLimits = { answerMsMax: 2_000, answerBytesMax: 4 << 20 };

interface DataSession {
  readonly node: NodeId;
  readonly bootId: string;
  readonly http2: ClientHttp2Session;
  readonly cut: () => void;
  streams: number;
}

export class DataConnections implements Upstream {
  readonly #options: DataConnectionsOptions;
  #listener!: NodeListener;
  readonly #usable = new Map<NodeId, Set<DataSession>>();
  /** All open sessions, admitted or not. */
  readonly #open = new Set<ClientHttp2Session>();

  private constructor(options: DataConnectionsOptions) {
    this.#options = options;
  }

  static async open(options: DataConnectionsOptions): Promise<DataConnections> {
    const data = new DataConnections(options);
    data.#listener = await openNodeListener({
      ...options,
      what: "data connections",
      accept: (socket) =>
        void data.#admit(socket).catch((error: Error) => {
          options.events.dataSessionRefused("identity", error.message);
          socket.destroy();
        }),
      onTlsRefused: (reason) => options.events.dataSessionRefused("tls", reason),
    });
    return data;
  }

  get address(): ListenAddress {
    return this.#listener.address;
  }

  /** Makes a session of an accepted connection, or closes it. */
  async #admit(socket: Socket): Promise<void> {
    const { clock, events } = this.#options;
    const http2 = connect("http://node", {
      createConnection: () => socket,
      settings: { initialWindowSize: routerWindowBytes, enablePush: false },
      maxSessionMemory: sessionMemoryMiB,
    });
    // Closing the session would reset its streams one by one, which the agent takes for clients that leave.
    const cut = () => void socket.destroy();
    this.#open.add(http2);
    http2.on("error", () => {}); // `close` follows
    http2.once("close", () => this.#open.delete(http2));
    http2.once("connect", () => http2.setLocalWindowSize(sessionWindowBytes));
    watchPulse(http2, clock, cut);
    const identity = await askIdentity(http2, clock);
    if (typeof identity === "string") {
      events.dataSessionRefused("identity", identity);
      return cut();
    }
    const node = identity.node as NodeId;
    const certificate = certificateOf(socket);
    if (!maySpeakFor(node, certificate, this.#options.tls)) {
      events.dataSessionRefused("name", `${node} has the certificate of ${certificate?.subjectAltName}`);
      return cut();
    }
    if ((this.#usable.get(node)?.size ?? 0) >= sessionsPerNodeMax) {
      events.dataSessionRefused("too-many", node);
      return cut();
    }
    if (http2.closed || http2.destroyed) return;
    this.#use({ node, bootId: identity.bootId, http2, cut, streams: 0 });
  }

  async send(node: NodeId, request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamResponse> {
    signal.throwIfAborted();
    const session = this.#leastLoaded(node);
    if (!session) throw new NodeLost(`no data session to ${node}`);
    const stream = this.#start(session, request);
    session.streams++;
    const { slot, answers } = request;
    const settle = slot === undefined ? () => {} : this.#options.counts.dispatched(node, slot, answers);
    stream.end(request.body);
    return answerOf(stream, node, signal, () => {
      session.streams--;
      settle();
    });
  }

  /** The text of the node's `/metrics`. Rejects, with a reason for people, if it cannot be had. */
  async metricsOf(node: NodeId): Promise<string> {
    const session = this.#leastLoaded(node);
    if (!session) throw new NodeLost(`${node} has no data session`);
    const { status, text } = await question(session.http2, metricsPath, metricsLimits, this.#options.clock);
    if (status === 200) return text;
    throw new Error(`${node} does not give its metrics here (${status}); is its agent older than the router?`);
  }

  /** The requests that the node serves. Rejects if it cannot be asked, or is older than this question. */
  async requestsOf(node: NodeId): Promise<readonly NodeRequest[]> {
    const session = this.#leastLoaded(node);
    if (!session) throw new NodeLost(`${node} has no data session`);
    const { status, text } = await question(session.http2, requestsPath, requestsLimits, this.#options.clock);
    if (status !== 200) throw new Error(`${node} does not list its requests (${status})`);
    return readNodeRequests(text);
  }

  /** Closes the sessions of earlier processes of the node's agent. */
  dropEarlierBoots(node: NodeId, bootId: string): void {
    for (const session of this.#usable.get(node) ?? []) if (session.bootId !== bootId) session.cut();
  }

  /** Closes all sessions at once. The agents see that the router ended them, not the clients. */
  cut(): void {
    for (const sessions of this.#usable.values()) for (const session of sessions) session.cut();
  }

  /** Accepts nothing more, lets running answers end, and cuts what is left after `deadlineMs`. */
  async close(deadlineMs: number): Promise<void> {
    const closed = this.#listener.close(deadlineMs);
    for (const http2 of this.#open) http2.close();
    await closed;
  }

  #use(session: DataSession): void {
    const { node, http2 } = session;
    const { counts, events } = this.#options;
    const sessions = this.#usable.get(node) ?? new Set();
    this.#usable.set(node, sessions.add(session));
    counts.sessionUp(node);
    events.dataSessionUp(node, sessions.size);
    const unuse = () => {
      if (!sessions.delete(session)) return;
      if (sessions.size === 0) this.#usable.delete(node);
      counts.sessionDown(node);
      events.dataSessionDown(node, sessions.size);
    };
    http2.once("goaway", unuse); // running requests end on it
    http2.once("close", unuse);
  }

  #leastLoaded(node: NodeId): DataSession | undefined {
    let least: DataSession | undefined;
    for (const session of this.#usable.get(node) ?? []) {
      if (session.http2.closed || session.http2.destroyed || session.streams >= streamsPerSessionMax) continue;
      if (!least || session.streams < least.streams) least = session;
    }
    return least;
  }

  #start({ http2, node }: DataSession, request: UpstreamRequest): ClientHttp2Stream {
    try {
      return http2.request({
        ":method": "POST",
        ":path": request.path,
        "content-type": "application/json",
        "content-length": request.body.length,
        [nodeHeaders.requestId]: request.requestId,
        [nodeHeaders.attempt]: request.attempt,
        [nodeHeaders.account]: request.billing.accountId,
        [nodeHeaders.user]: request.billing.userId,
        [nodeHeaders.key]: request.billing.keyId,
        [nodeHeaders.factor]: String(request.billing.factor),
        [nodeHeaders.model]: request.model,
        [nodeHeaders.tokensMax]: request.tokensMax,
        [nodeHeaders.grant]: this.#options.grants.sign(node, { ...request, ...request.billing }),
        ...(request.slot === undefined ? {} : { [nodeHeaders.slot]: request.slot }),
        [nodeHeaders.remainingMs]: Math.floor(request.remainingMs),
        [nodeHeaders.router]: this.#options.routerId,
      });
    } catch (error) {
      throw new NodeLost(`the data session to ${node} has just ended`, { cause: error });
    }
  }
}

/** Listens with `on` for what comes at the end of a stream: a waiting `once` takes a quarter of a KB for each. */
function answerOf(
  stream: ClientHttp2Stream,
  node: NodeId,
  signal: AbortSignal,
  closed: () => void,
): Promise<UpstreamResponse> {
  stream.on("error", () => {}); // `close` follows
  return new Promise((resolve, reject) => {
    let body: NodeAnswer | undefined;
    const onAbort = () => {
      if (body) return body.cancel();
      stream.close(constants.NGHTTP2_CANCEL);
      reject(signal.reason as Error);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    stream.once("response", (headers) => {
      body = new NodeAnswer(stream, headers);
      resolve({ status: headers[":status"]!, headers, body });
    });
    stream.on("close", () => {
      closed();
      signal.removeEventListener("abort", onAbort);
      if (body) body.end();
      else reject(new NodeLost(`${node} was lost before it answered`));
    });
  });
}
