/** A process's operations listener: `/metrics`, `/healthz`, `/readyz`, and on a router `/nodes`. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { Registry } from "prom-client";
import type { Clock } from "../time/clock.ts";
import { formatListen, type ListenAddress } from "../http/listen.ts";
import { readOneAtATime } from "../http/request-turns.ts";
import { openTlsFiles, type TlsFiles, type TlsFilesEvents } from "../http/tls-files.ts";
import { provesToken, type OpsConfig } from "./ops-access.ts";
import { version } from "./version.ts";
import { listenOn } from "./listen-on.ts";

interface OpsServer extends AsyncDisposable {
  /** The address with the actual port. */
  readonly address: ListenAddress;
  /** If undefined, the listener uses plain HTTP. */
  readonly tls: TlsFiles | undefined;
  /** Starts to answer `/nodes` and `/nodes/<name>/metrics`. */
  serveNodes(nodes: NodesMetrics): void;
}

/** Metrics of other processes, for scrapers that cannot reach these. */
export interface NodesMetrics {
  names(): readonly string[];
  /** Returns the node's metrics as text. Rejects with a message for the scraper if the node does not answer. */
  metricsOf(node: string): Promise<string>;
}

interface OpsParts {
  readonly config: OpsConfig;
  readonly metrics: Pick<Registry, "contentType" | "metrics">;
  readonly ready: () => boolean;
  readonly clock: Clock;
  readonly events: TlsFilesEvents;
}

/** Bounded, because others than Prometheus may reach the listener, and each scrape takes time. */
const times = { headersMsMax: 19_000, discardMs: 5_000, stallMsMax: 60_000 };
const limits = { connectionsCheckingInterval: 1_000, headersTimeout: times.headersMsMax, requestTimeout: 30_000 };

/** Opens the listener. Throws `StartError` if it cannot listen or its certificate cannot be used. */
export async function openOpsServer({ config, clock, events, ...parts }: OpsParts): Promise<OpsServer> {
  using stack = new DisposableStack();
  const tls = config.tls && stack.use(openTlsFiles(config.tls, clock, events));
  const desk = new OpsDesk({ ...parts, token: config.token });
  const server = tls ? createTlsServer({ ...limits, ...tls.current }, desk.answer) : createServer(limits, desk.answer);
  tls?.onChange((material) => (server as TlsServer).setSecureContext(material));
  readOneAtATime(server, clock, times);
  const listening = await listenOn(server, config.listen);
  const opened = stack.move();
  return {
    address: { host: config.listen.host, port: listening.port },
    tls,
    serveNodes: (nodes) => (desk.nodes = nodes),
    async [Symbol.asyncDispose]() {
      opened.dispose();
      listening.stop();
      await closeServer(server);
    },
  };
}

type DeskParts = Pick<OpsParts, "metrics" | "ready"> & Pick<OpsConfig, "token">;

class OpsDesk {
  nodes: NodesMetrics | undefined;
  readonly #parts: DeskParts;

  constructor(parts: DeskParts) {
    this.#parts = parts;
  }

  readonly answer = (request: IncomingMessage, response: ServerResponse): void => {
    const say = (status: number, text: string, type = "text/plain") =>
      response.writeHead(status, { "content-type": type }).end(text);
    const path = request.url!.split("?")[0]!;
    const { ready, token } = this.#parts;
    // Load balancers send no token.
    if (path === "/healthz") return void say(200, `ok ${version}\n`);
    if (path === "/readyz") return void say(ready() ? 200 : 503, ready() ? "ready\n" : "not ready\n");
    if (token !== undefined && !provesToken(request.headers.authorization, token)) {
      response.setHeader("www-authenticate", "Bearer");
      return void say(401, "send the bearer token of ops.tokenFile\n");
    }
    if (path === "/nodes") return void say(200, JSON.stringify(this.#targets(request)), "application/json");
    void this.#metrics(path).then(
      (text) => (text === undefined ? say(404, "not found\n") : say(200, text, this.#parts.metrics.contentType)),
      (error: Error) => say(503, `${error.message}\n`),
    );
  };

  async #metrics(path: string): Promise<string | undefined> {
    if (path === "/metrics") return this.#parts.metrics.metrics();
    const node = /^\/nodes\/([^/]+)\/metrics$/.exec(path)?.[1];
    return node !== undefined && this.nodes?.names().includes(node) ? this.nodes.metricsOf(node) : undefined;
  }

  /** Makes a list for Prometheus' `http_sd_configs`: every node, scraped through the address of this request. */
  #targets({ headers, socket }: IncomingMessage): readonly NodeTarget[] {
    const { localAddress, localPort } = socket;
    return nodeTargets(
      this.nodes?.names() ?? [],
      headers.host ?? formatListen({ host: localAddress!, port: localPort! }),
    );
  }
}

/** An entry of Prometheus' `http_sd_configs` and `file_sd_configs`. */
interface NodeTarget {
  readonly targets: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/** Makes the entries for nodes. `address`: the router's operations listener, as Prometheus reaches it. */
export function nodeTargets(nodes: readonly string[], address: string): readonly NodeTarget[] {
  return nodes.map((node) => ({
    targets: [address],
    labels: { node, instance: node, __metrics_path__: `/nodes/${node}/metrics` },
  }));
}

/** Closes a server and its connections. Resolves when it is closed, also if it did not listen. */
export async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}
