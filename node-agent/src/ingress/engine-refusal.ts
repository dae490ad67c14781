/** An engine's refusal, as its client is told. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import type { Dialect, EngineRefusal } from "../engines/dialects/dialect.ts";
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import { isObject } from "../engines/dialects/json.ts";
import type { EngineAccess } from "./engine-work.ts";
import type { EngineCall } from "./engine-call.ts";

/** Room for any error page; what an engine says beyond it is not read. */
const refusalBytesMax = 256 << 10;
const countBytesMax = 64 << 20;

/** What is known of the request that was refused. */
export interface Refused {
  readonly rules: ModelRules;
  readonly maxTokens: number | undefined;
  readonly body: Buffer;
}

/** The error for an answer whose status is not 200. */
export async function refusalOf(engine: EngineAccess, call: EngineCall, refused: Refused): Promise<Error> {
  const refusal = engine.dialect.readRefusal(call.status, parsed(await call.readAll(refusalBytesMax)));
  if (refusal.kind !== "context" || refusal.promptTokens !== undefined) return refusalError(refusal, refused);
  const promptTokens = await countPrompt(engine, refused.body);
  return refusalError(promptTokens === undefined ? refusal : { ...refusal, promptTokens }, refused);
}

/** Some engines refuse with the first event of a stream. */
export function eventRefusal(dialect: Dialect, event: unknown, refused: Omit<Refused, "body">): Error {
  const error = isObject(event) && isObject(event["error"]) ? event["error"] : {};
  const code = Number(error["code"]);
  return refusalError(dialect.readRefusal(code >= 400 && code < 600 ? code : 500, event), refused);
}

function refusalError(refusal: EngineRefusal, { rules, maxTokens }: Omit<Refused, "body">): Error {
  switch (refusal.kind) {
    case "context": {
      const { promptTokens, promptTokensMin, contextTokens = rules.contextTokens } = refusal;
      const prompt = promptTokens ?? (promptTokensMin === undefined ? undefined : `at least ${promptTokensMin}`);
      return contextExceeded(Math.min(contextTokens, rules.contextTokens), prompt, maxTokens);
    }
    case "invalid": {
      const { param } = refusal;
      if (param === undefined)
        return new ApiError("invalid_request", "This model does not support what the request asks for.");
      return new ApiError("invalid_request", `Invalid '${param}': the model does not take this value.`, { param });
    }
    case "overloaded":
      return new ApiError("overloaded", "The model has no room at the moment.", { retryAfterSeconds: 1 });
    case "failed":
      return new EngineFault(refusal.reason);
  }
}

/** In one wording, whoever noticed. */
export function contextExceeded(window: number, prompt: number | string | undefined, maxTokens?: number): ApiError {
  const input = prompt === undefined ? `more than ${window}` : String(prompt);
  const wanted = maxTokens === undefined ? "" : ` and asks for up to ${maxTokens} output tokens`;
  return new ApiError(
    "context_window_exceeded",
    `The request exceeds the context window of this model, which is ${window} tokens: it has ${input} input tokens${wanted}.`,
  );
}

/** Undefined if the engine cannot say: the refusal is told without the exact count then. */
async function countPrompt(engine: EngineAccess, body: Buffer): Promise<number | undefined> {
  const question = engine.dialect.countRequest?.(JSON.parse(body.toString()) as object);
  if (!question) return undefined;
  const call = await engine.ask(question.path, Buffer.from(JSON.stringify(question.body)));
  try {
    const answer = parsed(await call.readAll(countBytesMax));
    const count = isObject(answer) ? answer["count"] : undefined;
    return call.status === 200 && Number.isSafeInteger(count) ? (count as number) : undefined;
  } finally {
    call.close();
  }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}
