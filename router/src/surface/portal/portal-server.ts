/** The portal's listener: its JSON API below `/api`, its pages, and the OpenAPI documents of both APIs. */
import { fastify, type FastifyInstance, type FastifyReply } from "fastify";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { uuidv7 } from "@weiche/shared/ids.ts";
import { formatListen, type ListenAddress } from "@weiche/shared/http/listen.ts";
import { closeServer, listenOn } from "@weiche/shared/program/ops-server.ts";
import { openApiDocument } from "../../api/openapi.ts";
import type { Sessions } from "../../sign-in/sessions.ts";
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
import { Refused } from "../../rights/refused.ts";
import { contract, type Contract } from "../contract/contract.ts";
import { addRoutes, type Handlers } from "../server/add-routes.ts";
import { portalEntrance, type PortalEvents } from "./portal-entrance.ts";
import { portalOpenApi } from "./portal-openapi.ts";
import { addPages } from "./portal-pages.ts";

export interface PortalDeps {
  readonly listen: ListenAddress;
  /** The configured URL of the portal. Absent: the address of the listener. */
  readonly publicUrl?: string;
  /** Base URL of the public API. */
  readonly apiUrl: string;
  /** Absent: plain HTTP behind a proxy. */
  readonly tls?: ServerCertificate;
  readonly limits: IpLimitSettings & { readonly trustedProxies: readonly string[] };
  readonly sessions: Pick<Sessions, "find">;
  readonly clock: Clock;
  readonly events: PortalEvents;
  /** Time limit for receiving a request, head and body; checked once a second. */
  readonly requestMsMax?: number;
  readonly times?: Partial<ListenerTimes>;
}

const bodyBytesMax = 64 << 10;
/** A browser asks for the ten or so files of a page at once, and they are served from memory. */
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

export async function openPortal(deps: PortalDeps) {
  const { clock, tls, listen, publicUrl, apiUrl } = deps;
  const times = { ...defaultListenerTimes, ...deps.times };
  const complete = Promise.withResolvers<void>();
  const app = fastify({
    serverFactory: (listener) =>
      createListener((request, response) => void complete.promise.then(() => listener(request, response)), {
        times,
        tls,
        limit: createConnectionLimit(deps.limits, clock),
        onRefused: () => deps.events.connectionRefused(),
        clock,
      }),
    genReqId: () => uuidv7(clock),
    bodyLimit: bodyBytesMax,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 200 },
    ajv: { customOptions: { allErrors: true, coerceTypes: false, removeAdditional: false, useDefaults: false } },
    clientErrorHandler(error, socket) {
      // A client would take it for part of an earlier answer on the connection.
      if (!socket.writable || socket.bytesWritten > 0) return void socket.destroy();
      answerRaw(socket, error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? "timeout" : "malformed", clock);
    },
    // For example a path that cannot be decoded. No hook has counted the request, so its connection is closed.
    frameworkErrors(_error, _request, reply: FastifyReply) {
      reply.raw.shouldKeepAlive = false;
      sendNotFound(reply);
    },
  });
  app.server.requestTimeout = deps.requestMsMax ?? 30_000;
  await using opened = new AsyncDisposableStack();
  opened.defer(() => app.close());
  const port = await listenOn(app.server, listen, "portal");
  opened.defer(() => closeServer(app.server));
  const address = { host: listen.host, port };
  /** Base URL of links. */
  const url = (publicUrl ?? `http${tls ? "s" : ""}://${formatListen(address)}`).replace(/\/$/, "");

  const ipLimit = new IpLimit(deps.limits, clock);
  const addressOf = createClientAddress(deps.limits.trustedProxies);
  const pageLimit = new IpLimit(timesAsMany(deps.limits, pagesPerRequest), clock);
  app.addHook("onRequest", async (request, reply) => {
    void reply.headers({ ...securityHeaders, "x-request-id": request.id });
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
  app.setNotFoundHandler((_request, reply) => sendNotFound(reply));
  addPages(app);
  for (const [path, document] of [
    ["/openapi.json", JSON.stringify(openApiDocument(apiUrl))],
    ["/api/openapi.json", JSON.stringify(portalOpenApi(contract, url))],
  ] as const)
    app.get(path, (_request, reply) => reply.type("application/json").send(document));
  const entrance = portalEntrance({
    sessions: deps.sessions,
    addressOf,
    ownOrigin: publicUrl && new URL(publicUrl).origin,
    isTls: tls !== undefined,
    events: deps.events,
  });
  const closing = opened.move();
  return {
    address,
    url,
    /** Call once. Earlier requests wait for it. */
    async serve(handlers: Handlers<Contract>): Promise<void> {
      const addApi = async (api: FastifyInstance) => {
        api.addHook("onRequest", async (request, reply) => {
          void reply.header("cache-control", "no-store");
          if (ipLimit.admit(addressOf(request.raw))) return;
          reply.raw.shouldKeepAlive = false;
          throw new Refused("too_many_requests", "too many requests from this address", { retryAfterSeconds: 1 });
        });
        addRoutes(api, contract, handlers, entrance);
      };
      await app.register(addApi, { prefix: "/api" });
      await app.ready();
      complete.resolve();
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

function isBelowApi(url: string): boolean {
  return url.startsWith("/api/") && !url.startsWith("/api/openapi.json");
}

function sendNotFound(reply: FastifyReply): void {
  void reply
    .status(404)
    .header("content-type", "text/html; charset=utf-8")
    .send("<!doctype html><title>Not found</title><h1>Not found</h1>");
}
