/**
 * Contract and handlers become routes below `/api`. Everything that is the same for all of them is here, in its order:
 * limit per address, credential, origin, media type, session, role, body, schema, handler. Whatever the table does not
 * allow is refused.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ApiError } from "@weiche/shared/errors.ts";
import { asId, type RequestId } from "@weiche/shared/ids.ts";
import type { Session, Sessions } from "../sign-in/session.ts";
import type { Origin } from "../rights/accounts-context.ts";
import { isUnavailable } from "../db/failures.ts";
import { lightValuesMax, readJson, scanJson } from "@weiche/shared/http/json-guard.ts";
import { PortalError, toRefusal, type PortalRefusal } from "./api-error.ts";
import { credentialOf, readQuery, requireJson, requireOwnOrigin, sessionCookie } from "./api-request.ts";
import type { Part, Reply, Route, Routes } from "./contract/route.ts";

/** What a handler is called with. Routes that `nobody` may call have a session only if the client has one. */
export interface Call<R extends Route> {
  readonly session: "nobody" extends R["roles"][number] ? Session | undefined : Session;
  readonly params: Part<R, "params">;
  readonly query: Part<R, "query">;
  readonly body: Part<R, "body">;
  /** Who acts, for the audit log. */
  readonly origin: Origin;
  /** The client's network address. */
  readonly address: string;
  readonly userAgent: string | undefined;
  readonly requestId: RequestId;
  /** Aborts when the client leaves before it has its whole answer. */
  readonly left: AbortSignal;
  /** The client gets this session with the answer. */
  setSession(token: string, maxAgeSeconds: number): void;
  clearSession(): void;
  /** For routes with a stream: from here on the answer is the handler's own, with our headers already set. */
  takeOver(): { readonly request: IncomingMessage; readonly response: ServerResponse };
}

export type Handlers<C extends Routes> = {
  readonly [Name in keyof C]: (call: Call<C[Name]>) => Reply<C[Name]> | Promise<Reply<C[Name]>>;
};

type Handler = (call: Call<Route>) => unknown;

export interface RouteDeps {
  readonly sessions: Pick<Sessions, "find">;
  readonly admit: (request: IncomingMessage) => boolean;
  readonly addressOf: (request: IncomingMessage) => string;
  /** Of the pages that may change something, if the operator said so; else the one that the request names as its host. */
  readonly ownOrigin: string | undefined;
  readonly isTls: boolean;
  readonly events: PortalEvents;
}

export interface PortalEvents {
  /** A bug of ours, answered with 500 or a cut connection. */
  requestFailed(requestId: RequestId, error: unknown): void;
  /** One address opened more connections than it may. */
  connectionRefused(): void;
  /** The database does not answer, answered with 503. */
  databaseUnavailable(error: unknown): void;
}

const sessionOf = Symbol("session");
type Known = FastifyRequest & { [sessionOf]?: Session | undefined };

/** Throws if a route has no handler or a handler no route. To be registered with the prefix `/api`. */
export function addRoutes<C extends Routes>(
  app: FastifyInstance,
  contract: C,
  handlers: Handlers<C>,
  deps: RouteDeps,
): void {
  for (const name of new Set([...Object.keys(contract), ...Object.keys(handlers)]))
    if (!Object.hasOwn(contract, name) || !Object.hasOwn(handlers, name))
      throw new Error(`the portal's route ${name} is not both in the contract and among the handlers`);

  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, bytes, done) => {
    if (bytes.length === 0) return done(null, undefined);
    const json = readJson(bytes as Buffer, scanJson(bytes as Buffer, lightValuesMax));
    if ("problem" in json) done(new PortalError("invalid", json.problem));
    else done(null, json.value);
  });
  app.setErrorHandler((error, request, reply) => send(reply, refusalOf(error, asId(request.id), deps.events)));
  app.setNotFoundHandler((_request, reply) => send(reply, toRefusal(new PortalError("not_found", "No such route."))!));
  app.addHook("onRequest", async (request, reply) => {
    void reply.header("cache-control", "no-store");
    if (deps.admit(request.raw)) return;
    reply.raw.shouldKeepAlive = false;
    throw new PortalError("too_many_requests", "Too many requests from this address.", { retryAfterSeconds: 1 });
  });
  for (const [name, route] of Object.entries(contract))
    addRoute(app, route, handlers[name] as unknown as Handler, deps);
}

