/** One data connection. The agent dials, and takes the streams that the router opens. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls, TLSSocket } from "node:tls";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { FrameConnection } from "@weiche/shared/frames/frame-connection.ts";
import { ends, type Rule } from "@weiche/shared/frames/frame.ts";
import type { FrameStream, StreamSink } from "@weiche/shared/frames/frame-stream.ts";
import type { ListenAddress } from "@weiche/shared/http/listen.ts";
import {
  dataAlpn,
  identityPath,
  readRecord,
  type AnswerRecord,
  type NodeIdentity,
} from "@weiche/shared/node-protocol.ts";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";

/** Takes a request of the router, and takes its stream over. `record`: the fields of its HEAD frame. */
export type StreamHandler = (stream: FrameStream, record: readonly unknown[]) => StreamSink;

export interface DialOptions {
  /** If undefined, plain TCP to loopback. */
  readonly tls?: TlsFiles;
  readonly clock: Clock;
  readonly identity: NodeIdentity;
  readonly handle: StreamHandler;
  /** Called when the router has opened a stream, or will open no more. */
  readonly onStream: () => void;
  /** The router broke a rule of the protocol, and the connection was closed. */
  readonly onBroken: (rule: Rule, reason: string) => void;
}

/**
 * The time limit from dialling to the router's first request. A restarted router accepts a thousand nodes at once, and
 * agents that gave up early would add to its work.
 */
const dialMsMax = 10_000;

/** Resolves once the router has asked for the agent's identity. Rejects with the reason if it does not. */
export async function dialDataConnection(address: ListenAddress, options: DialOptions): Promise<DialledConnection> {
  const { tls, clock } = options;
  const socket = tls ? connectTls({ ...address, ...tls.current, ALPNProtocols: [dataAlpn] }) : connect(address);
  const deadline = clock.after(dialMsMax, () => socket.destroy(new Error(`no answer within ${dialMsMax} ms`)));
  try {
    await once(socket, tls ? "secureConnect" : "connect");
    const connection = new DialledConnection(socket, options);
    if (socket instanceof TLSSocket && socket.alpnProtocol !== dataAlpn)
      socket.destroy(new Error(`the router does not speak ${dataAlpn}`));
    await connection.taken;
    return connection;
  } finally {
    deadline.cancel();
  }
}

export class DialledConnection {
  /** Resolves when the router asks for the identity. */
  readonly taken: Promise<void>;
  readonly closed: Promise<void>;
  readonly #connection: FrameConnection;

  constructor(socket: Socket, { clock, identity, handle, onStream, onBroken }: DialOptions) {
    const taken = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    this.taken = taken.promise;
    this.closed = closed.promise;
    this.#connection = new FrameConnection(socket, {
      clock,
      take: (stream, text) => {
        const record = readRecord(text);
        if (record[0] === identityPath) {
          taken.resolve();
          return answerQuestion(stream, () => JSON.stringify(identity));
        }
        onStream();
        return handle(stream, record);
      },
      // The router opens no more streams here, so another data connection is dialled.
      draining: onStream,
      closed: (reason, broken) => {
        taken.reject(new Error(reason));
        closed.resolve();
        if (broken) onBroken(broken, reason);
      },
    });
  }

  get open(): boolean {
    return this.#connection.isOpen;
  }

  get streams(): number {
    return this.#connection.streams;
  }

  /** Takes no more streams. Resolves when the running ones have ended. */
  async close(): Promise<void> {
    this.#connection.goAway();
    await this.closed;
  }

  destroy(): void {
    this.#connection.destroy();
  }
}

/** Ignores everything that still arrives on a stream. */
export const deaf: StreamSink = { head() {}, data() {}, end() {}, gone() {}, drain() {} };

/** Answers with a text as soon as it is available. */
export function answerQuestion(stream: FrameStream, text: () => string | Promise<string>): StreamSink {
  const say = (answer: string) => {
    stream.head(JSON.stringify([200, "text", 0, ""] satisfies AnswerRecord));
    stream.write(answer);
    stream.end(ends.complete);
  };
  Promise.try(text).then(say, () => stream.cancel("internal"));
  return deaf;
}
