/** Parses and checks a body, on the main thread for light bodies and in a worker thread for others. */
import { hash } from "node:crypto";
import { chatBody, chatFacts, type ChatBody } from "@weiche/shared/convention/chat.ts";
import { completionBody, completionFacts, promptOf } from "@weiche/shared/convention/completions.ts";
import { embeddingBody, embeddingFacts } from "@weiche/shared/convention/embeddings.ts";
import type { RequestFacts } from "@weiche/shared/convention/model-rules.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { readJson, type JsonScan } from "@weiche/shared/http/json-guard.ts";
import { nodePaths, type NodePath } from "@weiche/shared/node-protocol.ts";

/** The facts of a body that the router needs. The node reads the rest. */
export interface ReadRequest extends RequestFacts {
  /** Hash of the body's original bytes. */
  readonly digest: string;
  /** Hash of the beginning of the conversation. Undefined for embeddings, because a prefix cache does not help them. */
  readonly conversation?: string;
}

/** Reads a body. Throws an `ApiError` if it is invalid; the node repairs broken texts. `scan`: a scan of the bytes, if any. */
export function readRequest(path: NodePath, body: Buffer, scan?: JsonScan): ReadRequest {
  const json = readJson(body, scan, "any");
  if ("problem" in json) throw new ApiError("invalid_request", json.problem);
  return { ...readers[path](json.value), digest: hash("sha256", body, "base64") };
}

const readers: Readonly<Record<NodePath, (value: unknown) => Omit<ReadRequest, "digest">>> = {
  [nodePaths.chat](value) {
    const body = chatBody.check(value);
    return { ...chatFacts(body), conversation: beginning(body) };
  },
  [nodePaths.completions](value) {
    const body = completionBody.check(value);
    return { ...completionFacts(body), conversation: hash("sha256", promptOf(body).slice(0, beginningCharacters)) };
  },
  [nodePaths.embeddings]: (value) => embeddingFacts(embeddingBody.check(value)),
};

/** How much of a conversation is hashed: the number of messages, and of characters of each. */
const [beginningMessages, beginningCharacters] = [2, 1_024];

function beginning({ messages }: ChatBody): string {
  const first = messages.slice(0, beginningMessages).map(({ role, content }) => {
    const whole = typeof content === "string" ? content : JSON.stringify(content ?? null);
    return [role, whole.slice(0, beginningCharacters)];
  });
  return hash("sha256", JSON.stringify(first));
}
