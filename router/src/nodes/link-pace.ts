/**
 * Bounds the share of the event loop that the calls of agents use. Each message costs work in proportion to its
 * elements. The router delays reading a call that is ahead of its rate, and counts the calls of each connection. An
 * agent that follows its own rules never reaches these limits.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { ServerInterceptingCall, type ServerInterceptor } from "@grpc/grpc-js";
import type { Clock } from "@weiche/shared/time/clock.ts";

/**
 * Elements that a call may send per second, and in one burst. Each costs up to 1 µs to read, check and bill. A call
 * therefore uses at most a third of the event loop, and can still deliver 16,000 usage records per second.
 */
export const elementsPerSecond = 300_000;
/** The cost of a message besides its elements, counted in elements: gRPC and the update of the node's state. */
export const messageElements = 50;

/** Decides when the next message of one call is due. Does no I/O. */
export class Pace {
  #freeAtMs = -Infinity;

  /** Counts one message and returns its delay in milliseconds. An idle call saves at most one second of work. */
  takeMs(elements: number, nowMs: number): number {
    const beginMs = Math.max(this.#freeAtMs, nowMs - 1_000);
    this.#freeAtMs = beginMs + ((elements + messageElements) * 1_000) / elementsPerSecond;
    return Math.max(0, beginMs - nowMs);
  }
}

export function pacing(clock: Clock): ServerInterceptor {
  return (_method, call) => {
    const pace = new Pace();
    return new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMessage(message: { readonly elements?: number }, handOn) {
            const waitMs = pace.takeMs(message.elements ?? 0, clock.monotonicMs());
            if (waitMs === 0) handOn(message);
            // gRPC reads nothing more of the call meanwhile.
            else clock.after(waitMs, () => handOn(message));
          },
        }),
    });
  };
}

/** gRPC shows no interceptor the calls of methods that do not exist. */
const callBegan = "http2.server.stream.created";

/** `admit` is called for each call on a connection after its first, until it returns false. */
export function furtherCalls(admit: (socket: Socket) => boolean) {
  const connections = new Map<string, { readonly socket: Socket; calls: number }>();
  const began = (message: unknown) => {
    const { session } = (message as { readonly stream: ServerHttp2Stream }).stream;
    const key = session && !session.destroyed ? keyOf(session.socket) : "";
    const connection = connections.get(key);
    if (connection && ++connection.calls > 1 && !admit(connection.socket)) connections.delete(key);
  };
  subscribe(callBegan, began);
  return {
    /** Watches an accepted connection until it closes. */
    watch(socket: Socket): void {
      const key = keyOf(socket);
      connections.set(key, { socket, calls: 0 });
      socket.once("close", () => connections.get(key)?.socket === socket && connections.delete(key));
    },
    [Symbol.dispose]: () => unsubscribe(callBegan, began),
  };
}

function keyOf({ remoteAddress, remotePort, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localPort}`;
}
