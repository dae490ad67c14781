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
  /** Where people reach the portal, if the operator said so. */
  readonly publicUrl?: string;
  /** Where the public API is reached. */
  readonly apiUrl: string;
  /** Absent: plain HTTP behind a proxy. */
  readonly tls?: ServerCertificate;
  readonly limits: IpLimitSettings & { readonly trustedProxies: readonly string[] };
  readonly sessions: Pick<Sessions, "find">;
  readonly clock: Clock;
  readonly events: PortalEvents;
  /** Within which a request has arrived, head and body; looked at once a second. */
  readonly requestMsMax?: number;
  readonly times?: Partial<ListenerTimes>;
}

export interface PortalServer extends AsyncDisposable {
  readonly address: ListenAddress;
  /** For links. */
  readonly url: string;
  /** Once. Requests that come before wait for it. */
  serve(handlers: Handlers<Contract>): Promise<void>;
}

const bodyBytesMax = 64 << 10;
/** A page is some ten files in memory, and a browser asks for them at once. */
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

export async function openPortal(deps: PortalDeps): Promise<PortalServer> {
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
      // After an earlier answer, or in the midst of one, nobody could tell this one from it.
      if (!socket.writable || socket.bytesWritten > 0) return void socket.destroy();
      answerRaw(socket, error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? "timeout" : "malformed", clock);
    },
    // Such as a path that cannot be decoded. No hook has counted it, so it costs its connection.
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
  const url = (publicUrl ?? `http${tls ? "s" : ""}://${formatListen(address)}`).replace(/\/$/, "");

  const ipLimit = new IpLimit(deps.limits, clock);
  const addressOf = createClientAddress(deps.limits.trustedProxies);
  const pageLimit = new IpLimit(timesAsMany(deps.limits, pagesPerRequest), clock);
  app.addHook("onRequest", async (request, reply) => {
    void reply.headers({ ...securityHeaders, "x-request-id": request.id });
    if (tls) void reply.header("strict-transport-security", "max-age=31536000");
    requireSoundHead(request.raw, reply.raw);
    // The routes of the API have a limit and an answer of their own.
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
    async serve(handlers) {
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
