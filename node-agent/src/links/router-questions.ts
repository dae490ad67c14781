/** Answers the questions of routers: the agent's metrics, for scrapers that do not reach this host, and its requests. */
import { metricsPath, requestsPath, type NodeRequest } from "@weiche/shared/node-protocol.ts";
import type { StreamHandler } from "./data-session.ts";

export interface RouterQuestions {
  /** The text of `/metrics`. */
  readonly metrics: () => Promise<string>;
  readonly requests: () => readonly NodeRequest[];
}

/** Takes streams that ask one of them, and leaves all others to `handle`. */
export function withQuestions(handle: StreamHandler, { metrics, requests }: RouterQuestions): StreamHandler {
  const answers: Readonly<Record<string, () => string | Promise<string>>> = {
    [metricsPath]: metrics,
    [requestsPath]: () => JSON.stringify(requests()),
  };
  return (stream, headers, session) => {
    const answer = answers[headers[":path"]!];
    if (!answer) return handle(stream, headers, session);
    void Promise.try(answer).then((text) => {
      if (stream.destroyed) return;
      stream.respond({ ":status": 200, "content-type": "text/plain" });
      stream.end(text);
    });
  };
}
