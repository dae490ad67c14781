/**
 * A listener for browsers, such as the portal's: serves one application's pages, and the routes of an entrance below
 * `/api`. Every answer has headers that forbid browser features that our pages do not need.
 */
import { fastify, type FastifyInstance, type FastifyReply } from "fastify";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { uuidv7 } from "@weiche/shared/ids.ts";
import { formatListen, type ListenAddress } from "@weiche/shared/http/listen.ts";
import { listenOn } from "@weiche/shared/program/listen-on.ts";
import { closeServer } from "@weiche/shared/program/ops-server.ts";
import { createClientAddress } from "../../edge/client-address.ts";
import { createConnectionLimit } from "../../edge/connection-limit.ts";
import { htmlPage } from "../../edge/html-pages.ts";
import { IpLimit, timesAsMany, type IpLimitSettings } from "../../edge/ip-limit.ts";
import {
  createListener,
  defaultListenerTimes,
  requireSoundHead,
  type ListenerTimes,
  type ServerCertificate,
} from "../../edge/listener.ts";
import { answerRaw } from "../../edge/raw-answer.ts";
import { RequestError } from "../../rights/request-error.ts";
import type { BrowserListener } from "./browser-entrance.ts";
import { addPages } from "./built-pages.ts";
import { schemaChecks } from "./schema-checks.ts";
import type { WebEvents } from "./web-answers.ts";

export interface WebServerDeps {
  readonly listen: ListenAddress;
  /** The configured URL of its pages. If undefined, the listener's address counts. */
  readonly publicUrl?: string;
  /** If undefined, the listener uses plain HTTP. */
  readonly tls?: ServerCertificate;
  readonly limits: IpLimitSettings & { readonly trustedProxies: readonly string[] };
  readonly clock: Clock;
  readonly events: WebEvents;
  /** Returns whether the router is stopping. Each answer is then the last one on its connection. */
  readonly isLeaving?: () => boolean;
  /** Time limit for receiving a request's head and body, checked once a second. */
  readonly requestMsMax?: number;
  readonly times?: Partial<ListenerTimes>;
}

interface WebServer extends BrowserListener, AsyncDisposable {
  /** Takes routes besides the API and the pages. */
  readonly app: FastifyInstance;
  /** The address with the actual port. */
  readonly address: ListenAddress;
  /** Base URL of links to its pages. */
  readonly url: string;
  /** Adds the routes below `/api`. Call it once. Earlier requests wait for it. */
  serve(addApi: (api: FastifyInstance) => void): Promise<void>;
}

const bodyBytesMax = 64 << 10;
/** Pages get this many times the API's rate: a browser requests about ten files of a page at once, and all are in memory. */
export const pagesPerRequest = 15;

const securityHeaders = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

/** Opens the listener. `pages`: the folder of a built application, and the paths of its pages. */
export async function openWebServer(
  deps: WebServerDeps,
  pages: { readonly directory: string; readonly paths: readonly string[] },
): Promise<WebServer> {
  const { clock, tls, listen, publicUrl } = deps;
  const complete = Promise.withResolvers<void>();
  const app = createApp(deps, complete.promise);
  app.server.requestTimeout = deps.requestMsMax ?? 30_000;
  await using opened = new AsyncDisposableStack();
  opened.defer(() => app.close());
  const listening = await listenOn(app.server, listen);
  opened.defer(() => closeServer(app.server));
  opened.defer(() => listening.stop());
  const ipLimit = new IpLimit(deps.limits, clock);
  const addressOf = createClientAddress(deps.limits.trustedProxies, (proxy, entry) =>
    deps.events.forwardedUnread(proxy, entry),
  );
  const pageLimit = new IpLimit(timesAsMany(deps.limits, pagesPerRequest), clock);
  app.addHook("onRequest", async (request, reply) => {
    void reply.headers({ ...securityHeaders, "x-request-id": request.id });
    if (deps.isLeaving?.()) reply.raw.shouldKeepAlive = false;
    if (tls) void reply.header("strict-transport-security", "max-age=31536000");
    requireSoundHead(request.raw, reply.raw);
    // The API's routes have their own limit and error format.
    if (isBelowApi(request.url) || pageLimit.admit(addressOf(request.raw))) return;
    reply.raw.shouldKeepAlive = false;
    return reply
      .status(503)
      .headers({ "content-type": "text/html; charset=utf-8", "retry-after": "1" })
      .send(htmlPage(503));
  });
  const sendPage = addPages(app, pages.directory, pages.paths);
  app.setNotFoundHandler((request, reply) => {
    if (!sendPage(request, reply)) sendNotFound(reply);
  });
  const address = { host: listen.host, port: listening.port };
  const closing = opened.move();
  return {
    app,
    address,
    addressOf,
    url: (publicUrl ?? `http${tls ? "s" : ""}://${formatListen(address)}`).replace(/\/$/, ""),
    ownOrigin: publicUrl && new URL(publicUrl).origin,
    isTls: tls !== undefined,
    events: deps.events,
    async serve(addApi) {
      const limited = async (api: FastifyInstance) => {
        api.addHook("onRequest", async (request, reply) => {
          void reply.header("cache-control", "no-store");
          const address = addressOf(request.raw);
          if (ipLimit.admit(address)) return;
          reply.raw.shouldKeepAlive = false;
          const retryAfterSeconds = ipLimit.retryAfterSeconds(address);
          throw new RequestError("too_many_requests", "too many requests from this address", { retryAfterSeconds });
        });
        addApi(api);
      };
      await app.register(limited, { prefix: "/api" });
      await app.ready();
      complete.resolve();
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

function createApp(deps: WebServerDeps, complete: Promise<void>): FastifyInstance {
  const { clock, tls, events } = deps;
  return fastify({
    serverFactory: (listener) =>
      createListener((request, response) => void complete.then(() => listener(request, response)), {
        times: { ...defaultListenerTimes, ...deps.times },
        tls,
        limit: createConnectionLimit(deps.limits, clock),
        onRefused: () => events.connectionRefused(),
        clock,
      }),
    genReqId: () => uuidv7(clock),
    bodyLimit: bodyBytesMax,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 200 },
    ajv: schemaChecks,
    clientErrorHandler(error, socket) {
      // A client would take the error for part of an earlier answer on the connection.
      if (!socket.writable || socket.bytesWritten > 0) return void socket.destroy();
      answerRaw(socket, error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? "timeout" : "malformed", clock);
    },
    // For example a path that cannot be decoded. No hook has counted the request, so its connection is closed.
    frameworkErrors(_error, _request, reply: FastifyReply) {
      reply.raw.shouldKeepAlive = false;
      sendNotFound(reply);
    },
  });
}

function isBelowApi(url: string): boolean {
  return url.startsWith("/api/");
}

function sendNotFound(reply: FastifyReply): void {
  void reply
    .status(404)
    .header("content-type", "text/html; charset=utf-8")
    .send("<!doctype html><title>Not found</title><h1>Not found</h1>");
}
