/** From a body's bytes to the facts that the router needs. Runs on the main thread for light bodies, in a worker for others. */
import { hash } from "node:crypto";
import { ApiError } from "@weiche/shared/errors.ts";
import { nodePaths, type NodePath } from "@weiche/shared/node-protocol.ts";
import { readChat } from "./chat-completions.ts";
import { readCompletion } from "./completions.ts";
import { readEmbedding } from "./embeddings.ts";
import { readJson, type JsonScan } from "@weiche/shared/http/json-guard.ts";
import type { RequestFacts } from "./request-schema.ts";

const readers: Readonly<Record<NodePath, (value: unknown) => Omit<RequestFacts, "digest">>> = {
  [nodePaths.chat]: readChat,
  [nodePaths.completions]: readCompletion,
  [nodePaths.embeddings]: readEmbedding,
};

/** Throws an `ApiError` for anything that is wrong with the body itself. `scan`: of these bytes, if there is one already. */
export function readRequest(path: NodePath, body: Buffer, scan?: JsonScan): RequestFacts {
  const json = readJson(body, scan);
  if ("problem" in json) throw new ApiError("invalid_request", json.problem);
  return { ...readers[path](json.value), digest: hash("sha256", body, "base64") };
}
