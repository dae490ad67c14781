/** The HTTP server under the public API: what Node decides before a request exists, and what it must not answer itself. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { Clock } from "@weiche/shared/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { readOneAtATime, type TurnTimes } from "@weiche/shared/request-turns.ts";
import type { TlsFiles } from "@weiche/shared/tls-files.ts";

export interface ListenerTimes extends TurnTimes {
  readonly keepAliveMs: number;
}

export type ServerCertificate = Pick<TlsFiles, "current" | "onChange">;

const headerBytesMax = 16 << 10;

export function createListener(
  listener: RequestListener,
  times: ListenerTimes,
  tls: ServerCertificate | undefined,
  clock: Clock,
): Server | TlsServer {
  const options = {
    connectionsCheckingInterval: Math.min(1_000, times.headersMsMax),
    headersTimeout: times.headersMsMax,
    // The body has a deadline of its own, which grows with what has come.
    requestTimeout: 0,
    keepAliveTimeout: times.keepAliveMs,
    maxHeaderSize: headerBytesMax,
    // Checked by us, so that the answer is ours.
    requireHostHeader: false,
  };
  const server = tls ? createTlsServer({ ...options, ...secure(tls) }, listener) : createServer(options, listener);
  tls?.onChange(() => (server as TlsServer).setSecureContext(secure(tls)));
  // A client that asks before it sends its body is told to go on when the body is wanted, not before.
  server.on("checkContinue", listener).on("checkExpectation", listener);
  readOneAtATime(server, clock, times);
  return server;
}

/** Clients of the public are older than our own agents. */
function secure({ current: { cert, key } }: ServerCertificate) {
  return { cert, key, minVersion: "TLSv1.2" as const };
}

/** Two hosts in one request are an attempt to have it read in two ways. */
export function requireOneHost({ rawHeaders, httpVersion }: IncomingMessage): void {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]!.toLowerCase() === "host") hosts++;
  if (hosts > 1 || (hosts === 0 && httpVersion !== "1.0"))
    throw new ApiError("invalid_request", "The request must have one Host header.");
}
