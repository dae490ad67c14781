/** Any other engine that follows the convention: SGLang, TEI, the embedded engine. */
import { readConventionChunk } from "./chunk.ts";
import { chatBody, completionBody, embeddingBody } from "./convention-body.ts";
import type { Dialect } from "./dialect.ts";
import type { Json } from "@weiche/shared/json.ts";
import { proveReady, readMetrics } from "./lifecycle.ts";
import { readConventionRefusal } from "./refusal.ts";
import { schemaBounds } from "./schema-bounds.ts";

export const openai: Dialect = {
  keepsConnections: true,
  usagePerChoice: false,
  schemaBounds: schemaBounds["openai"],
  // The embedded engine and SGLang do; of others it is not known.
  keepsSaltsApart: false,
  chatBody: (request) => ({ ...chatBody(request), cache_salt: request.cacheSalt }),
  completionBody: (request) => ({ ...completionBody(request), cache_salt: request.cacheSalt }),
  embeddingBody,
  readChunk: readConventionChunk,
  readRefusal: readConventionRefusal,
  // TEI has no list of models, and not everyone has a health page.
  readiness: (endpoint, model, signal, onLoaded) =>
    proveReady(endpoint, model, { mayLackPages: true, facts: teiInfo, onLoaded }, signal),
  metrics: readMetrics,
};

const teiInfo = { path: "/info", read: (page: Json) => ({ windowTokens: page["max_input_length"] }) };