function addRoute(app: FastifyInstance, route: Route, handler: Handler, deps: RouteDeps): void {
  app.route({
    method: route.method,
    url: route.path,
    ...(route.bodyBytesMax === undefined ? {} : { bodyLimit: route.bodyBytesMax }),
    schema: {
      ...(route.params ? { params: route.params } : {}),
      querystring: route.query ?? { type: "object", additionalProperties: false },
      ...(route.body ? { body: route.body } : {}),
    },
    onRequest: async (request: Known) => {
      request[sessionOf] = await admit(route, request, deps);
    },
    preParsing: async (request, reply, payload) => {
      if (request.headers.expect?.toLowerCase() === "100-continue") reply.raw.writeContinue();
      return payload;
    },
    preValidation: async (request) => {
      request.query = readQuery(route.query, request.query as Record<string, unknown>);
      if (!route.body && request.body !== undefined && !isEmpty(request.body))
        throw new PortalError("invalid", "This request takes no body.");
    },
    handler: async (request: Known, reply) => {
      const call = callOf(route, request, reply, deps);
      const result = await Promise.try(() => handler(call)).catch((error: unknown) => {
        if (!reply.sent) throw error;
        // Too late for an answer: a cut connection is how a client learns of it.
        refusalOf(error, call.requestId, deps.events);
        reply.raw.destroy();
      });
      if (reply.sent) return reply;
      if (!route.reply) return reply.status(204).send();
      return reply.status(route.status ?? 200).send(result);
    },
  });
}

/** The session of whoever may call this route. Nothing of the body is read before. */
async function admit(route: Route, request: FastifyRequest, deps: RouteDeps): Promise<Session | undefined> {
  const { headers } = request.raw;
  const token = credentialOf(headers);
  if (route.method !== "GET") {
    requireOwnOrigin(headers, deps.ownOrigin, deps.isTls);
    requireJson(headers);
  }
  const session = token === undefined ? undefined : await deps.sessions.find(token);
  if (route.roles.includes("nobody")) return session;
  if (!session) throw new PortalError("login_required", "Sign in first.");
  if (!route.roles.includes(session.user.role)) throw new PortalError("forbidden", "Your role does not allow this.");
  return session;
}

function callOf(route: Route, request: Known, reply: FastifyReply, deps: RouteDeps): Call<Route> {
  const session = request[sessionOf];
  const address = deps.addressOf(request.raw);
  return {
    session: session!,
    params: request.params as undefined,
    query: request.query as undefined,
    body: request.body as undefined,
    origin: { actor: session?.user.id ?? "nobody", source: address },
    address,
    userAgent: request.headers["user-agent"]?.slice(0, 400),
    requestId: asId(request.id),
    get left() {
      return leftSignal(reply.raw);
    },
    setSession: (token, maxAgeSeconds) => void reply.header("set-cookie", sessionCookie(token, maxAgeSeconds)),
    clearSession: () => void reply.header("set-cookie", sessionCookie("", 0)),
    takeOver() {
      if (!route.stream) throw new Error(`${route.path} has no stream`);
      reply.hijack();
      for (const [header, value] of Object.entries(reply.getHeaders()))
        if (value !== undefined) reply.raw.setHeader(header, value);
      return { request: request.raw, response: reply.raw };
    },
  };
}

function leftSignal(response: ServerResponse): AbortSignal {
  const left = new AbortController();
  const leave = () => response.writableFinished || left.abort(new Error("the client left"));
  if (response.destroyed) leave();
  else response.once("close", leave);
  return left.signal;
}

/** What a client may hear of it; the rest is for the operator. */
function refusalOf(error: unknown, requestId: RequestId, events: PortalEvents): PortalRefusal {
  const known = toRefusal(error);
  if (known) return known;
  if (isUnavailable(error)) {
    events.databaseUnavailable(error);
    const busy = new ApiError("overloaded", "The database does not answer at the moment.", { retryAfterSeconds: 2 });
    return toRefusal(busy)!;
  }
  events.requestFailed(requestId, error);
  return toRefusal(new ApiError("internal", "Internal error."))!;
}

function send(reply: FastifyReply, { status, headers, body }: PortalRefusal) {
  return reply.status(status).headers(headers).send(body);
}

function isEmpty(body: unknown): boolean {
  return typeof body === "object" && body !== null && Object.keys(body).length === 0;
}
