/** Asks the agent on a new data connection for its identity. */
import type { FrameConnection } from "@weiche/shared/frames/frame-connection.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { namePattern } from "@weiche/shared/ids.ts";
import { identityPath, type NodeIdentity } from "@weiche/shared/node-protocol.ts";
import { question } from "./connection-question.ts";

const limits = { answerMsMax: 5_000, answerBytesMax: 4_096 };

/** Returns the identity, or the reason why there is none. */
export async function askIdentity(connection: FrameConnection, clock: Clock): Promise<NodeIdentity | string> {
  try {
    const { status, text } = await question(connection, identityPath, limits, clock);
    if (status !== 200) return `the agent does not return its identity (${status})`;
    const answer: unknown = JSON.parse(text);
    return isIdentity(answer) ? answer : "the agent's answer is no identity";
  } catch (error) {
    return (error as Error).name === "SyntaxError" ? "the agent's answer is no JSON" : (error as Error).message;
  }
}

function isIdentity(answer: unknown): answer is NodeIdentity {
  const { node, bootId } = (answer ?? {}) as Partial<NodeIdentity>;
  return typeof node === "string" && namePattern.test(node) && typeof bootId === "string";
}
