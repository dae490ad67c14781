/** llama.cpp's server, as its version 0.5.0 talks. */
import {
  eachChoice,
  logprobsText,
  textOf,
  usageText,
  type Answer,
  type AnswerForm,
  type EngineFigures,
  type Refusal,
  type SimDialect,
} from "../answer.ts";
import type { EngineFacts } from "../engine-facts.ts";
import { asArray, asNumber, type Body, type FinishReason, type SimRequest } from "../request.ts";
import { judgeSchemas } from "./llama-schema.ts";

export const llamaServer: SimDialect = {
  listensWhileLoading: true,
  closesAfterStream: true,
  terminatesErrors: false,
  noticesLeaversLate: true,
  keepsPromptsInSlots: true,
  // as with `--sse-ping-interval 1`
  pingMs: 1_000,
  canSleep: false,
  ignoresNamedTool: true,
  healthBody: '{"status":"ok"}',
  check,
  prints: (body) => judgeSchemas(body).prints,
  refusal(kind, details = {}) {
    switch (kind) {
      case "overflow": {
        const { promptTokens = 40_000, contextTokens = 32_768 } = details;
        const message = `request (${promptTokens} tokens) exceeds the available context size (${contextTokens} tokens), try increasing it`;
        const more = { n_prompt_tokens: promptTokens, n_ctx: contextTokens };
        return {
          status: 400,
          body: JSON.stringify({ error: { code: 400, message, type: "exceed_context_size_error", ...more } }),
        };
      }
      case "unknown-model":
      case "not-found":
        return failed(404, "not_found_error", "File Not Found");
      case "bad-json":
        return failed(
          500,
          "server_error",
          "[json.exception.parse_error.101] parse error at line 1, column 15: syntax error",
        );
      case "overloaded":
        return failed(503, "unavailable_error", "no slot available");
      case "unavailable":
        return failed(503, "unavailable_error", "Loading model");
      case "dead":
      case "internal":
        return failed(500, "server_error", "Compute error.");
    }
  },
  form,
  eventOf: ({ body }) => body,
  checkInputs,
  // `dimensions` and the model's name are not looked at
  embeddings: (data, tokens, { body }) => ({
    ...{ model: body["model"], object: "list", usage: { prompt_tokens: tokens, total_tokens: tokens } },
    data,
  }),
  page(path, { model, contextTokens, maxRunning }) {
    const slot = { n_ctx: contextTokens, speculative: false, is_processing: false };
    switch (path) {
      case "/v1/models":
        return models(model, contextTokens);
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
  metrics,
};

/** What it was trained for says nothing of what it was started with. */
function models(model: string, contextTokens: number): unknown {
  const meta = { n_ctx: contextTokens, n_ctx_train: contextTokens * 2 };
  const entry = { id: model, aliases: [model], tags: [], object: "model", created: 0, owned_by: "llamacpp", meta };
  return {
    models: [{ name: model, model, type: "model", capabilities: ["completion"] }],
    ...{ object: "list", data: [entry] },
  };
}

function checkInputs({ encoding_format: format }: Body, tokens: readonly number[], batch: number): Refusal | undefined {
  const longest = Math.max(...tokens);
  if (format !== undefined && format !== "float" && format !== "base64")
    return failed(
      ...[400, "invalid_request_error" as const],
      "The format to return the embeddings in. Can be either float or base64",
    );
  if (tokens.length === 0) return failed(500, "server_error", '"prompt" must not be empty');
  if (longest <= batch) return undefined;
  return failed(
    500,
    "server_error",
    `input (${longest} tokens) is too large to process. increase the physical batch size (current batch size: ${batch})`,
  );
}

function failed(status: number, type: string, message: string): Refusal {
  return { status, body: JSON.stringify({ error: { code: status, message, type } }) };
}

function check({ body, promptTokens, stream }: SimRequest, facts: EngineFacts): Refusal | undefined {
  const { contextTokens, maxRunning } = facts;
  if (body["logprobs"] === true && stream && asArray(body["tools"]).length > 0)
    return failed(400, "invalid_request_error", "logprobs is not supported with tools + stream");
  const choices = asNumber(body["n"]) ?? 1;
  if (choices < 1 || choices > maxRunning)
    return failed(
      400,
      "invalid_request_error",
      `Field 'n': Value must be between 1 <= value <= ${maxRunning}, but got ${choices}`,
    );
  const limit = asNumber(body["max_tokens"]);
  if (limit !== undefined && limit < -1)
    return failed(
      400,
      "invalid_request_error",
      `Field 'max_tokens': Value must be between -1 <= value <= 2147483647, but got ${limit}`,
    );
  if (promptTokens >= contextTokens) return llamaServer.refusal("overflow", { promptTokens, contextTokens });
  return judgeSchemas(body).refusal;
}

function form(answer: Answer): AnswerForm {
  const { request } = answer;
  const { script, choices } = request;
  const { cached_tokens: cached = 0 } = answer.entry;
  const chat = request.kind === "chat";
  const object = (chunk: boolean) => (chat ? `chat.completion${chunk ? ".chunk" : ""}` : "text_completion");
  const tail = (chunk: boolean) =>
    `],"created":${answer.createdSeconds},"id":"chatcmpl-${answer.id}","model":${JSON.stringify(answer.model)},"system_fingerprint":"b1-de3ff81","object":"${object(chunk)}"`;
  const end = tail(true);
  const timings = (made: number) =>
    `,"timings":{"cache_n":${cached},"prompt_n":${request.promptTokens - cached},${rates("prompt")},"predicted_n":${made},${rates("predicted")}}`;
  const progress = (processed: number) =>
    `,"prompt_progress":{"total":${request.promptTokens},"cache":${cached},"processed":${processed},"time_ms":0}`;
  /** A chat has a chunk of its own for the usage; a completion has it beside the finish. */
  const hasUsageChunk = request.includeUsage && chat;
  /** Timings are told with each token where that was asked for, and unasked in the last chunk. */
  const event = (index: number, inner: string, finish?: FinishReason, made?: number) => {
    const isTimed = finish === undefined ? request.body["timings_per_token"] === true : !hasUsageChunk;
    const figures = made !== undefined && isTimed ? timings(made) : "";
    const usage = finish !== undefined && made !== undefined && request.includeUsage && !chat ? usageOf(made) : "";
    return `{"choices":[{"finish_reason":${finish ? `"${finish}"` : "null"},"index":${index},${inner}}${end}${usage}${figures}}`;
  };
  const usageOf = (made: number) => {
    const usage = usageText(answer, made, `,"prompt_tokens_details":{"cached_tokens":${cached}}`);
    return usage === undefined ? "" : `,"usage":${usage}`;
  };
  const usageChunk = (made: number) => `{"choices":[${end}${usageOf(made)}${timings(made)}}`;
  const closings: string[] = [];
  return {
    // the role chunk comes again and again, until there is something to say
    reading() {
      const role = event(0, '"delta":{"role":"assistant","content":null}').slice(0, -1);
      return chat && request.body["return_progress"] === true
        ? [cached, request.promptTokens].map((processed) => `${role}${timings(0)}${progress(processed)}}`)
        : [];
    },
    opening: () =>
      chat
        ? eachChoice(answer).map((index) => event(index, '"delta":{"role":"assistant","content":null}', undefined, 1))
        : [],
    token(index, at, finish) {
      const { kind, text, call = 0, opens } = script.piece(at);
      const json = JSON.stringify(text);
      const made = at + 1;
      const logprobs = request.body["logprobs"] ? `,"logprobs":${logprobsText(answer, text)}` : "";
      const head = opens ? `"id":"${answer.id}-${index}-${call}","type":"function",` : "";
      const named = opens ? `"name":${JSON.stringify(script.tools[call])},` : "";
      const inner = !chat
        ? `"text":${json},"logprobs":null`
        : kind === "arguments"
          ? `"delta":{"tool_calls":[{"index":${call},${head}"function":{${named}"arguments":${json}}}]}`
          : `"delta":{"${kind === "reasoning" ? "reasoning_content" : "content"}":${json}}${logprobs}`;
      const events = [event(index, inner, undefined, made)];
      if (!finish) return events;
      // with several answers each choice has its usage chunk as soon as it ends
      const last = event(
        index,
        chat ? '"delta":{}' : '"text":"","logprobs":null',
        finish === "stop" && kind === "arguments" ? "tool_calls" : finish,
        made,
      );
      if (hasUsageChunk && choices > 1) return [...events, last, usageChunk(made)];
      return [...events, last];
    },
    finish: (reason) => eachChoice(answer).map((index) => event(index, chat ? '"delta":{}' : '"text":""', reason)),
    closing: () => (hasUsageChunk && choices === 1 ? [usageChunk(answer.entry.generated)] : closings),
    whole(made, finish) {
      const text = textOf(answer, made);
      const one = (index: number) =>
        chat
          ? { finish_reason: finish, index, message: message(answer, text, index) }
          : { text: text.content, index, logprobs: null, finish_reason: finish };
      const all = eachChoice(answer).map((index) => JSON.stringify(one(index)));
      // the usage of the first answer only
      return `{"choices":[${all.join(",")}${tail(false)},"usage":${usageText(answer, made, `,"prompt_tokens_details":{"cached_tokens":${cached}}`) ?? "null"}${timings(made)}}`;
    },
  };
}

function rates(of: string): string {
  return `"${of}_ms":1,"${of}_per_token_ms":0.5,"${of}_per_second":2000.5`;
}

function message(answer: Answer, text: ReturnType<typeof textOf>, index: number): unknown {
  const { tools, reasoning } = answer.request.script;
  return {
    role: "assistant",
    content: text.content,
    ...(reasoning > 0 ? { reasoning_content: text.reasoning } : {}),
    ...(tools.length === 0
      ? {}
      : {
          tool_calls: text.calls.map((call, at) => {
            return { type: "function", function: call, id: `${answer.id}-${index}-${at}` };
          }),
        }),
  };
}

function metrics(_model: string, figures: EngineFigures): string {
  const line = (name: string, type: string, value: number) =>
    `# TYPE llamacpp:${name} ${type}\nllamacpp:${name} ${value}\n`;
  return (
    line("prompt_tokens_total", "counter", figures.promptTokens - figures.cachedTokens) +
    line("prompt_tokens_cached_total", "counter", figures.cachedTokens) +
    line("tokens_predicted_total", "counter", figures.endedTokens) +
    line("n_decode_total", "counter", figures.generatedTokens) +
    line("requests_processing", "gauge", figures.running) +
    line("requests_deferred", "gauge", figures.waiting)
  );
}
