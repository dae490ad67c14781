/** A short question of the router to the agent at the other end of a data connection. */
import type { FrameConnection } from "@weiche/shared/frames/frame-connection.ts";
import { ends } from "@weiche/shared/frames/frame.ts";
import { readRecord } from "@weiche/shared/node-protocol.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";

export interface QuestionLimits {
  readonly answerMsMax: number;
  readonly answerBytesMax: number;
}

/** Resolves with the answer. Rejects if it takes too long, is too long, or the connection breaks. */
export function question(
  connection: FrameConnection,
  path: string,
  { answerMsMax, answerBytesMax }: QuestionLimits,
  clock: Clock,
): Promise<{ readonly status: number; readonly text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const pieces: Buffer[] = [];
  let bytes = 0;
  let status = NaN;
  const fail = (reason: string) => {
    stream?.cancel("unwanted");
    reject(new Error(reason));
  };
  const stream = connection.open(JSON.stringify([path]), {
    head: (record) => (status = Number(readRecord(record)[0])),
    data(piece) {
      bytes += piece.length;
      pieces.push(piece);
      if (bytes > answerBytesMax) fail(`the agent's answer has more than ${answerBytesMax} bytes`);
    },
    end: (code) => {
      if (code === ends.complete) resolve({ status, text: Buffer.concat(pieces).toString() });
      else fail("the agent did not finish its answer");
    },
    gone: () => fail("the connection was lost before the agent had answered"),
    drain() {},
  });
  if (!stream) fail("the connection takes no more questions");
  stream?.end(ends.complete);
  stream?.resume();
  const timer = clock.after(answerMsMax, () => fail(`the agent did not answer within ${answerMsMax} ms`));
  return promise.finally(() => timer.cancel());
}
