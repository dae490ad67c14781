/** Converts an engine's refusal into the error for its client. */
import { contextExceeded } from "@weiche/shared/convention/context-exceeded.ts";
import { ApiError, invalid } from "@weiche/shared/errors.ts";
import { lightValuesMax, scanJson } from "@weiche/shared/http/json-guard.ts";
import type { CountRequest, EngineRefusal } from "../engines/dialects/dialect.ts";
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import { errorOf } from "../engines/dialects/refusal.ts";
import type { NodeFault } from "@weiche/shared/node-protocol.ts";
import { isObject, parseJson } from "@weiche/shared/json.ts";
import type { EngineAccess } from "./engine-work.ts";
import type { EngineCall } from "./engine-call.ts";

const refusalBytesMax = 256 << 10;
const countBytesMax = 64 << 20;
/** A longer body is far too long. An exact count is not worth parsing it again and loading the tokeniser. */
const countedBytesMax = 1 << 20;

type InvalidRefusal = Extract<EngineRefusal, { readonly kind: "invalid" }>;

export interface Refused {
  /** The context window that both the model's rules and its engine allow. */
  readonly windowTokens: number;
  readonly maxTokens: number | undefined;
  /** The name of the input parameter in the client's request. */
  readonly input: "messages" | "prompt" | "input";
  /** The part of the input that is too long, if known. */
  readonly inputPart?: string;
  readonly body: Buffer;
  /** The largest plausible length of the prompt for the bytes sent. */
  readonly promptTokensMax: number;
  /** The parameter that contains the JSON Schemas of the request, if any. */
  readonly schemaIn?: string;
}

/** Returns the error for an answer whose status is not 200. */
export async function refusalOf(engine: EngineAccess, call: EngineCall, refused: Refused): Promise<Error> {
  const refusal = engine.dialect.readRefusal(call.status, parseJson((await call.readAll(refusalBytesMax)).toString()));
  return refusalError(engine, await withCount(engine, refusal, refused), refused);
}

/** Returns the error for a refusal as the first event of a stream, which some engines send. */
export async function eventRefusal(engine: EngineAccess, event: unknown, refused: Refused): Promise<Error> {
  return refusalError(engine, await withCount(engine, readEvent(engine, event), refused), refused);
}

/**
 * Returns the fault for an error event after output has begun. Returns undefined if the answer has filled the engine's
 * window. An engine that has no room or rejects our key is at fault. Any other error may be caused by the text that the
 * model wrote.
 */
export function lateFault(engine: EngineAccess, event: unknown): EngineFault | undefined {
  const refusal = readEvent(engine, event);
  switch (refusal.kind) {
    case "context":
      return undefined;
    case "invalid":
      return new EngineFault("gave up");
    case "overloaded":
      return new EngineFault("engine error", "the engine ran out of room during an answer");
    case "failed":
      return new EngineFault(refusal.reason === "engine error" ? "gave up" : refusal.reason);
  }
}

function readEvent(engine: EngineAccess, event: unknown): EngineRefusal {
  const code = Number(errorOf(event)["code"]);
  return engine.dialect.readRefusal(code >= 400 && code < 600 ? code : 500, event);
}

/** Asks the engine for the length of the prompt if its refusal does not contain it. */
async function withCount(engine: EngineAccess, refusal: EngineRefusal, refused: Refused): Promise<EngineRefusal> {
  if (refusal.kind !== "context" || refusal.promptTokens !== undefined) return refusal;
  const promptTokens = await countPrompt(engine, refused);
  return promptTokens === undefined ? refusal : { ...refusal, promptTokens };
}

function refusalError(engine: EngineAccess, refusal: EngineRefusal, refused: Refused): Error {
  const { windowTokens, maxTokens, input, inputPart: param } = refused;
  switch (refusal.kind) {
    case "context": {
      const { promptTokens, promptTokensMin, contextTokens = windowTokens } = refusal;
      if ((promptTokens ?? promptTokensMin ?? 0) > refused.promptTokensMax)
        return new EngineFault("malformed", "the engine's count of the prompt is impossible for its bytes");
      const prompt = promptTokens ?? (promptTokensMin === undefined ? undefined : { atLeast: promptTokensMin });
      return contextExceeded(Math.min(contextTokens, windowTokens), prompt, { input, maxTokens, param });
    }
    case "invalid":
      if (refusal.shortfall !== undefined) engine.onShortfall(refusal.shortfall);
      return invalidError(refusal, refused);
    case "overloaded":
      return new ApiError("overloaded", "The model has no room at the moment.", { retryAfterSeconds: 1 });
    case "failed":
      return new EngineFault(refusal.reason);
  }
}

/** The request follows all rules of the service, so another engine of the model may serve it. */
function invalidError({ param: named, must }: InvalidRefusal, { schemaIn }: Refused): ApiError {
  const reason: NodeFault = "engine-refused";
  const param = named === "schema" ? schemaIn : named;
  if (param === undefined)
    return new ApiError("invalid_request", "This model does not support what the request asks for.", { reason });
  const { message } = invalid(param, must === undefined ? "the model does not take this value" : `must be ${must}`);
  return new ApiError("invalid_request", message, { param, reason });
}

/** Returns the error for a request of more answers than its engine gives, worded like the engine's own refusal. */
export function answersError(answersMax: number): ApiError {
  return invalid("n", `must be at most ${answersMax}: this model's engine gives no more answers at once`);
}

/**
 * Counts the tokens of the text that is too long. Returns undefined if the engine cannot count, and the error then has
 * no count.
 */
async function countPrompt(engine: EngineAccess, { body, windowTokens }: Refused): Promise<number | undefined> {
  if (body.length > countedBytesMax || "problem" in scanJson(body, lightValuesMax)) return undefined;
  let longest: number | undefined;
  for (const question of engine.dialect.countRequests?.(JSON.parse(body.toString()) as object) ?? []) {
    const count = await countOf(engine, question);
    if (count === undefined) return longest;
    longest = Math.max(longest ?? 0, count);
    if (longest > windowTokens) return longest;
  }
  return longest;
}

async function countOf(engine: EngineAccess, question: CountRequest): Promise<number | undefined> {
  try {
    const call = await engine.ask(question.path, Buffer.from(JSON.stringify(question.body)));
    try {
      const answer = parseJson((await call.readAll(countBytesMax)).toString());
      const count = isObject(answer) ? answer["count"] : undefined;
      return call.status === 200 && Number.isSafeInteger(count) ? (count as number) : undefined;
    } finally {
      call.close();
    }
  } catch (error) {
    // A failed count does not change the refusal.
    if (error instanceof EngineFault) return undefined;
    throw error;
  }
}
