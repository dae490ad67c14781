/** Parses and checks a body. Runs on the main thread for light bodies, in a worker for others. */
import { hash } from "node:crypto";
import { chatBody, chatFacts, type ChatBody } from "@weiche/shared/convention/chat.ts";
import { completionBody, completionFacts, promptOf } from "@weiche/shared/convention/completions.ts";
import { embeddingBody, embeddingFacts } from "@weiche/shared/convention/embeddings.ts";
import type { RequestFacts } from "@weiche/shared/convention/model-rules.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { readJson, type JsonScan } from "@weiche/shared/http/json-guard.ts";
import { nodePaths, type NodePath } from "@weiche/shared/node-protocol.ts";

/** The facts of a body that the router needs; the node reads the rest. */
export interface ReadRequest extends RequestFacts {
  /** Hash of the body as it came. */
  readonly digest: string;
  /** Hash of the beginning of the conversation; absent for embeddings, where a node's prefix cache is of no use. */
  readonly conversation?: string;
}

/** Throws an `ApiError` for an invalid body. Broken texts are taken: the node mends them. `scan`: the scan of these bytes, if there is one already. */
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

/** How much of a conversation is hashed for every request: messages, and characters of each. */
const [beginningMessages, beginningCharacters] = [2, 1_024];

function beginning({ messages }: ChatBody): string {
  const first = messages.slice(0, beginningMessages).map(({ role, content }) => {
    const whole = typeof content === "string" ? content : JSON.stringify(content ?? null);
    return [role, whole.slice(0, beginningCharacters)];
  });
  return hash("sha256", JSON.stringify(first));
}
