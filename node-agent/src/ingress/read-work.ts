/** From the bytes of a body to what is to be done with an engine. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { readChatRequest } from "./chat-request.ts";
import { readCompletionRequest } from "./completion-request.ts";
import { Embedding } from "./embedding.ts";
import { readEmbeddingRequest } from "./embedding-request.ts";
import type { EngineWork } from "./engine-work.ts";
import { Generation } from "./generation.ts";
import { parseBody } from "./request-body.ts";
import type { RequestHead } from "./request-head.ts";

/** Throws an `ApiError` if the body is not what the path, or the model's rules, allow. */
export function readWork(head: RequestHead, rules: ModelRules, bytes: Buffer, nowMs: number): EngineWork {
  const body = parseBody(bytes);
  const scope = { rules, accountId: head.billing.accountId };
  switch (head.path) {
    case nodePaths.chat:
      return new Generation(readChatRequest(body, scope), { requestId: head.requestId, rules, nowMs });
    case nodePaths.completions:
      return new Generation(readCompletionRequest(body, scope), { requestId: head.requestId, rules, nowMs });
    case nodePaths.embeddings:
      return new Embedding(readEmbeddingRequest(body, scope), rules);
  }
}
