/** The gRPC listener that agents link to, with one bidirectional stream per agent. */
import { Server, ServerCredentials, type ServerOptions } from "@grpc/grpc-js";
import { sleep, type Clock } from "@weiche/shared/time/clock.ts";
import type { StartJob } from "@weiche/shared/time/job.ts";
import type { NodeId } from "@weiche/shared/ids.ts";
import type { ListenAddress } from "@weiche/shared/http/listen.ts";
import { linkKeepAlive } from "@weiche/shared/time/silence.ts";
import type { Attempt } from "@weiche/shared/usage-record.ts";
import { furtherCalls, pacing } from "./link-pace.ts";
import { linkService, type Downlink, type LinkCall } from "./node-link-codec.ts";
import { NodeLinkSession, type LinksByNode, type NodeLinkParts } from "./node-link-session.ts";
import { crowded, openNodeListener } from "./node-listener.ts";
import type { StrangerLimit } from "./stranger-limit.ts";

interface NodeLinkOptions extends NodeLinkParts {
  readonly listen: ListenAddress;
  readonly strangers?: StrangerLimit;
  readonly job: StartJob<"heartbeats">;
  /** Names the state of the database that the router commits usage to. */
  readonly ledgerName: () => string;
  /** The router closes a connection without a call after this time. Defaults to `unusedMsMax`. */
  readonly connectionUnusedMsMax?: number;
}

export type NodeLink = Awaited<ReturnType<typeof openNodeLink>>;

const serverOptions: ServerOptions = {
  ...linkKeepAlive,
  "grpc.max_receive_message_length": 4 << 20,
  "grpc.max_send_message_length": 4 << 20,
  "grpc.enable_channelz": 0,
  // An agent has one call on a connection. Tools such as `grpcurl` may have a few.
  "grpc.max_concurrent_streams": 8,
};

const heartbeatEveryMs = 1_000;

/**
 * An agent's gRPC dials once more after a failed call, although the agent has given the connection up. Without this
 * bound nothing would close that connection.
 */
const unusedMsMax = 30_000;

export async function openNodeLink(options: NodeLinkOptions) {
  const sessions = new Set<NodeLinkSession>();
  const links: LinksByNode = new Map();
  let isStopping = false;

  const { connectionUnusedMsMax = unusedMsMax } = options;
  const server = new Server({
    ...serverOptions,
    "grpc.max_connection_idle_ms": connectionUnusedMsMax,
    interceptors: [pacing(options.clock)],
  });
  server.addService(linkService, {
    link(call: LinkCall) {
      const session = new NodeLinkSession(call, options, links);
      sessions.add(session);
      call.once("close", () => sessions.delete(session));
      if (isStopping) session.refuse("stopping", "the router is stopping");
    },
  });
  // Both node ports use the same listener, so that they share TLS and log refused clients.
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const calls = furtherCalls((socket) => listener.admitCall(socket));
  const listener = await openNodeListener({
    ...options,
    alpn: "h2",
    accept(socket) {
      calls.watch(socket);
      injector.injectConnection(socket);
    },
    onCrowd: (from) => options.events.nodeRefused("crowd", crowded, from),
    onTooMany: (reason, names, from) => options.events.nodeRefused(reason, names, from),
    onTlsRefused: (reason, from) => options.events.nodeRefused("tls", reason, from),
  });

  const tellAll = (news: Downlink) => sessions.forEach((session) => session.tell(news));
  const beat = () => tellAll({ $case: "heartbeat", value: { ledger: options.ledgerName() } });
  const heartbeats = options.job("heartbeats", heartbeatEveryMs, beat);

  return {
    address: listener.address,
    /** Sends new rules to the nodes whose models changed in the catalogue. */
    rulesChanged: () => sessions.forEach((session) => session.rulesChanged()),
    /** Sends all nodes the current list of routers. */
    routersChanged: () => tellAll({ $case: "routersChanged", value: { routers: options.routers() } }),
    desiredStateChanged: (node: NodeId) => links.get(node)?.desiredStateChanged(),
    /** Reports to the node that the record of this attempt counts, even if this router dies. */
    settled: (node: NodeId, attempt: Attempt) => links.get(node)?.settled(attempt),
    /**
     * Announces the stop. Agents send their usage to another router if they can. Links stay open, and new links are
     * refused.
     */
    goodbye(): void {
      isStopping = true;
      for (const session of sessions) session.goodbye();
    },
    /**
     * Records the usage of the last answers, then ends every link. Closes the remaining connections after `deadlineMs`.
     */
    async close(deadlineMs: number): Promise<void> {
      isStopping = true;
      const closed = listener.close(deadlineMs);
      await quiet(sessions, options.clock, deadlineMs);
      await heartbeats[Symbol.asyncDispose]();
      for (const session of sessions) session.end("stopped");
      injector.destroy(); // sends buffered data first
      await closed;
      calls[Symbol.dispose]();
    },
  };
}

/** An agent sends an answer's record within some 20 ms of the answer's end. */
const usageComesMs = 200;

/**
 * Resolves when no agent has sent usage for `usageComesMs`, or after `deadlineMs`. Another router records later usage.
 */
async function quiet(sessions: ReadonlySet<NodeLinkSession>, clock: Clock, deadlineMs: number): Promise<void> {
  const beganMs = clock.monotonicMs();
  const isQuiet = (nowMs: number) =>
    [...sessions].every(
      ({ usageQuietSinceMs: since }) => since !== undefined && nowMs - Math.max(since, beganMs) >= usageComesMs,
    );
  for (let nowMs = beganMs; nowMs - beganMs < deadlineMs && !isQuiet(nowMs); nowMs = clock.monotonicMs())
    await sleep(clock, 20);
}
