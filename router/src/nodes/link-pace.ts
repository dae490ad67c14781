/**
 * Bounds how much of the event loop one call of an agent takes. Each message costs work, by its elements; a call that is
 * ahead of its rate is not read for a while, and its agent waits. An agent that keeps to its own rules never gets there.
 */
import { ServerInterceptingCall, type ServerInterceptor } from "@grpc/grpc-js";
import type { Clock } from "@weiche/shared/time/clock.ts";

/**
 * Elements that a call may send in a second, and at once. Each costs up to 1 µs to read, check and bill. A call therefore
 * uses at most a third of the event loop. It can still deliver 16,000 usage records a second.
 */
export const elementsPerSecond = 300_000;
/** What a message costs beside its elements: gRPC, and the state of the node that changes. */
export const messageElements = 50;

/** Decides when the next message of one call may be taken. Pure but for what it remembers. */
export class Pace {
  #freeAtMs = -Infinity;

  /** Takes one message and returns for how many milliseconds it has to wait. At most a second's work is saved up. */
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
            // Nothing more of the call is read meanwhile.
            else clock.after(waitMs, () => handOn(message));
          },
        }),
    });
  };
}
