/** The HTTP server below the public API: timeouts, TLS, connection limit, and checks of the head that Node.js omits. */
import { constants } from "node:crypto";
import type { EventEmitter } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { readOneAtATime, type TurnTimes } from "@weiche/shared/http/request-turns.ts";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import type { ConnectionLimit } from "./connection-limit.ts";

export interface ListenerTimes extends TurnTimes {
  readonly keepAliveMs: number;
  /** Timeout of the TLS handshake. */
  readonly handshakeMsMax: number;
}

export const defaultListenerTimes: ListenerTimes = {
  /** Checked once a second, so a request's head may take at most 20 s. */
  headersMsMax: 19_000,
  handshakeMsMax: 10_000,
  keepAliveMs: 75_000,
  discardMs: 5_000,
  stallMsMax: 60_000,
};

export type ServerCertificate = Pick<TlsFiles, "current" | "onChange">;

const headerBytesMax = 16 << 10;

interface ListenerDeps {
  readonly times: ListenerTimes;
  /** If undefined, the server speaks plain HTTP. */
  readonly tls: ServerCertificate | undefined;
  readonly limit: ConnectionLimit;
  /** Called for each connection that `limit` refuses. */
  readonly onRefused: () => void;
  readonly clock: Clock;
}

export function createListener(
  listener: RequestListener,
  { times, tls, limit, onRefused, clock }: ListenerDeps,
): Server | TlsServer {
  const options = {
    connectionsCheckingInterval: Math.min(1_000, times.headersMsMax),
    headersTimeout: times.headersMsMax,
    // The body has a separate deadline, which grows with the bytes received.
    requestTimeout: 0,
    keepAliveTimeout: times.keepAliveMs,
    maxHeaderSize: headerBytesMax,
    // `requireSoundHead` checks the Host header, so that the error has the API's format.
    requireHostHeader: false,
  };
  const server = tls
    ? createTlsServer({ ...options, ...secure(tls), handshakeTimeout: times.handshakeMsMax }, listener)
    : createServer(options, listener);
  tls?.onChange(() => (server as TlsServer).setSecureContext(secure(tls)));
  // The request's handler sends `100 Continue` when it reads the body.
  server.on("checkContinue", listener).on("checkExpectation", listener);
  readOneAtATime(server, clock, times);
  limitConnections(server, limit, onRefused);
  return server;
}

/** Applies the limit before all existing listeners for connections, TLS included. */
export function limitConnections(
  server: EventEmitter,
  limit: ConnectionLimit,
  onRefused: (socket: Socket) => void,
): void {
  const listeners = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    if (limit(socket)) for (const each of listeners) each.call(server, socket);
    else {
      onRefused(socket);
      socket.resetAndDestroy();
    }
  });
}

/** TLS 1.2 for older clients, but only with forward secrecy and authenticated encryption: no static RSA, no CBC. */
const ciphers = [
  ...["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"],
  ...["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"],
  ...["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"],
  ...["ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"],
].join(":");

function secure({ current: { cert, key } }: ServerCertificate) {
  return { cert, key, ciphers, minVersion: "TLSv1.2" as const, secureOptions: constants.SSL_OP_NO_RENEGOTIATION };
}

/**
 * Throws an `ApiError` for a head that Node.js accepts but a proxy may read differently (request smuggling): two hosts,
 * another HTTP version, a transfer coding besides `chunked`. The connection closes after the answer.
 */
export function requireSoundHead(request: IncomingMessage, response: { shouldKeepAlive: boolean }): void {
  const mistake = mistakeIn(request);
  if (mistake === undefined) return;
  response.shouldKeepAlive = false;
  throw new ApiError("invalid_request", mistake);
}

function mistakeIn({ headers, rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return "The request must use HTTP/1.1.";
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]!.toLowerCase() === "host") hosts++;
  if (hosts > 1 || (hosts === 0 && httpVersion !== "1.0")) return "The request must have one Host header.";
  // Node.js itself then refuses a coding that does not end in `chunked`.
  const coding = headers["transfer-encoding"]?.trim().toLowerCase();
  if (coding?.endsWith("chunked") && (coding !== "chunked" || httpVersion === "1.0"))
    return "The only supported Transfer-Encoding is chunked, in HTTP/1.1.";
  return undefined;
}
