/**
 * Bounds the share of the event loop that one agent's call uses. Each message costs work in proportion to its elements.
 * The router delays reading a call that is ahead of its rate. An agent that follows its own rules never reaches this
 * rate.
 */
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
