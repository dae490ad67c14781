/** The server of the public API. Every request gets one answer, with the router's request id and no headers of a node. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { fastify, type FastifyReply, type FastifyRequest } from "fastify";
import { ApiError } from "@weiche/shared/errors.ts";
import type { ListenAddress } from "@weiche/shared/http/listen.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { listenOn, type Listening } from "@weiche/shared/program/listen-on.ts";
import { bodyBytesMax } from "./body/body-receiver.ts";
import { BodyReaders } from "./body/body-readers.ts";
import { EngineDeaths } from "./engine-deaths.ts";
import { ByteBudget } from "@weiche/shared/http/byte-budget.ts";
import type { Authenticated } from "./authenticate.ts";
import { Exchange, type ApiEvents, type Endpoint } from "./exchange.ts";
import { generate, generateAs, type GenerateDeps, type InsideRequest } from "./generate.ts";
import { listModels } from "./models.ts";
import type { RouterConfig } from "../config/config.ts";
import { HttpAnswer, type AnswerSink } from "../edge/answer-sink.ts";
import { createClientAddress } from "../edge/client-address.ts";
import { createConnectionLimit } from "../edge/connection-limit.ts";
import { Connections } from "./connections.ts";
import { PageRefusal } from "../edge/html-pages.ts";
import { IpLimit } from "../edge/ip-limit.ts";
import {
  createListener,
  defaultListenerTimes,
  requireSoundHead,
  type ListenerTimes,
  type ServerCertificate,
} from "../edge/listener.ts";
import { answerRaw } from "../edge/raw-answer.ts";
import { isExpected, refusalCodeOf, refuse } from "./refuse.ts";
import type { RefusalReason } from "../usage/refusal-codes.ts";

export interface ApiServerDeps extends Pick<
  GenerateDeps,
  "keys" | "limiter" | "catalogue" | "place" | "began" | "upstream" | "verdicts" | "clock"
> {
  readonly config: Pick<RouterConfig, "limits" | "requestMsMax"> & { readonly listen: { readonly api: ListenAddress } };
  readonly events: ApiEvents;
  /** If undefined, the server speaks plain HTTP behind a proxy. */
  readonly tls?: ServerCertificate;
  readonly times?: Partial<ApiTimes>;
}

export type ApiServer = ReturnType<typeof createApiServer>;

/** A chat that did not arrive on the public listener. `request` has the body of a `POST /v1/chat/completions`. */
interface InsideChat extends InsideRequest {
  readonly request: IncomingMessage;
  readonly sink: AnswerSink;
  readonly authenticate: (exchange: Exchange) => Promise<Authenticated>;
}

export type ApiTimes = GenerateDeps["times"] & ListenerTimes;

const defaultTimes: ApiTimes = {
  ...defaultListenerTimes,
  bodyMsMax: 60_000,
  bytesPerExtraSecond: 250_000,
  graceMs: 5_000,
};

/** Memory for all large bodies together. */
const largeBodiesBytesMax = 1_000_000_000;
const noRoom: RefusalReason = "no_room_for_body";

/** How long to wait until cut exchanges are closed. It takes one or two turns of the event loop. */
const cutMsMax = 1_000;

type Handler = (exchange: Exchange) => Promise<void>;

