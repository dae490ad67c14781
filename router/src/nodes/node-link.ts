/**
 * The gRPC listener that agents link to: one bidirectional stream per agent, with health and reflection beside it, so
 * that `grpcurl` finds its way.
 */
import { Server, ServerCredentials, type ServerOptions } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { HealthImplementation } from "grpc-health-check";
import type { NodeId } from "@weiche/shared/ids.ts";
import { StartError } from "@weiche/shared/directory-lock.ts";
import { formatListen, type ListenAddress } from "@weiche/shared/listen.ts";
import type { TlsFiles } from "@weiche/shared/tls-files.ts";
import { linkService, linkServiceName, type LinkCall } from "./node-link-codec.ts";
import { NodeLinkSession, type LinksByNode, type NodeLinkParts } from "./node-link-session.ts";
import { describeServices } from "./reflection.ts";

export interface NodeLinkOptions extends NodeLinkParts {
  readonly listen: ListenAddress;
  /** Absent: no TLS, on loopback. */
  readonly tls?: TlsFiles;
}

export interface NodeLink {
  readonly address: ListenAddress;
  /** The catalogue is another one: nodes whose models it concerns are told. */
  rulesChanged(): void;
  desiredStateChanged(node: NodeId): void;
  /** The router is stopping: agents send their usage elsewhere; links stay, none is added. */
  goodbye(): void;
  /** Ends every link; what has not gone after `deadlineMs` is cut. */
  close(deadlineMs: number): Promise<void>;
}

/** A silent agent is noticed within 4.5 s. */
const serverOptions: ServerOptions = {
  "grpc.keepalive_time_ms": 1_500,
  "grpc.keepalive_timeout_ms": 3_000,
  "grpc.max_receive_message_length": 4 << 20,
  "grpc.max_send_message_length": 4 << 20,
  "grpc.enable_channelz": 0,
};

export async function openNodeLink(options: NodeLinkOptions): Promise<NodeLink> {
  const { listen, tls, clock } = options;
  const sessions = new Set<NodeLinkSession>();
  const links: LinksByNode = new Map();
  let isStopping = false;

  const server = new Server(serverOptions);
  server.addService(linkService, {
    link(call: LinkCall) {
      const session = new NodeLinkSession(call, options, links);
      sessions.add(session);
      call.once("close", () => sessions.delete(session));
      if (isStopping) session.refuse("stopping", "the router is stopping");
    },
  });
  const health = new HealthImplementation({ "": "SERVING", [linkServiceName]: "SERVING" });
  health.addToServer(server);
  new ReflectionService(describeServices()).addToServer(server);
  const credentials = tls ? new ReloadedCredentials(tls) : ServerCredentials.createInsecure();
  const port = await bind(server, listen, credentials);

  return {
    address: { host: listen.host, port },
    rulesChanged: () => sessions.forEach((session) => session.rulesChanged()),
    desiredStateChanged: (node) => links.get(node)?.desiredStateChanged(),
    goodbye() {
      isStopping = true;
      for (const name of ["", linkServiceName]) health.setStatus(name, "NOT_SERVING");
      for (const session of sessions) session.goodbye();
    },
    async close(deadlineMs) {
      isStopping = true;
      for (const session of sessions) session.end("stopped");
      const gone = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
      const deadline = clock.after(deadlineMs, () => server.forceShutdown());
      await gone;
      deadline.cancel();
    },
  };
}

/** Mutual TLS whose files may change: links that are up stay, new ones get the new certificate. */
class ReloadedCredentials extends ServerCredentials {
  constructor(tls: TlsFiles) {
    super({ requestCert: true, rejectUnauthorized: true }, tls.current);
    tls.onChange((material) => this.updateSecureContextOptions(material));
  }

  _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

function bind(server: Server, listen: ListenAddress, credentials: ServerCredentials): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(formatListen(listen), credentials, (error, port) => {
      if (!error) return resolve(port);
      const why = error.message.includes("EADDRINUSE") ? "the port is in use" : error.message;
      reject(new StartError(`cannot listen on ${formatListen(listen)} (node links): ${why}`));
    });
  });
}
