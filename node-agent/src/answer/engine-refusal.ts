/** An engine's refusal, as its client is told. */
import { ApiError, invalid } from "@weiche/shared/errors.ts";
import { lightValuesMax, scanJson } from "@weiche/shared/http/json-guard.ts";
import type { CountRequest, EngineRefusal } from "../engines/dialects/dialect.ts";
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import { isObject } from "@weiche/shared/json.ts";
import { contextExceeded } from "../intake/context-exceeded.ts";
import type { EngineAccess } from "./engine-work.ts";
import type { EngineCall } from "./engine-call.ts";

/** Room for any error page; what an engine says beyond it is not read. */
const refusalBytesMax = 256 << 10;
const countBytesMax = 64 << 20;
/** A longer body is not read again, nor the engine's tokeniser kept busy, to tell an exact count: it is far too long. */
const countedBytesMax = 1 << 20;

/** What is known of the request that was refused. */
export interface Refused {
  /** What the model's rules and its engine both allow. */
  readonly windowTokens: number;
  readonly maxTokens: number | undefined;
  /** What the client called its input. */
  readonly input: "messages" | "prompt" | "input";
  readonly body: Buffer;
  /** What the engine may say of the prompt: what was sent allows no more. */
  readonly promptTokensMax: number;
  /** The parameter with the JSON Schemas of the request, if it has any. */
  readonly schemaIn?: string;
}

/** The error for an answer whose status is not 200. */
export async function refusalOf(engine: EngineAccess, call: EngineCall, refused: Refused): Promise<Error> {
  const refusal = engine.dialect.readRefusal(call.status, parsed(await call.readAll(refusalBytesMax)));
  return refusalError(engine, await withCount(engine, refusal, refused), refused);
}

/** Some engines refuse with the first event of a stream. */
export async function eventRefusal(engine: EngineAccess, event: unknown, refused: Refused): Promise<Error> {
  return refusalError(engine, await withCount(engine, readEvent(engine, event), refused), refused);
}

/** An error in a stream that has begun says nothing of the request any more. */
export function eventFault(engine: EngineAccess, event: unknown): EngineFault {
  const refusal = readEvent(engine, event);
  const isDead = refusal.kind === "failed" && refusal.reason === "core died";
  return new EngineFault(isDead ? "core died" : "engine error");
}

function readEvent(engine: EngineAccess, event: unknown): EngineRefusal {
  const error = isObject(event) && isObject(event["error"]) ? event["error"] : {};
  const code = Number(error["code"]);
  return engine.dialect.readRefusal(code >= 400 && code < 600 ? code : 500, event);
}

/** An engine that says only that there are too many tokens is asked how many. */
async function withCount(engine: EngineAccess, refusal: EngineRefusal, refused: Refused): Promise<EngineRefusal> {
  if (refusal.kind !== "context" || refusal.promptTokens !== undefined) return refusal;
  const promptTokens = await countPrompt(engine, refused);
  return promptTokens === undefined ? refusal : { ...refusal, promptTokens };
}

function refusalError(engine: EngineAccess, refusal: EngineRefusal, refused: Refused): Error {
  const { windowTokens, maxTokens, input } = refused;
  switch (refusal.kind) {
    case "context": {
      const { promptTokens, promptTokensMin, contextTokens = windowTokens } = refusal;
      if ((promptTokens ?? promptTokensMin ?? 0) > refused.promptTokensMax)
        return new EngineFault("malformed", "a count of the prompt that its bytes do not allow");
      const prompt = promptTokens ?? (promptTokensMin === undefined ? undefined : `at least ${promptTokensMin}`);
      return contextExceeded(Math.min(contextTokens, windowTokens), prompt, { input, maxTokens });
    }
    case "invalid":
      if (refusal.shortfall !== undefined) engine.onShortfall(refusal.shortfall);
      return invalidError(refusal.param === "schema" ? refused.schemaIn : refusal.param, refusal.must);
    case "overloaded":
      return new ApiError("overloaded", "The model has no room at the moment.", { retryAfterSeconds: 1 });
    case "failed":
      return new EngineFault(refusal.reason);
  }
}

function invalidError(param: string | undefined, must: string | undefined): ApiError {
  if (param === undefined)
    return new ApiError("invalid_request", "This model does not support what the request asks for.");
  return invalid(param, must === undefined ? "the model does not take this value" : `must be ${must}`);
}

/** Of the text that is too long. Undefined if the engine cannot say: the refusal is told without the exact count then. */
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
      const answer = parsed(await call.readAll(countBytesMax));
      const count = isObject(answer) ? answer["count"] : undefined;
      return call.status === 200 && Number.isSafeInteger(count) ? (count as number) : undefined;
    } finally {
      call.close();
    }
  } catch (error) {
    // That it cannot count does not change what it has said.
    if (error instanceof EngineFault) return undefined;
    throw error;
  }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}
