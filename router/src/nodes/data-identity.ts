/** Asks the agent on a new data session for its identity. */
import { text } from "node:stream/consumers";
import { constants, type ClientHttp2Session } from "node:http2";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { namePattern } from "@weiche/shared/ids.ts";
import { identityPath, type NodeIdentity } from "@weiche/shared/node-protocol.ts";

const answerMsMax = 5_000;
const answerBytesMax = 4_096;

/** Returns the identity, or why there is none. */
export async function askIdentity(session: ClientHttp2Session, clock: Clock): Promise<NodeIdentity | string> {
  const stream = session.request({ ":method": "GET", ":path": identityPath });
  const timer = clock.after(answerMsMax, () => stream.close(constants.NGHTTP2_CANCEL));
  stream.on("error", () => {}); // `text` rejects with it
  let bytes = 0;
  stream.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > answerBytesMax) stream.close(constants.NGHTTP2_CANCEL);
  });
  try {
    const answer: unknown = JSON.parse(await text(stream));
    return isIdentity(answer) ? answer : "the agent's answer is no identity";
  } catch (error) {
    return (error as Error).name === "SyntaxError" ? "the agent's answer is no JSON" : (error as Error).message;
  } finally {
    timer.cancel();
  }
}

function isIdentity(answer: unknown): answer is NodeIdentity {
  const { node, bootId } = (answer ?? {}) as Partial<NodeIdentity>;
  return typeof node === "string" && namePattern.test(node) && typeof bootId === "string";
}
