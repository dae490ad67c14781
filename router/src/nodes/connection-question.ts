/** Sends a short question to the agent at the other end of a data connection. */
import type { FrameConnection } from "@weiche/shared/frames/frame-connection.ts";
import { ends, type Cancel } from "@weiche/shared/frames/frame.ts";
import { CollectedBytes } from "@weiche/shared/http/collected-bytes.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { readAnswerRecord } from "./answer-record.ts";

interface QuestionLimits {
  readonly answerMsMax: number;
  readonly answerBytesMax: number;
}

/** Resolves with the answer. Rejects if the answer takes too long or is too long, or if the connection breaks. */
export function question(
  connection: FrameConnection,
  path: string,
  { answerMsMax, answerBytesMax }: QuestionLimits,
  clock: Clock,
): Promise<{ readonly status: number; readonly text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const answer = new CollectedBytes();
  let status = 0;
  const fail = (reason: string, cancel: Cancel = "unwanted") => {
    stream?.cancel(cancel);
    reject(new Error(reason));
  };
  const stream = connection.open(JSON.stringify([path]), {
    head(text) {
      const record = readAnswerRecord(text);
      if (record) status = record.status;
      else fail("the agent's answer begins with no record", "internal");
    },
    data(piece) {
      if (answer.length + piece.length <= answerBytesMax) answer.push(piece);
      else fail(`the agent's answer has more than ${answerBytesMax} bytes`);
    },
    end: (code) => {
      if (code === ends.complete) resolve({ status, text: answer.toString() });
      else fail("the agent did not finish its answer");
    },
    gone: () => fail("the connection was lost before the agent answered"),
    drain() {},
  });
  if (!stream) fail("the connection accepts no more questions");
  stream?.end(ends.complete);
  stream?.resume();
  const timer = clock.after(answerMsMax, () => fail(`the agent did not answer within ${answerMsMax} ms`));
  return promise.finally(() => timer.cancel());
}
