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
import { asNumber, type FinishReason, type SimRequest } from "../request.ts";

export const llamaServer: SimDialect = {
  listensWhileLoading: true,
  closesAfterStream: true,
  terminatesErrors: false,
  noticesLeaversLate: true,
  canSleep: false,
  healthBody: '{"status":"ok"}',
  check,
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
      case "internal":
        return failed(500, "server_error", "Compute error.");
    }
  },
  form,
  errorEvent: () => failed(500, "server_error", "Compute error.").body,
  models: (model, contextTokens) => ({
    models: [{ name: model, model, type: "model", capabilities: ["completion"] }],
    object: "list",
    data: [
      {
        id: model,
        aliases: [model],
        object: "model",
        created: 0,
        owned_by: "llamacpp",
        meta: { n_ctx_train: contextTokens },
      },
    ],
  }),
  metrics,
};

function failed(status: number, type: string, message: string): Refusal {
  return { status, body: JSON.stringify({ error: { code: status, message, type } }) };
}

function check({ body, promptTokens }: SimRequest, _model: string, contextTokens: number): Refusal | undefined {
  const limit = asNumber(body["max_tokens"]);
  if (limit !== undefined && limit < -1)
    return failed(
      400,
      "invalid_request_error",
      `Field 'max_tokens': Value must be between -1 <= value <= 2147483647, but got ${limit}`,
    );
  if (promptTokens >= contextTokens) return llamaServer.refusal("overflow", { promptTokens, contextTokens });
  return undefined;
}

function form(answer: Answer): AnswerForm {
  const { request } = answer;
  const { script, choices } = request;
  const chat = request.kind === "chat";
  const object = (chunk: boolean) => (chat ? `chat.completion${chunk ? ".chunk" : ""}` : "text_completion");
  const tail = (chunk: boolean) =>
    `],"created":${answer.createdSeconds},"id":"chatcmpl-${answer.id}","model":${JSON.stringify(answer.model)},"system_fingerprint":"b1-de3ff81","object":"${object(chunk)}"`;
  const end = tail(true);
  const timings = (made: number) =>
    `,"timings":{"cache_n":0,"prompt_n":${request.promptTokens},"prompt_ms":1,"predicted_n":${made},"predicted_ms":1}`;
  const event = (index: number, inner: string, finish?: FinishReason, made?: number) => {
    const figures = made !== undefined && request.body["timings_per_token"] === true ? timings(made) : "";
    return `{"choices":[{"finish_reason":${finish ? `"${finish}"` : "null"},"index":${index},${inner}}${end}${figures}}`;
  };
  const usageChunk = (made: number) => {
    const usage = usageText(answer, made, ',"prompt_tokens_details":{"cached_tokens":0}');
    return `{"choices":[${end}${usage === undefined ? "" : `,"usage":${usage}`}${timings(made)}}`;
  };
  const closings: string[] = [];
  return {
    opening: () =>
      chat ? eachChoice(answer).map((index) => event(index, '"delta":{"role":"assistant","content":null}')) : [],
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
      );
      if (request.includeUsage && choices > 1) return [...events, last, usageChunk(made)];
      return [...events, last];
    },
    finish: (reason) => eachChoice(answer).map((index) => event(index, chat ? '"delta":{}' : '"text":""', reason)),
    closing: () => (request.includeUsage && choices === 1 ? [usageChunk(answer.entry.generated)] : closings),
    whole(made, finish) {
      const text = textOf(answer, made);
      const one = (index: number) =>
        chat
          ? { finish_reason: finish, index, message: message(answer, text, index) }
          : { text: text.content, index, logprobs: null, finish_reason: finish };
      const all = eachChoice(answer).map((index) => JSON.stringify(one(index)));
      // the usage of the first answer only
      return `{"choices":[${all.join(",")}${tail(false)},"usage":${usageText(answer, made) ?? "null"}${timings(made)}}`;
    },
  };
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
    line("prompt_tokens_total", "counter", figures.promptTokens) +
    line("prompt_tokens_cached_total", "counter", 0) +
    line("tokens_predicted_total", "counter", figures.endedTokens) +
    line("requests_processing", "gauge", figures.running) +
    line("requests_deferred", "gauge", figures.waiting)
  );
}
