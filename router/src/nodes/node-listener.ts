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
import { CertificateLimit } from "./certificate-limit.ts";
import { certificateTrouble, handshakeTrouble } from "@weiche/shared/http/certificate-trouble.ts";
import type { StrangerLimit } from "./stranger-limit.ts";
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
  /** Called for a connection that exceeds a limit of its certificate. `names`: the nodes that the certificate names. */
  readonly onTooMany: (reason: "too-many" | "too-often", names: string, from: string) => void;
  /**
   * Called for a client without a valid certificate of our authority. `from` is empty if the client has disconnected.
   */
  readonly onTlsRefused: (reason: string, from: string) => void;
}

export type NodeListener = Awaited<ReturnType<typeof openNodeListener>>;

/** The text of the log for a connection that was not admitted. */
export const crowded = "too many connections without a certificate of ours, from this address or in total";

/** An agent gives up after 10 s. */
const handshakeMsMax = 5_000;
/** The kernel probes an idle connection after one second, then each second, and gives up after ten. */
const socketOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 1_000 };

export async function openNodeListener(options: NodeListenerOptions) {
  const { listen, tls, clock, accept, onTlsRefused, onTooMany } = options;
  const limit = new CertificateLimit(clock);
  const server = tls ? createSecureServer(tls, options, limit) : createServer(socketOptions, accept);
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("tlsClientError", (error: Error, socket: TLSSocket) => {
    onTlsRefused(handshakeTrouble(error), socket.remoteAddress ?? "");
    // Node.js does not close a connection whose handshake takes too long.
    socket.destroy();
  });
  const listening = await listenOn(server, listen);
  return {
    address: { host: listen.host, port: listening.port },
    /**
     * Counts a further call on an accepted connection like a handshake of its certificate, or without TLS for this
     * connection alone. Returns false if there are too many calls. The connection is then closed.
     */
    admitCall(socket: Socket): boolean {
      const names = namesOf(socket);
      if (limit.admitCall(tls ? names : `${socket.remoteAddress} ${socket.remotePort}`)) return true;
      onTooMany("too-often", names, socket.remoteAddress ?? "");
      // Its protocol may be reading at this moment.
      setImmediate(() => socket.destroy());
      return false;
    },
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

/** Returns the names of the client's certificate, separated by commas. */
function namesOf(socket: Socket): string {
  return certificateOf(socket)?.subjectAltName ?? "";
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
  "alpn" | "tls" | "accept" | "strangers" | "onCrowd" | "onTooMany" | "onTlsRefused" | "handshakeMsMax"
>;

function createSecureServer(tls: TlsFiles, options: SecureOptions, limit: CertificateLimit) {
  const { alpn, strangers, onCrowd } = options;
  const server = createTlsServer({
    ...tls.current,
    requestCert: true,
    // `limitCertificates` refuses, because Node.js would close the connection before the certificate can be named.
    rejectUnauthorized: false,
    ALPNProtocols: [alpn],
    handshakeTimeout: options.handshakeMsMax ?? handshakeMsMax,
    ...socketOptions,
  });
  server.once(
    "close",
    tls.onChange((material) => server.setSecureContext(material)),
  );
  const settle = strangers && limitStrangers(server, strangers, onCrowd);
  limitCertificates(server, limit, options, settle);
  return server;
}

/** Ends the handshake of a client, which is known, or counts as a failed one. */
type Settle = (socket: Socket, isKnown: boolean) => void;

/**
 * Accepts connections with a certificate of our authority, within the limits of this certificate. A client that connects
 * too often counts as a stranger from then on, so that its address is refused before the next handshake.
 */
function limitCertificates(
  server: TlsServer,
  limit: CertificateLimit,
  { tls, accept, onTooMany, onTlsRefused }: SecureOptions,
  settle?: Settle,
): void {
  server.on("secureConnection", (socket) => {
    const certificate = certificateOf(socket);
    if (!socket.authorized || !certificate) {
      const code = String(socket.authorizationError);
      const trouble = certificateTrouble(code, certificate, "the node's certificate", tls?.paths.ca ?? "");
      onTlsRefused(trouble, socket.remoteAddress ?? "");
      socket.destroy();
      return;
    }
    const names = namesOf(socket);
    const verdict = limit.admit(names);
    settle?.(socket, verdict !== "too-often");
    if (verdict !== "admitted") {
      onTooMany(verdict, names, socket.remoteAddress ?? "");
      socket.destroy();
      return;
    }
    socket.once("close", () => limit.closed(names));
    accept(socket);
  });
}

/** Limits connections before TLS sees them. */
function limitStrangers(server: TlsServer, strangers: StrangerLimit, onCrowd: (from: string) => void): Settle {
  const unknown = new Map<string, (isKnown: boolean) => void>();
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
  return ({ remoteAddress, remotePort }, isKnown) => {
    const key = `${remoteAddress} ${remotePort}`;
    unknown.get(key)?.(isKnown);
    unknown.delete(key);
  };
}
