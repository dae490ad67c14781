/** The dialect of llama.cpp's server, version 0.5.0. */
import * as words from "../answer.ts";
import { eachChoice, metric, textOf, usageOf, type Answer, type AnswerForm, type Refusal } from "../answer.ts";
import type { EngineFacts } from "../engine-facts.ts";
import { asArray, asNumber, type Body, type FinishReason, type SimRequest } from "../request.ts";
import { judgeSchemas } from "./llama-schema.ts";

export const llamaServer: words.SimDialect = {
  listensWhileLoading: true,
  closesAfterStream: true,
  noticesLeaversLate: true,
  keepsPromptsInSlots: true,
  // as with `--sse-ping-interval 1`
  pingMs: 1_000,
  ignoresNamedTool: true,
  healthBody: '{"status":"ok"}',
  check,
  prints: (body) => judgeSchemas(body).prints,
  refusals: {
    "not-found": failed(404, "not_found_error", "File Not Found"),
    "bad-json": broken("[json.exception.parse_error.101] parse error at line 1, column 15: syntax error"),
    overloaded: failed(503, "unavailable_error", "no slot available"),
    unavailable: failed(503, "unavailable_error", "Loading model"),
    dead: broken("Compute error."),
    internal: broken("Compute error."),
  },
  overflow(promptTokens, contextTokens) {
    const message = `request (${promptTokens} tokens) exceeds the available context size (${contextTokens} tokens), try increasing it`;
    return failed(400, "exceed_context_size_error", message, { n_prompt_tokens: promptTokens, n_ctx: contextTokens });
  },
  form,
  eventOf: ({ body }) => body,
  checkInputs,
  // the server ignores `dimensions` and the model's name
  embeddings: (data, tokens, { body }) => ({
    ...{ model: body["model"], object: "list", usage: { prompt_tokens: tokens, total_tokens: tokens } },
    data,
  }),
  page(path, { model, adapters, contextTokens, maxRunning }) {
    const slot = { n_ctx: contextTokens, speculative: false, is_processing: false };
    switch (path) {
      case "/v1/models":
        return models([model, ...adapters].toSorted(), contextTokens);
      case "/props":
        return {
          default_generation_settings: { params: { temperature: 0.8, top_k: 40, min_p: 0.05 }, n_ctx: contextTokens },
          ...{ total_slots: maxRunning, model_alias: model, is_sleeping: false },
        };
      case "/slots":
        return Array.from({ length: maxRunning }, (_, id) => ({ id, ...slot }));
      default:
        return undefined;
    }
  },
  counted(path, count) {
    if (path === "/tokenize") return { tokens: Array.from({ length: count }, (_, index) => index) };
    const isChat = path === "/v1/chat/completions/input_tokens";
    return isChat ? { input_tokens: count, object: "response.input_tokens" } : undefined;
  },
  metrics: (_model, figures) =>
    metric("llamacpp:prompt_tokens_total", "counter", figures.promptTokens - figures.cachedTokens) +
    metric("llamacpp:prompt_tokens_cached_total", "counter", figures.cachedTokens) +
    metric("llamacpp:tokens_predicted_total", "counter", figures.endedTokens) +
    metric("llamacpp:n_decode_total", "counter", figures.generatedTokens) +
    metric("llamacpp:requests_processing", "gauge", figures.running) +
    metric("llamacpp:requests_deferred", "gauge", figures.waiting),
};

/** The trained context of a model differs from the context that the server was started with. */
function models(names: readonly string[], contextTokens: number): unknown {
  const [model] = names;
  const meta = { n_ctx: contextTokens, n_ctx_train: contextTokens * 2 };
  const entry = { id: model, aliases: names, tags: [], object: "model", created: 0, owned_by: "llamacpp", meta };
  return {
    models: [{ name: model, model, type: "model", capabilities: ["completion"] }],
    ...{ object: "list", data: [entry] },
  };
}

function checkInputs({ encoding_format: format }: Body, tokens: readonly number[], batch: number): Refusal | undefined {
  const longest = Math.max(...tokens);
  if (format !== undefined && format !== "float" && format !== "base64")
    return bad("The format to return the embeddings in. Can be either float or base64");
  if (tokens.length === 0) return broken('"prompt" must not be empty');
  if (longest <= batch) return undefined;
  return broken(
    `input (${longest} tokens) is too large to process. increase the physical batch size (current batch size: ${batch})`,
  );
}

function failed(code: number, type: string, message: string, more: object = {}): Refusal {
  return { status: code, body: JSON.stringify({ error: { code, message, type, ...more } }) };
}

function bad(message: string): Refusal {
  return failed(400, "invalid_request_error", message);
}

function broken(message: string): Refusal {
  return failed(500, "server_error", message);
}

