/**
 * Accepts connections of nodes: plain on loopback, otherwise with mutual TLS whose files may be replaced. With TLS, strangers
 * are limited before it.
 */
import { createServer, type Socket } from "node:net";
import { createServer as createTlsServer, TLSSocket, type Server as TlsServer } from "node:tls";
import type { X509Certificate } from "node:crypto";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { ListenAddress } from "@weiche/shared/http/listen.ts";
import { listenOn } from "@weiche/shared/program/listen-on.ts";
import { limitConnections } from "../edge/listener.ts";
import type { StrangerLimit } from "./stranger-limit.ts";
import { namesNode, type TlsFiles } from "@weiche/shared/http/tls-files.ts";

interface NodeListenerOptions {
  readonly listen: ListenAddress;
  readonly tls?: TlsFiles;
  /** With TLS. The two ports of a router share it. */
  readonly strangers?: StrangerLimit;
  /** Absent: `handshakeMsMax`. */
  readonly handshakeMsMax?: number;
  /** The name of the protocol above TLS. */
  readonly alpn: string;
  readonly clock: Clock;
  readonly accept: (socket: Socket) => void;
  /** A connection that `strangers` does not admit. */
  readonly onCrowd: (from: string) => void;
  /** A client without a certificate of ours, or with one that is no longer valid. `from`: "" if it is gone. */
  readonly onTlsRefused: (reason: string, from: string) => void;
}

export type NodeListener = Awaited<ReturnType<typeof openNodeListener>>;

/** What the log says of a connection that was not admitted. */
export const crowded = "too many connections without a certificate of ours, from this address or from all";

/** An agent gives up after 10 s. */
const handshakeMsMax = 5_000;
/** After a second the kernel probes each second, and gives up after ten. */
const socketOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 1_000 };

export async function openNodeListener(options: NodeListenerOptions) {
  const { listen, tls, clock, accept, onTlsRefused } = options;
  const server = tls ? createSecureServer(tls, options) : createServer(socketOptions, accept);
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  // The error of a rejected certificate says only that the connection was closed.
  server.on("tlsClientError", (error: Error, socket: TLSSocket) => {
    const { authorizationError, remoteAddress = "" } = socket;
    onTlsRefused(authorizationError ? String(authorizationError) : error.message, remoteAddress);
    // Node leaves a connection open whose handshake takes too long.
    socket.destroy();
  });
  const listening = await listenOn(server, listen);
  return {
    address: { host: listen.host, port: listening.port },
    /** Accepts nothing more; resolves when every connection has closed, and closes those left after `deadlineMs`. */
    async close(deadlineMs: number): Promise<void> {
      const deadline = clock.after(deadlineMs, () => sockets.forEach((socket) => socket.destroy()));
      listening.stop();
      server.close();
      await Promise.all([...sockets].map((socket) => new Promise((resolve) => socket.once("close", resolve))));
      deadline.cancel();
    },
  };
}

/** The client's certificate; undefined on a plain connection. */
export function certificateOf(socket: unknown): X509Certificate | undefined {
  return socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
}

/** Whether a client may speak for this node. With TLS its certificate must name the node. */
export function maySpeakFor(
  node: string,
  certificate: X509Certificate | undefined,
  tls: TlsFiles | undefined,
): boolean {
  return certificate ? namesNode(certificate, node) : tls === undefined;
}

type SecureOptions = Pick<NodeListenerOptions, "alpn" | "accept" | "strangers" | "onCrowd" | "handshakeMsMax">;

function createSecureServer(tls: TlsFiles, options: SecureOptions) {
  const { alpn, accept, strangers, onCrowd } = options;
  const server = createTlsServer(
    {
      ...tls.current,
      requestCert: true,
      rejectUnauthorized: true,
      ALPNProtocols: [alpn],
      handshakeTimeout: options.handshakeMsMax ?? handshakeMsMax,
      ...socketOptions,
    },
    accept,
  );
  server.once(
    "close",
    tls.onChange((material) => server.setSecureContext(material)),
  );
  if (strangers) limitStrangers(server, strangers, onCrowd);
  return server;
}

/** Runs before TLS sees a connection. */
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
