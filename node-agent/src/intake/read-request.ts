/**
 * Converts the bytes of a body into a checked request, and the request into the body for an engine. Runs in any thread.
 */
import { invalid } from "@weiche/shared/errors.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import type { JsonScan } from "@weiche/shared/http/json-guard.ts";
import { writeKept } from "@weiche/shared/http/kept-json.ts";
import { nodePaths, type NodePath } from "@weiche/shared/node-protocol.ts";
import type { ChatRequest, CompletionRequest, Dialect, Tool } from "../engines/dialects/dialect.ts";
import { schemaBounds, type SchemaBounds } from "../engines/dialects/schema-bounds.ts";
import type { DialectName } from "../engines/engine.ts";
import { promptSize, type PromptSize } from "./prompt-size.ts";
import { readChatRequest } from "./chat-request.ts";
import { readCompletionRequest } from "./completion-request.ts";
import { readEmbeddingRequest, type EmbeddingRequest } from "./embedding-request.ts";
import { fittingTools } from "./light-tools.ts";
import { parseBody } from "./request-body.ts";
import { boundSchemas, type RequestSchema } from "./schema-cost.ts";

export interface BodyScope {
  readonly path: NodePath;
  readonly rules: ModelRules;
  /**
   * The dialects of the engines that serve the model on this node. A chat's schemas must be cheap enough for all of
   * them.
   */
  readonly dialects: readonly DialectName[];
}

/** The parts of a request that are needed while its engine works. Parts that can be long are not among them. */
export type PromptFacts = (
  | (Omit<ChatRequest, "messages" | "tools" | "lightTools" | "responseFormat"> & {
      readonly schemaIn?: "response_format" | "tools";
    })
  | Omit<CompletionRequest, "prompt">
) & { readonly size: PromptSize };

/**
 * Throws an `ApiError` if the path or the model's rules do not allow the body, or if its schemas would cost an engine
 * too much. Refused here, a costly request takes no place and starts no switch. `scan`: the scan of these bytes.
 */
export function readRequest(
  scope: BodyScope,
  bytes: Buffer,
  scan?: JsonScan,
): ChatRequest | CompletionRequest | EmbeddingRequest {
  const { value: body, kept } = parseBody(bytes, scan);
  switch (scope.path) {
    case nodePaths.chat: {
      const request = readChatRequest(body, scope, kept);
      const fitting = scope.dialects.map((dialect) => [dialect, boundGrammar(request, schemaBounds[dialect])] as const);
      return { ...request, lightTools: new Map(fitting) };
    }
    case nodePaths.completions:
      return readCompletionRequest(body, scope, kept);
    case nodePaths.embeddings:
      return readEmbeddingRequest(body, scope);
  }
}

export function factsOf(request: ChatRequest | CompletionRequest): PromptFacts {
  if (request.kind === "chat") {
    const { messages, tools, lightTools: _tools, responseFormat, ...facts } = request;
    const schemaIn = responseFormat ? "response_format" : tools.length > 0 ? "tools" : undefined;
    return { ...facts, schemaIn, size: promptSize(messages, tools) };
  }
  const { prompt, ...facts } = request;
  return { ...facts, size: promptSize(prompt) };
}

interface Addressee {
  readonly dialect: Dialect;
  readonly dialectName: DialectName;
  readonly cacheSalt?: string | undefined;
}

/** Returns the body for an engine of this dialect. */
export function say(request: ChatRequest | CompletionRequest, { dialect, dialectName, cacheSalt }: Addressee): Buffer {
  const said =
    request.kind === "chat"
      ? dialect.chatBody({ ...request, tools: request.lightTools?.get(dialectName) ?? request.tools, cacheSalt })
      : dialect.completionBody({ ...request, cacheSalt });
  return Buffer.from(writeKept(said));
}

/** Checks the cost of all schemas. Returns the tools, in their light form if they cost too much. */
function boundGrammar({ tools, toolChoice, responseFormat }: ChatRequest, bounds: SchemaBounds): readonly Tool[] {
  if (tools.length > bounds.toolsMax)
    throw invalid("tools", `must be an array of at most ${bounds.toolsMax} functions`);
  const at = "response_format.json_schema.schema";
  const answer: RequestSchema[] =
    responseFormat?.type === "json_schema" ? [{ of: "answer", schema: responseFormat.json_schema.schema, at }] : [];
  return fittingTools(tools, toolChoice === "auto", boundSchemas(answer, bounds));
}
