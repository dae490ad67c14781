/** A short question of the router to the agent at the other end of a data session. */
import { once } from "node:events";
import { constants, type ClientHttp2Session, type IncomingHttpHeaders } from "node:http2";
import { text } from "node:stream/consumers";
import type { Clock } from "@weiche/shared/time/clock.ts";

export interface QuestionLimits {
  readonly answerMsMax: number;
  readonly answerBytesMax: number;
}

/** Resolves with the answer. Rejects if it takes too long, is too long, or the session breaks. */
export async function question(
  session: ClientHttp2Session,
  path: string,
  { answerMsMax, answerBytesMax }: QuestionLimits,
  clock: Clock,
): Promise<{ readonly status: number; readonly text: string }> {
  const stream = session.request({ ":method": "GET", ":path": path });
  const timer = clock.after(answerMsMax, () => stream.close(constants.NGHTTP2_CANCEL));
  stream.on("error", () => {}); // told by the reader
  let bytes = 0;
  stream.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > answerBytesMax) stream.close(constants.NGHTTP2_CANCEL);
  });
  const head = once(stream, "response") as Promise<[IncomingHttpHeaders]>;
  head.catch(() => {}); // the text's end says the same
  try {
    const answer = await text(stream);
    return { status: (await head)[0][":status"] as unknown as number, text: answer };
  } finally {
    timer.cancel();
  }
}