export function createApiServer(deps: ApiServerDeps) {
  const { clock, events, config } = deps;
  const times = { ...defaultTimes, ...deps.times };
  const readers = new BodyReaders();
  const budget = new ByteBudget(largeBodiesBytesMax, bodyBytesMax, clock, noRoom);
  const engineDeaths = new EngineDeaths(clock, randomBytes(32));
  const generateDeps: GenerateDeps = {
    ...deps,
    readers,
    budget,
    engineDeaths,
    times,
    requestMsMax: config.requestMsMax,
  };
  const ipLimit = new IpLimit(config.limits, clock);
  const addressOf = createClientAddress(config.limits.trustedProxies, (proxy, entry) =>
    events.forwardedUnread(proxy, entry),
  );
  const connections = new Connections();
  /** `leaving`: requests are served, but each connection closes after its answer. */
  let state: "serving" | "leaving" | "draining" = "serving";

  const app = fastify({
    serverFactory: (listener) =>
      createListener(listener, {
        times,
        tls: deps.tls,
        limit: createConnectionLimit(config.limits, clock),
        onRefused: () => events.connectionRefused(),
        clock,
      }),
    exposeHeadRoutes: false,
    // Clients join base address and path, which may double a slash or leave one at the end.
    routerOptions: { ignoreDuplicateSlashes: true, ignoreTrailingSlash: true },
    clientErrorHandler(error, socket) {
      if (!connections.mayAnswerRaw(socket)) return socket.destroy();
      answerRaw(socket, error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? "timeout" : "malformed", clock);
    },
    frameworkErrors: (_error, request, reply) => serve("other", unsupported)(request, reply),
  });
  // Fastify must not read bodies, because no body is read before the key was checked.
  for (const method of app.supportedMethods) app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  app.setNotFoundHandler(serve("other", unsupported));
  for (const prefix of ["", "/v1"]) {
    app.get(
      `${prefix}/models`,
      serve("models", (exchange) => listModels(exchange, deps)),
    );
    for (const endpoint of ["chat", "completions", "embeddings"] as const) {
      const path = nodePaths[endpoint];
      const handler = serve(endpoint, (exchange) => generate(exchange, path, generateDeps));
      app.post(prefix + path.slice("/v1".length), handler);
    }
  }
  const { server } = app;
  let listening: Listening | undefined;
  server.on("connection", (socket: Socket) => connections.addSocket(socket));
  server.on("connect", (request: IncomingMessage, socket: Duplex) => {
    const isAdmitted = ipLimit.admit(addressOf(request));
    // Otherwise a client could read the page as the answer to an earlier request on the connection.
    if (!connections.mayAnswerRaw(socket)) return socket.destroy();
    answerRaw(socket, isAdmitted ? "unsupported" : "limited", clock);
  });

  /** Makes a route of a handler. */
  function serve(endpoint: Endpoint, handler: Handler) {
    return (request: FastifyRequest, reply: FastifyReply): void => {
      reply.hijack();
      const exchange = new Exchange(endpoint, request.raw, new HttpAnswer(reply.raw), clock);
      void run(exchange, async () => {
        admitFromOutside(request.raw, reply.raw);
        await handler(exchange);
      });
    };
  }

  /** Throws if the address exceeds its limit, if the router drains, or if the head is ambiguous. */
  function admitFromOutside(request: IncomingMessage, response: ServerResponse): void {
    if (state !== "serving") response.shouldKeepAlive = false;
    const address = addressOf(request);
    if (!ipLimit.admit(address)) {
      response.shouldKeepAlive = false;
      throw new PageRefusal("address_limit", ipLimit.retryAfterSeconds(address));
    }
    refuseWhileDraining();
    requireSoundHead(request, response);
  }

  function refuseWhileDraining(): void {
    if (state === "draining") throw stopping();
  }

  async function run(exchange: Exchange, work: () => Promise<void>): Promise<void> {
    connections.addExchange(exchange);
    exchange.onSettled(() => events.requestFinished(exchange.finishedAt(clock.monotonicMs(), clock.now())));
    try {
      await work();
    } catch (error) {
      if (!isExpected(error)) events.requestFailed(exchange.id, error);
      const code = refusalCodeOf(error);
      if (code && exchange.identity && !exchange.settled) events.requestRefused(exchange.identity, code);
      refuse(exchange, error, clock, times.discardMs);
    }
  }

  return {
    /** Number of exchanges whose answer is not closed. */
    get open(): number {
      return connections.exchanges;
    },
    /** Lists requests that are not settled, oldest first. */
    running: (): readonly Exchange[] => [...connections.live].filter(({ settled }) => !settled),
    /** Starts listening. Throws a `StartError` if it cannot. */
    async listen(): Promise<ListenAddress> {
      await app.ready();
      listening = await listenOn(server, config.listen.api);
      return { host: config.listen.api.host, port: listening.port };
    },
    /** Answers a chat that did not arrive on this listener. Resolves once the answer has begun. */
    chat({ request, sink, authenticate, ...inside }: InsideChat): Promise<void> {
      const exchange = new Exchange("chat", request, sink, clock);
      return run(exchange, async () => {
        refuseWhileDraining();
        await generateAs(exchange, await authenticate(exchange), nodePaths.chat, generateDeps, inside);
      });
    },
    /** Makes each connection close after its answer from now on, so that clients go to another router. */
    leave(): void {
      state = "leaving";
      for (const { sink } of connections.live) sink.endConnection?.();
    },
    /**
     * Refuses new requests. Running requests may end within `graceMs`. Then answers are cut, and requests that wait for
     * theirs are refused. `cutNodes` is called before, so that no node takes it for a client that has left: such a
     * request would be billed.
     */
    async close(graceMs: number, cutNodes: () => void = () => {}): Promise<void> {
      state = "draining";
      const closed = server.listening ? once(server, "close") : Promise.resolve();
      listening?.stop();
      server.close();
      if (!(await connections.quiet(graceMs, clock))) {
        cutNodes();
        connections.cutAll(stopping());
        await connections.quiet(cutMsMax, clock); // the billing of their attempts is decided when they close
      }
      connections.destroyAll();
      await Promise.all([closed, readers[Symbol.asyncDispose](), app.close()]);
    },
  };
}

function stopping(): ApiError {
  return new ApiError("maintenance", "This server is stopping.", { retryAfterSeconds: 1 });
}

/** Refuses an unknown path or method. */
function unsupported(): Promise<void> {
  return Promise.reject(new PageRefusal("path_not_supported"));
}
