/**
 * Two bare proxies in a row, placed like router and agent but without their work. They measure the cost of the leg between
 * two processes. `front PORT NEXT LEG [CA]` accepts HTTP/1.1 and forwards over LEG. `back PORT ENGINE LEG [CERT KEY]` accepts
 * LEG and forwards to the engine over HTTP/1.1. LEG is `h2` (over TCP), `h2-tls` or `h1-tls`.
 */
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, createSecureServer, createServer as createH2Server, type ServerHttp2Stream } from "node:http2";
import { createServer as createTlsServer } from "node:https";
import { buffer } from "node:stream/consumers";
import { Pool } from "undici";

const [role, port, next, leg, ...files] = process.argv.slice(2) as [string, string, string, string, ...string[]];
const unlimited = { headersTimeout: 0, bodyTimeout: 0, connections: null };
const h2Settings = { settings: { initialWindowSize: 1 << 20, maxConcurrentStreams: 20_000 }, maxSessionMemory: 4_096 };

if (role === "front") {
  const passOn = leg === "h1-tls" ? overPool(nextPool()) : overSession();
  listen(createServer((request, response) => passOn(request, response)));
} else {
  const pool = new Pool(`http://127.0.0.1:${next}`, unlimited);
  const identity = leg === "h2" ? {} : { cert: readFileSync(files[0]!), key: readFileSync(files[1]!) };
  if (leg === "h1-tls") listen(createTlsServer(identity, (request, response) => overPool(pool)(request, response)));
  else {
    const server = leg === "h2" ? createH2Server(h2Settings) : createSecureServer({ ...identity, ...h2Settings });
    server.on("stream", (stream: ServerHttp2Stream) => {
      const reply = h2Reply(stream);
      // The body is collected, because undici would otherwise take the whole stream for the body and end it.
      void buffer(stream).then(
        (body) => dispatch(pool, body, stream, reply),
        () => {},
      );
    });
    listen(server);
  }
}

function listen(server: { listen(port: number, host: string, backlog: number): unknown }): void {
  server.listen(Number(port), "127.0.0.1", 4096);
}

function nextPool(): Pool {
  return new Pool(`https://localhost:${next}`, { ...unlimited, connect: { ca: readFileSync(files[0]!) } });
}

function overPool(pool: Pool) {
  return (request: IncomingMessage, response: ServerResponse) =>
    dispatch(pool, request, response, {
      head: (status, type) => void response.writeHead(status, { "content-type": type }),
      write: (bytes) => response.write(bytes),
      end: () => void response.end(),
    });
}

/** Returns a handler over one session, which is never reopened: enough for a benchmark. */
function overSession() {
  const session =
    leg === "h2"
      ? connect(`http://127.0.0.1:${next}`, h2Settings)
      : connect(`https://localhost:${next}`, { ...h2Settings, ca: readFileSync(files[0]!) });
  session.on("error", (error) => console.error(error));
  return (request: IncomingMessage, response: ServerResponse) => {
    const stream = session.request({ ":method": "POST", ":path": request.url!, "content-type": "application/json" });
    stream.on("error", () => response.destroy());
    response.once("close", () => stream.close());
    stream.once("response", (headers) => {
      response.writeHead(headers[":status"]!, { "content-type": headers["content-type"] });
      stream.on("data", (bytes: Buffer) => {
        if (response.write(bytes)) return;
        stream.pause();
        response.once("drain", () => stream.resume());
      });
      stream.once("end", () => response.end());
    });
    request.pipe(stream);
  };
}

interface Reply {
  head(status: number, type: string): void;
  write(bytes: Buffer): boolean;
  end(): void;
}

function h2Reply(stream: ServerHttp2Stream): Reply {
  stream.on("error", () => {});
  return {
    head: (status, type) => stream.respond({ ":status": status, "content-type": type }),
    write: (bytes) => stream.write(bytes),
    end: () => void stream.end(),
  };
}

type Outgoing = ServerResponse | ServerHttp2Stream;

function dispatch(pool: Pool, body: IncomingMessage | Buffer, outgoing: Outgoing, reply: Reply): void {
  const headers = { "content-type": "application/json" };
  pool.dispatch(
    { path: "/v1/chat/completions", method: "POST", headers, body },
    {
      onRequestStart: (controller) =>
        void outgoing.once("close", () => {
          if (!outgoing.writableFinished) controller.abort(new Error("the client left"));
        }),
      onResponseStart: (_controller, status, given) => reply.head(status, String(given["content-type"] ?? "")),
      onResponseData(controller, bytes) {
        if (reply.write(bytes)) return;
        controller.pause();
        outgoing.once("drain", () => controller.resume());
      },
      onResponseEnd: () => reply.end(),
      onResponseError: () => void outgoing.destroy(),
    },
  );
}
