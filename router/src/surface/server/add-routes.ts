/**
 * Makes HTTP routes of the contract and its handlers. Every request passes the same steps: authentication, body,
 * schema, handler. Requests that the contract does not allow are refused.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { asId, type AccountId, type RequestId } from "@weiche/shared/ids.ts";
import { lightValuesMax, readJson, scanJson } from "@weiche/shared/http/json-guard.ts";
import type { Session } from "../../sign-in/sessions.ts";
import type { Origin } from "../../rights/accounts-context.ts";
import { RequestError } from "../../rights/request-error.ts";
import {
  object,
  type OperatorPart,
  type Part,
  type Reply,
  type Route,
  type Routes,
  type RouteTable,
  type RouteTerms,
} from "../contract/route.ts";
import { readQuery } from "./query.ts";
import type { WriteCookie } from "./session-cookie.ts";

/** A handler's argument. */
export interface Call<R extends RouteTerms> {
  /** Undefined for the operator, and for a client without a session on routes that `nobody` may call. */
  readonly session: [Extract<R["may"][number], "nobody" | "operator">] extends [never] ? Session : Session | undefined;
  /** The account whose data the route is about: see `Route.of`. */
  readonly accountId: R["of"] extends string ? AccountId : undefined;
  readonly params: Part<R, "params">;
  readonly query: Part<R, "query"> | OperatorPart<R, "query">;
  readonly body: Part<R, "body"> | OperatorPart<R, "body">;
  /** The actor for the audit log. */
  readonly origin: Origin;
  /** The client's network address. */
  readonly address: string;
  /** The session's token on the console's listener. Undefined elsewhere and without a session. */
  readonly credential?: string | undefined;
  readonly userAgent: string | undefined;
  readonly requestId: RequestId;
  /** Aborts when the client leaves before the end of the answer. */
  readonly left: AbortSignal;
  /** Sets the session's cookie with the answer. */
  setSession(token: string, maxAgeSeconds: number): void;
  clearSession(): void;
  /** Lets the handler of a stream route write the answer itself. Common headers are already set. */
  takeOver(): { readonly request: IncomingMessage; readonly response: ServerResponse };
}

export type Handlers<C extends RouteTable> = {
  readonly [Name in keyof C]: (call: Call<C[Name]>) => Reply<C[Name]> | Promise<Reply<C[Name]>>;
};

/** The differences between the portal's listener, the console's and the admin socket. */
export interface Entrance {
  /** Returns the route with this entrance's query and body, or undefined if it is not served here. */
  readonly serve: (route: Route) => Route | undefined;
  /** Authenticates the caller before the body is read. Throws if they may not call the route. */
  readonly admit: (route: Route, request: FastifyRequest) => Asker | Promise<Asker>;
  /** Returns the answer to an error. Logs bugs and outages. */
  readonly answerTo: (error: unknown, requestId: RequestId) => ErrorAnswer;
  /** Undefined if nobody signs in here. */
  readonly cookie?: WriteCookie;
}

export type Asker = Pick<Call<Route>, "session" | "origin" | "address" | "credential">;

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
}

type Handler = (call: Call<Route>) => unknown;
const askerOf = Symbol("asker");
type Known = FastifyRequest & { [askerOf]?: Asker };

/** Throws if a route has no handler or a handler no route. */
export function addRoutes<C extends Routes>(
  app: FastifyInstance,
  contract: C,
  handlers: Handlers<C>,
  entrance: Entrance,
): void {
  for (const name of new Set([...Object.keys(contract), ...Object.keys(handlers)]))
    if (!Object.hasOwn(contract, name) || !Object.hasOwn(handlers, name))
      throw new Error(`the route ${name} is missing in the contract or among the handlers`);

  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, bytes, done) => {
    if (bytes.length === 0) return done(null, undefined);
    const json = readJson(bytes as Buffer, scanJson(bytes as Buffer, lightValuesMax));
    if ("problem" in json) done(new RequestError("invalid", json.problem));
    else done(null, json.value);
  });
  const answer = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const { status, headers, body } = entrance.answerTo(error, asId(request.id));
    return reply.status(status).headers(headers).send(body);
  };
  app.setErrorHandler(answer);
  app.setNotFoundHandler((request, reply) =>
    answer(new RequestError("not_found", "there is no such route"), request, reply),
  );
  for (const [name, route] of Object.entries(contract)) {
    const served = entrance.serve(route);
    if (!served) continue;
    const handler = handlers[name] as unknown as Handler;
    if (served.readsBody) void app.register(async (apart) => addRoute(unread(apart), served, handler, entrance));
    else addRoute(app, served, handler, entrance);
  }
}

/** Leaves bodies to the handlers of this scope. */
function unread(app: FastifyInstance): FastifyInstance {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", (_request, _stream, done) => done(null));
  return app;
}

const noQuery = object({});

function addRoute(app: FastifyInstance, route: Route, handler: Handler, entrance: Entrance): void {
  app.route({
    method: route.method,
    url: route.path,
    // Fastify warns of parts that are present but undefined.
    schema: {
      ...(route.params && { params: route.params }),
      querystring: route.query ?? noQuery,
      ...(route.body && !route.readsBody && { body: route.body }),
    },
    onRequest: async (request: Known) => {
      request[askerOf] = await entrance.admit(route, request);
    },
    preParsing: async (request, reply, payload) => {
      if (request.headers.expect?.toLowerCase() === "100-continue") reply.raw.writeContinue();
      return payload;
    },
    preValidation: async (request) => {
      request.query = readQuery(route.query, request.query as Record<string, unknown>);
      if (!route.body && request.body !== undefined && !isEmpty(request.body))
        throw new RequestError("invalid", "this request takes no body");
    },
    handler: async (request: Known, reply) => {
      const call = callOf(route, request, reply, entrance);
      const result = await Promise.try(() => handler(call)).catch((error: unknown) => {
        if (!reply.sent) throw error;
        // The answer has begun, so only a cut connection can signal the error to the client.
        entrance.answerTo(error, call.requestId);
        reply.raw.destroy();
      });
      if (reply.sent) return reply;
      if (!route.reply) return reply.status(204).send();
      return reply.status(route.status ?? 200).send(result);
    },
  });
}

function callOf(route: Route, request: Known, reply: FastifyReply, { cookie }: Entrance): Call<Route> {
  const asker = request[askerOf]!;
  const setCookie = (token: string, maxAgeSeconds: number) => {
    if (!cookie) throw new Error(`${route.path} is served where nobody signs in`);
    void reply.header("set-cookie", cookie(token, maxAgeSeconds));
  };
  return {
    ...asker,
    accountId: asker.session?.user.accountId as undefined,
    params: request.params as undefined,
    query: request.query as undefined,
    body: request.body as undefined,
    userAgent: request.headers["user-agent"]?.slice(0, 400),
    requestId: asId(request.id),
    get left() {
      return leftSignal(reply.raw);
    },
    setSession: setCookie,
    clearSession: () => setCookie("", 0),
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

function isEmpty(body: unknown): boolean {
  return typeof body === "object" && body !== null && Object.keys(body).length === 0;
}
