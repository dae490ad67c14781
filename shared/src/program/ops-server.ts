/** The operations listener of a process: `/metrics`, `/healthz`, `/readyz`. Loopback by default. */
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { Registry } from "prom-client";
import type { Clock } from "../time/clock.ts";
import { StartError } from "../files/start-error.ts";
import { formatListen, type ListenAddress } from "../http/listen.ts";
import { readOneAtATime } from "../http/request-turns.ts";
import { version } from "./version.ts";

export interface OpsServer extends AsyncDisposable {
  /** The address with the actual port. */
  readonly address: ListenAddress;
}

/** Others than Prometheus may reach it, and each response of `/metrics` is work. */
const times = { headersMsMax: 19_000, discardMs: 5_000, stallMsMax: 60_000 };

export async function openOpsServer(
  listen: ListenAddress,
  registry: Pick<Registry, "contentType" | "metrics">,
  ready: () => boolean,
  clock: Clock,
): Promise<OpsServer> {
  const limits = { connectionsCheckingInterval: 1_000, headersTimeout: times.headersMsMax, requestTimeout: 30_000 };
  const server = createServer(limits, (request, response) => {
    const path = request.url?.split("?")[0];
    if (path === "/metrics") {
      void registry
        .metrics()
        .then((text) => response.writeHead(200, { "content-type": registry.contentType }).end(text));
    } else if (path === "/healthz") {
      answer(200, `ok ${version}`);
    } else if (path === "/readyz") {
      answer(ready() ? 200 : 503, ready() ? "ready" : "not ready");
    } else {
      answer(404, "not found");
    }
    function answer(status: number, text: string): void {
      response.writeHead(status, { "content-type": "text/plain" }).end(`${text}\n`);
    }
  });
  readOneAtATime(server, clock, times);
  const port = await listenOn(server, listen, "operations");
  return {
    address: { host: listen.host, port },
    [Symbol.asyncDispose]: () => closeServer(server),
  };
}

/** Listens; returns the actual port. Throws `StartError`, which names `what`. */
export async function listenOn(
  server: { listen(port: number, host: string): unknown; address(): unknown } & NodeJS.EventEmitter,
  listen: ListenAddress,
  what: string,
): Promise<number> {
  server.listen(listen.port, listen.host);
  try {
    await once(server, "listening");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === "EADDRINUSE" ? "the port is in use" : (code ?? "unknown error");
    throw new StartError(`cannot listen on ${formatListen(listen)} (${what}): ${why}`);
  }
  return (server.address() as { port: number }).port;
}

/** Closes a server and its connections. Resolves when it is closed, also if it did not listen. */
export async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}
