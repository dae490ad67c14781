/** Answers the questions of routers: the agent's metrics, for scrapers that do not reach this host, and its requests. */
import { metricsPath, requestsPath, type NodeRequest } from "@weiche/shared/node-protocol.ts";
import { answerQuestion, type StreamHandler } from "./data-session.ts";

export interface RouterQuestions {
  /** The text of `/metrics`. */
  readonly metrics: () => Promise<string>;
  readonly requests: () => readonly NodeRequest[];
}

/** Takes streams that ask one of them, and leaves all others to `handle`. */
export function withQuestions(handle: StreamHandler, { metrics, requests }: RouterQuestions): StreamHandler {
  return (stream, record) => {
    const [path] = record;
    if (path === metricsPath) return answerQuestion(stream, metrics);
    if (path === requestsPath) return answerQuestion(stream, () => JSON.stringify(requests()));
    return handle(stream, record);
  };
}
