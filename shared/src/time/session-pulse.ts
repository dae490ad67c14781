/** Detects that the peer of an HTTP/2 session went silent without closing the connection. */
import type { Http2Session } from "node:http2";
import type { Clock } from "./clock.ts";

/** 4 s together with `graceMs`: a silent peer must be noticed within 5 s. */
const pingEveryMs = 1_000;
const answerMsMax = 2_800;
/** If this process stalled, the answer may be waiting to be read: it gets a turn of the event loop. */
const graceMs = 200;

/**
 * For the socket's TCP keep-alive: Node.js sends no pings on a closing session, whose streams may take ten minutes.
 * After this delay the kernel probes each second and gives up after ten.
 */
export const keepAliveDelayMs = 1_000;

/** Pings until the session closes or takes no more streams; calls `lost` once at most. The caller ends the socket. */
export function watchPulse(session: Http2Session, clock: Clock, lost: () => void): void {
  let timer = clock.after(pingEveryMs, beat);
  session.once("close", () => timer.cancel());

  function beat(): void {
    if (session.closed || session.destroyed) return;
    timer = clock.after(answerMsMax, () => {
      timer = clock.after(graceMs, () => {
        if (!session.closed) lost();
      });
    });
    session.ping((error) => {
      if (error || session.destroyed) return;
      timer.cancel();
      timer = clock.after(pingEveryMs, beat);
    });
  }
}
