/** Any other engine that follows the convention: SGLang, TEI, the embedded engine. */
import { readConventionChunk } from "./chunk.ts";
import { chatBody, completionBody, embeddingBody } from "./convention-body.ts";
import type { Dialect } from "./dialect.ts";
import type { Json } from "@weiche/shared/json.ts";
import { proveReady, readMetrics } from "./http-lifecycle.ts";
import { readConventionRefusal } from "./refusal.ts";

export const openai: Dialect = {
  keepsConnections: true,
  usagePerChoice: false,
  // The embedded engine and SGLang separate caches by salt. Other engines may not.
  keepsSaltsApart: false,
  // TEI and others cut by default. vLLM and llama-server refuse.
  mayCutTexts: true,
  chatBody: (request) => ({ ...chatBody(request), cache_salt: request.cacheSalt }),
  completionBody: (request) => ({ ...completionBody(request), cache_salt: request.cacheSalt }),
  embeddingBody,
  readChunk: readConventionChunk,
  readRefusal: readConventionRefusal,
  // TEI has no `/v1/models`, and some engines have no `/health`.
  readiness: (endpoint, model, signal, onLoaded) =>
    proveReady(endpoint, model, { mayLackPages: true, facts: teiInfo, onLoaded }, signal),
  metrics: readMetrics,
};

const teiInfo = {
  path: "/info",
  read: (page: Json) => ({ windowTokens: page["max_input_length"], cutsTexts: page["auto_truncate"] }),
};
