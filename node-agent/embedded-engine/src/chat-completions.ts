/** `POST /v1/chat/completions`. */
import { answerGrammar } from "./grammar/answer-grammar.ts";
import { answerAll, compileGrammar, plansOf, type AnswerPlan } from "./output/answer.ts";
import type { Call } from "./request/call.ts";
import { ChatBody, ChatStream } from "./output/chat-answer.ts";
import { readChatRequest, type ChatRequest } from "./request/chat-request.ts";
import { RequestError } from "./request/request-error.ts";

export async function chatCompletions(call: Call): Promise<void> {
  const request = readChatRequest(call.body);
  const plans = await planChat(call, request);
  const answer = request.stream ? new ChatStream(call, request, plans) : new ChatBody(call, plans);
  await answerAll(call.engine, plans, call.signal, (index, part) => answer.add(index, part));
  await answer.end();
}

async function planChat(call: Call, request: ChatRequest): Promise<AnswerPlan[]> {
  const { engine, signal } = call;
  if (engine.sequences === undefined) throw generatesNothing();
  const bound = request.toolRequired || request.schema !== undefined;
  const prompt = engine.template.render(request, (value) => engine.vocabulary.guardAll(value), bound);
  const grammar = bound ? compileGrammar(engine, grammarOf(request, prompt.startsThinking)) : undefined;
  const promptTokens = await engine.vocabulary.encodePrompt(prompt.text, engine.contextTokens, signal);
  const format = {
    thinking: engine.template.thinking,
    startsThinking: prompt.startsThinking,
    tools: request.tools.length === 0 ? "none" : request.calls,
    stop: [...request.stop, ...engine.template.stop],
  } as const;
  return plansOf(request, { promptTokens, format, grammar }, call.surroundings.randomSeed());
}

/** Returns the grammar of an answer. A required call leaves no room for content. */
function grammarOf({ toolRequired, schema, tools, calls }: ChatRequest, afterThought: boolean): string {
  return answerGrammar({ tools, calls, afterThought, schema: toolRequired ? undefined : schema });
}

export function generatesNothing(): RequestError {
  return new RequestError(
    400,
    "not_supported_error",
    "this engine was started with --embeddings and generates no text",
  );
}
