/**
 * Accepts connections of nodes: plain on loopback, otherwise with mutual TLS. The TLS files may be replaced at any
 * time. Clients without a certificate are limited before TLS, the connections of a certificate after it.
 */
import { createServer, type Socket } from "node:net";
import { createServer as createTlsServer, TLSSocket, type Server as TlsServer } from "node:tls";
import type { X509Certificate } from "node:crypto";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { ListenAddress } from "@weiche/shared/http/listen.ts";
import { listenOn } from "@weiche/shared/program/listen-on.ts";
import { limitConnections } from "../edge/listener.ts";
import type { StrangerLimit } from "./stranger-limit.ts";
import { connectionsMax } from "@weiche/shared/node-protocol.ts";
import { namesNode, type TlsFiles } from "@weiche/shared/http/tls-files.ts";

interface NodeListenerOptions {
  readonly listen: ListenAddress;
  readonly tls?: TlsFiles;
  /** Only with TLS. The router's two node ports share one limit. */
  readonly strangers?: StrangerLimit;
  /** Defaults to `handshakeMsMax`. */
  readonly handshakeMsMax?: number;
  /** The name of the protocol above TLS. */
  readonly alpn: string;
  readonly clock: Clock;
  readonly accept: (socket: Socket) => void;
  /** Called for a connection that `strangers` does not admit. */
  readonly onCrowd: (from: string) => void;
  /** Called for a connection that exceeds the limit of its certificate. `names`: the nodes that the certificate names. */
  readonly onTooMany: (names: string, from: string) => void;
  /**
   * Called for a client without a valid certificate of our authority. `from` is empty if the client has disconnected.
   */
  readonly onTlsRefused: (reason: string, from: string) => void;
}

export type NodeListener = Awaited<ReturnType<typeof openNodeListener>>;

/** The text of the log for a connection that was not admitted. */
export const crowded = "too many connections without a certificate of ours, from this address or in total";

/**
 * Open connections of a port for each node that a certificate names. An agent holds at most twice `connectionsMax` data
 * connections to a router, and one link. The rest is for connections of earlier processes that have not ended yet.
 */
export const connectionsPerNameMax = 8 * connectionsMax;

/** An agent gives up after 10 s. */
const handshakeMsMax = 5_000;
/** The kernel probes an idle connection after one second, then each second, and gives up after ten. */
const socketOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 1_000 };

export async function openNodeListener(options: NodeListenerOptions) {
  const { listen, tls, clock, accept, onTlsRefused } = options;
  const server = tls ? createSecureServer(tls, options) : createServer(socketOptions, accept);
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  // For a rejected certificate, the error text is only that the connection was closed.
  server.on("tlsClientError", (error: Error, socket: TLSSocket) => {
    const { authorizationError, remoteAddress = "" } = socket;
    onTlsRefused(authorizationError ? String(authorizationError) : error.message, remoteAddress);
    // Node.js does not close a connection whose handshake takes too long.
    socket.destroy();
  });
  const listening = await listenOn(server, listen);
  return {
    address: { host: listen.host, port: listening.port },
    /** Stops accepting connections, and closes the remaining ones after `deadlineMs`. Resolves when all have closed. */
    async close(deadlineMs: number): Promise<void> {
      const deadline = clock.after(deadlineMs, () => sockets.forEach((socket) => socket.destroy()));
      listening.stop();
      server.close();
      await Promise.all([...sockets].map((socket) => new Promise((resolve) => socket.once("close", resolve))));
      deadline.cancel();
    },
  };
}

/** Returns the client's certificate. Undefined on a plain connection. */
export function certificateOf(socket: unknown): X509Certificate | undefined {
  return socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
}

/** Returns whether a client may act as this node. With TLS, its certificate must name the node. */
export function maySpeakFor(
  node: string,
  certificate: X509Certificate | undefined,
  tls: TlsFiles | undefined,
): boolean {
  return certificate ? namesNode(certificate, node) : tls === undefined;
}

type SecureOptions = Pick<
  NodeListenerOptions,
  "alpn" | "accept" | "strangers" | "onCrowd" | "onTooMany" | "handshakeMsMax"
>;

function createSecureServer(tls: TlsFiles, options: SecureOptions) {
  const { alpn, strangers, onCrowd } = options;
  const server = createTlsServer(
    {
      ...tls.current,
      requestCert: true,
      rejectUnauthorized: true,
      ALPNProtocols: [alpn],
      handshakeTimeout: options.handshakeMsMax ?? handshakeMsMax,
      ...socketOptions,
    },
    limitedByNames(options),
  );
  server.once(
    "close",
    tls.onChange((material) => server.setSecureContext(material)),
  );
  if (strangers) limitStrangers(server, strangers, onCrowd);
  return server;
}

/** Accepts connections up to the limit of their certificate. A renewed certificate shares the count of the earlier one. */
function limitedByNames({ accept, onTooMany }: SecureOptions): (socket: TLSSocket) => void {
  const held = new Map<string, number>();
  return (socket) => {
    const names = certificateOf(socket)?.subjectAltName ?? "";
    const before = held.get(names) ?? 0;
    if (before >= connectionsPerNameMax * names.split(",").length) {
      onTooMany(names, socket.remoteAddress ?? "");
      socket.destroy();
      return;
    }
    held.set(names, before + 1);
    socket.once("close", () => {
      const left = held.get(names)! - 1;
      if (left === 0) held.delete(names);
      else held.set(names, left);
    });
    accept(socket);
  };
}

/** Limits connections before TLS sees them. */
function limitStrangers(server: TlsServer, strangers: StrangerLimit, onCrowd: (from: string) => void): void {
  const unknown = new Map<string, (isKnown: boolean) => void>();
  const known = ({ remoteAddress, remotePort }: Socket, isKnown: boolean) => {
    const key = `${remoteAddress} ${remotePort}`;
    unknown.get(key)?.(isKnown);
    unknown.delete(key);
  };
  server.on("secureConnection", (socket) => known(socket, true));
  limitConnections(
    server,
    (socket) => {
      const settle = strangers.admit(socket);
      if (!settle) return false;
      const { remoteAddress, remotePort } = socket;
      const key = `${remoteAddress} ${remotePort}`;
      unknown.set(key, settle);
      socket.once("close", () => {
        if (unknown.get(key) !== settle) return;
        unknown.delete(key);
        settle(false);
      });
      return true;
    },
    ({ remoteAddress = "" }) => onCrowd(remoteAddress),
  );
}
