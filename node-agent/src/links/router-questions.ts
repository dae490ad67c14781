/** Answers the questions of routers for this agent's metrics, which scrapers may not reach, and for its requests. */
import type { FrameStream } from "@weiche/shared/frames/frame-stream.ts";
import { metricsPath, requestsPath, type NodeRequest } from "@weiche/shared/node-protocol.ts";
import { answerQuestion, deaf, type StreamHandler } from "./data-connection.ts";

interface RouterQuestions {
  /** The text of `/metrics`. */
  readonly metrics: () => Promise<string>;
  readonly requests: () => readonly NodeRequest[];
}

/** The limit of questions at a time, because an answer that the router does not read is held as a whole. */
const questionsMax = 32;

/** Answers these paths itself and passes other streams to `handle`. */
export function withQuestions(handle: StreamHandler, { metrics, requests }: RouterQuestions): StreamHandler {
  let asked: FrameStream[] = [];
  const answer = (stream: FrameStream, text: () => string | Promise<string>) => {
    asked = asked.filter(({ isOver }) => !isOver);
    if (asked.length < questionsMax) {
      asked.push(stream);
      return answerQuestion(stream, text);
    }
    stream.cancel("refused");
    return deaf;
  };
  return (stream, record) => {
    const [path] = record;
    if (path === metricsPath) return answer(stream, metrics);
    if (path === requestsPath) return answer(stream, () => JSON.stringify(requests()));
    return handle(stream, record);
  };
}