function check({ body, promptTokens, stream }: SimRequest, facts: EngineFacts): Refusal | undefined {
  const { contextTokens, maxRunning } = facts;
  if (body["logprobs"] === true && stream && asArray(body["tools"]).length > 0)
    return bad("logprobs is not supported with tools + stream");
  const choices = asNumber(body["n"]) ?? 1;
  if (choices < 1 || choices > maxRunning)
    return bad(`Field 'n': Value must be between 1 <= value <= ${maxRunning}, but got ${choices}`);
  const limit = asNumber(body["max_tokens"]);
  if (limit !== undefined && limit < -1)
    return bad(`Field 'max_tokens': Value must be between -1 <= value <= 2147483647, but got ${limit}`);
  if (promptTokens >= contextTokens) return llamaServer.overflow(promptTokens, contextTokens);
  return judgeSchemas(body).refusal;
}

function form(answer: Answer): AnswerForm {
  const { request, createdSeconds: created, model } = answer;
  const { script, choices, body, promptTokens } = request;
  const { cached_tokens: cached = 0 } = answer.entry;
  const isChat = request.kind === "chat";
  const object = isChat ? "chat.completion" : "text_completion";
  const whole = { created, id: `chatcmpl-${answer.id}`, model, system_fingerprint: "b1-de3ff81", object };
  const chunk = { ...whole, object: isChat ? `${object}.chunk` : object };
  const timings = (made: number) => ({
    ...{ cache_n: cached, prompt_n: promptTokens - cached, ...rates("prompt") },
    ...{ predicted_n: made, ...rates("predicted") },
  });
  const usage = (made: number) => usageOf(answer, made, { prompt_tokens_details: { cached_tokens: cached } });
  /** A chat has a separate chunk for the usage. A completion has it in the last chunk. */
  const hasUsageChunk = request.includeUsage && isChat;
  /** Every chunk has timings if the request demands them, and the last chunk always has them. */
  const event = (index: number, inner: object, finish?: FinishReason, made?: number) => {
    const isTimed = finish === undefined ? body["timings_per_token"] === true : !hasUsageChunk;
    const isLast = finish !== undefined && made !== undefined;
    return {
      choices: [{ finish_reason: finish ?? null, index, ...inner }],
      ...chunk,
      usage: isLast && request.includeUsage && !isChat ? usage(made) : undefined,
      timings: made !== undefined && isTimed ? timings(made) : undefined,
    };
  };
  const usageChunk = (made: number) => ({ choices: [], ...chunk, usage: usage(made), timings: timings(made) });
  const role = { delta: { role: "assistant", content: null } };
  return {
    // Each report of progress repeats the role.
    reading() {
      if (!isChat || body["return_progress"] !== true) return [];
      const progress = { total: promptTokens, cache: cached, time_ms: 0 };
      return [cached, promptTokens].map((processed) => {
        return { ...event(0, role), timings: timings(0), prompt_progress: { ...progress, processed } };
      });
    },
    opening: () => (isChat ? eachChoice(answer, (index) => event(index, role, undefined, 1)) : []),
    token(index, at, finish) {
      const { kind, text, call = 0, opens } = script.piece(at);
      const made = at + 1;
      const named = opens && { id: `${answer.id}-${index}-${call}`, type: "function" };
      const called = { name: opens ? script.tools[call] : undefined, arguments: text };
      const logprobs = body["logprobs"] ? { logprobs: words.logprobsOf(answer, text) } : {};
      const inner = {
        content: () => ({ delta: { content: text }, ...logprobs }),
        reasoning: () => ({ delta: { reasoning_content: text }, ...logprobs }),
        arguments: () => ({ delta: { tool_calls: [{ index: call, ...named, function: called }] } }),
      };
      const piece = event(index, isChat ? inner[kind]() : { text, logprobs: null }, undefined, made);
      if (!finish) return [piece];
      const reason = finish === "stop" && kind === "arguments" ? "tool_calls" : finish;
      const last = event(index, isChat ? { delta: {} } : { text: "", logprobs: null }, reason, made);
      // Each of several answers has its own usage chunk as soon as it ends.
      return hasUsageChunk && choices > 1 ? [piece, last, usageChunk(made)] : [piece, last];
    },
    finish: (reason) => eachChoice(answer, (index) => event(index, isChat ? { delta: {} } : { text: "" }, reason)),
    closing: () => (hasUsageChunk && choices === 1 ? [usageChunk(answer.entry.generated)] : []),
    whole(made, finish) {
      const text = textOf(answer, made);
      const one = (index: number) =>
        isChat
          ? { finish_reason: finish, index, message: message(answer, text, index) }
          : { text: text.content, index, logprobs: null, finish_reason: finish };
      // The usage covers only the first answer.
      return { choices: eachChoice(answer, one), ...whole, usage: usage(made) ?? null, timings: timings(made) };
    },
  };
}

function rates(of: string): object {
  return { [`${of}_ms`]: 1, [`${of}_per_token_ms`]: 0.5, [`${of}_per_second`]: 2000.5 };
}

function message({ id, request }: Answer, text: ReturnType<typeof textOf>, index: number): unknown {
  const { tools, reasoning } = request.script;
  const calls = text.calls.map((call, at) => ({ type: "function", function: call, id: `${id}-${index}-${at}` }));
  return {
    ...{ role: "assistant", content: text.content },
    reasoning_content: reasoning > 0 ? text.reasoning : undefined,
    tool_calls: tools.length > 0 ? calls : undefined,
  };
}
