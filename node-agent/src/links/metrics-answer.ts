/** Answers routers that ask for the agent's metrics, for scrapers that do not reach this host. */
import { metricsPath } from "@weiche/shared/node-protocol.ts";
import type { StreamHandler } from "./data-session.ts";

/** Takes streams that ask for metrics, and leaves all others to `handle`. `metrics`: the text of `/metrics`. */
export function withMetrics(handle: StreamHandler, metrics: () => Promise<string>): StreamHandler {
  return (stream, headers, session) => {
    if (headers[":path"] !== metricsPath) return handle(stream, headers, session);
    void metrics().then((text) => {
      if (stream.destroyed) return;
      stream.respond({ ":status": 200, "content-type": "text/plain" });
      stream.end(text);
    });
  };
}
