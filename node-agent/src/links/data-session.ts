/** One data session: the agent dials, and is then the HTTP/2 server. */
import { once } from "node:events";
import {
  performServerHandshake,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { ListenAddress } from "@weiche/shared/http/listen.ts";
import {
  agentWindowBytes,
  identityPath,
  sessionMemoryMiB,
  sessionWindowBytes,
  type NodeIdentity,
} from "@weiche/shared/node-protocol.ts";
import { keepAliveDelayMs, watchPulse } from "@weiche/shared/time/session-pulse.ts";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import type { StreamSession } from "../exchange/exchange.ts";

/** Takes a request from the router; it owns the stream from then on. */
export type StreamHandler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, session: StreamSession) => void;

export interface DialOptions {
  /** Absent: plain TCP, to loopback. */
  readonly tls?: TlsFiles;
  readonly clock: Clock;
  readonly identity: NodeIdentity;
  readonly handle: StreamHandler;
  readonly onStreams: () => void;
}

/** Time limit from dialling to the router's first request. */
const dialMsMax = 4_000;
/** Slots admit requests: HTTP/2 must not hold back streams, since it would do so silently. */
const streamsMax = 10_000;
/** Node's default ends a session at a thousand quick cancels. */
const resets = { streamResetBurst: 100_000, streamResetRate: 10_000 };

/** Resolves once the router has asked who this is; rejects with the reason if it does not come to that. */
export async function dialDataSession(address: ListenAddress, options: DialOptions): Promise<DialledSession> {
  const { tls, clock } = options;
  const socket = tls ? connectTls({ ...address, ...tls.current, ALPNProtocols: ["h2"] }) : connect(address);
  const deadline = clock.after(dialMsMax, () => socket.destroy(new Error(`no answer within ${dialMsMax} ms`)));
  try {
    await once(socket, tls ? "secureConnect" : "connect");
    socket.setNoDelay(true);
    socket.setKeepAlive(true, keepAliveDelayMs);
    const session = new DialledSession(socket, options);
    await session.taken;
    return session;
  } finally {
    deadline.cancel();
  }
}

export class DialledSession implements StreamSession {
  /** Resolves when the router asks for the identity. */
  readonly taken: Promise<void>;
  readonly closed: Promise<void>;
  streams = 0;
  readonly #http2: ServerHttp2Session;
  readonly #socket: Socket;

  constructor(socket: Socket, options: DialOptions) {
    this.#socket = socket;
    const settings = { initialWindowSize: agentWindowBytes, enablePush: false, maxConcurrentStreams: streamsMax };
    this.#http2 = performServerHandshake(socket, { ...resets, settings, maxSessionMemory: sessionMemoryMiB });
    this.#http2.setLocalWindowSize(sessionWindowBytes);
    watchPulse(this.#http2, options.clock, () => this.destroy());
    const taken = Promise.withResolvers<void>();
    this.taken = taken.promise;
    this.#http2.on("stream", (stream, headers) => {
      stream.on("error", () => {}); // `close` follows
      if (headers[":path"] === identityPath) {
        taken.resolve();
        return answerIdentity(stream, options.identity);
      }
      this.streams++;
      stream.once("close", () => {
        this.streams--;
        options.onStreams();
      });
      options.handle(stream, headers, this);
      options.onStreams();
    });
    let reason = "the router closed the connection";
    this.#http2.on("error", (error) => (reason = error.message));
    this.closed = new Promise((resolve) => this.#http2.once("close", resolve));
    void this.closed.then(() => taken.reject(new Error(reason)));
  }

  get open(): boolean {
    return !this.#http2.closed && !this.#http2.destroyed;
  }

  routerLost(): boolean {
    return this.#http2.destroyed;
  }

  /** Takes no more streams; resolves when those that run have ended. */
  async close(): Promise<void> {
    this.#http2.close();
    await this.closed;
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

function answerIdentity(stream: ServerHttp2Stream, identity: NodeIdentity): void {
  stream.respond({ ":status": 200, "content-type": "application/json" });
  stream.end(JSON.stringify(identity));
}
