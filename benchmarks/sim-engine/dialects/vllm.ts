/** vLLM's OpenAI server, as its version 0.22 to 0.29 talks. */
import {
  eachChoice,
  frontMetrics,
  logprobsText,
  textOf,
  tokenized,
  usageText,
  type Answer,
  type AnswerForm,
  type EngineFigures,
  type Refusal,
  type SimDialect,
} from "../answer.ts";
import type { EngineFacts } from "../parts.ts";
import { asArray, asNumber, text, type FinishReason, type SimRequest } from "../request.ts";

export const vllm: SimDialect = {
  listensWhileLoading: false,
  closesAfterStream: false,
  terminatesErrors: true,
  noticesLeaversLate: false,
  canSleep: true,
  ignoresNamedTool: false,
  healthBody: "",
  check,
  refusal(kind, details = {}) {
    switch (kind) {
      case "overflow":
        return overflow(details.promptTokens ?? 40_000, details.maxTokens ?? 0, details.contextTokens ?? 32_768);
      case "unknown-model":
        return failed(404, "NotFoundError", "The model `x` does not exist.", "model");
      case "not-found":
        return { status: 404, body: '{"detail":"Not Found"}' };
      case "bad-json":
        return failed(400, "Bad Request", "1 validation error:\n  {'type': 'json_invalid', 'loc': ('body', 1)}");
      case "overloaded":
        return failed(429, "TooManyRequestsError", "Too many requests");
      case "unavailable":
        return failed(503, "ServiceUnavailableError", "Service Unavailable");
      case "internal":
        return failed(
          500,
          "InternalServerError",
          "EngineCore encountered an issue. See stack trace (above) for the root cause.",
        );
    }
  },
  form: (answer) => (answer.request.kind === "chat" ? chatForm(answer) : completionForm(answer)),
  eventOf: ({ body }) => body,
  checkInputs(body, tokens, contextTokens) {
    const { dimensions } = body;
    if (dimensions !== undefined && dimensions !== null)
      return bad(
        `Model 'x' does not support Matryoshka embeddings; dimensions must be unset (received dimensions=${text(dimensions)}).`,
        "dimensions",
      );
    const longest = Math.max(...tokens);
    return longest > contextTokens ? overflow(longest, 0, contextTokens) : undefined;
  },
  embeddings: (data, tokens, { id, model }) => ({
    ...{ id: `embd-${id}`, object: "list", created: 0, model, data },
    usage: { prompt_tokens: tokens, total_tokens: tokens, completion_tokens: 0, prompt_tokens_details: null },
  }),
  page: (path, { model, contextTokens }) => (path === "/v1/models" ? models(model, contextTokens) : pages[path]),
  counted: (path, count, contextTokens) => (path === "/tokenize" ? tokenized(count, contextTokens) : undefined),
  metrics,
};

const pages: Readonly<Record<string, unknown>> = { "/version": { version: "0.27.0" } };

function models(model: string, contextTokens: number): unknown {
  const entry = { id: model, object: "model", created: 0, owned_by: "vllm", root: model, parent: null };
  return { object: "list", data: [{ ...entry, max_model_len: contextTokens, permission: [] }] };
}

function failed(status: number, type: string, message: string, param: string | null = null): Refusal {
  return { status, body: JSON.stringify({ error: { message, type, param, code: status } }) };
}

function bad(message: string, param: string, value?: number): Refusal {
  const tail = value === undefined ? "" : ` (parameter=${param}, value=${value})`;
  return failed(400, "BadRequestError", message + tail, param);
}

function overflow(promptTokens: number, maxTokens: number, contextTokens: number): Refusal {
  // the tokeniser stops one past the limit: the true count is not told
  const atLeast = Math.min(promptTokens, contextTokens - maxTokens + 1);
  return bad(
    `This model's maximum context length is ${contextTokens} tokens. However, you requested ${maxTokens} output tokens and your prompt contains at least ${atLeast} input tokens, for a total of at least ${atLeast + maxTokens} tokens. Please reduce the length of the input prompt or the number of requested output tokens.`,
    "input_tokens",
    atLeast,
  );
}

/** Pydantic's words for a value that fits neither form. */
function tooManyStops(given: number, most: number): Refusal {
  const at = `'loc': 'body.stop'`;
  const input = `'input': '<list of ${given} items>'`;
  const [text, long] = ["Input should be a valid string", "List should have at most"];
  const length = `'ctx': {'field_type': 'List', 'max_length': ${most}, 'actual_length': ${given}}`;
  return failed(
    400,
    "Bad Request",
    `2 validation errors:\n  {'type': 'string_type', ${at}, 'msg': '${text}', ${input}}\n  {'type': 'too_long', ${at}, 'msg': '${long} ${most} items after validation, not ${given}', ${input}, ${length}}`,
    "body.stop",
  );
}

function check(request: SimRequest, { model, contextTokens, stopStringsMax }: EngineFacts): Refusal | undefined {
  const { body, promptTokens } = request;
  const limitName = body["max_completion_tokens"] === undefined ? "max_tokens" : "max_completion_tokens";
  const limit = asNumber(body[limitName]);
  const temperature = asNumber(body["temperature"]);
  const top = asNumber(body["top_logprobs"]) ?? 0;
  if (body["model"] !== undefined && body["model"] !== model)
    return failed(404, "NotFoundError", `The model \`${text(body["model"])}\` does not exist.`, "model");
  if (request.kind === "chat" && !Array.isArray(body["messages"]))
    return failed(
      400,
      "Bad Request",
      "1 validation error:\n  {'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}",
      "body.messages",
    );
  if (body["stream_options"] !== undefined && body["stream_options"] !== null && !request.stream)
    return bad("Stream options can only be defined when `stream=True`.", "stream_options");
  if (limit !== undefined && limit < 1) return bad(`max_tokens must be at least 1, got ${limit}.`, limitName, limit);
  if (temperature !== undefined && temperature < 0)
    return bad(`temperature must be non-negative, got ${temperature.toFixed(1)}.`, "temperature", temperature);
  if (temperature === 0 && (asNumber(body["n"]) ?? 1) > 1)
    return bad(`n must be 1 when using greedy sampling, got ${String(body["n"])}.`, "n");
  if (top > 0 && body["logprobs"] !== true)
    return bad("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs");
  if (Array.isArray(body["tools"]) && body["tools"].length === 0) return bad("`tools` must not be empty.", "tools");
  if ([body["stop"]].flat().includes("")) return bad("stop cannot contain an empty string.", "stop");
  const stops = asArray(body["stop"]).length;
  if (stops > stopStringsMax) return tooManyStops(stops, stopStringsMax);
  if (limit !== undefined && limit > contextTokens)
    return bad(
      `${limitName}=${limit} cannot be greater than max_model_len=max_total_tokens=${contextTokens}. Please request fewer output tokens.`,
      limitName,
      limit,
    );
  const perPrompt = request.kind === "chat" ? promptTokens : promptTokens / Math.max(1, asArray(body["prompt"]).length);
  if (perPrompt + (limit ?? 0) > contextTokens) return overflow(promptTokens, limit ?? 0, contextTokens);
  if (perPrompt === contextTokens) return bad("max_tokens must be at least 1, got 0.", "max_tokens", 0);
  return undefined;
}

function chatForm(answer: Answer): AnswerForm {
  const { request } = answer;
  const { script } = request;
  const head = `{"id":"chatcmpl-${answer.id}","object":"chat.completion.chunk","created":${answer.createdSeconds},"model":${JSON.stringify(answer.model)},"choices":[`;
  const event = (inner: string) => {
    const usage = request.continuousUsage ? usageText(answer) : undefined;
    return usage === undefined ? `${head}${inner}]}` : `${head}${inner}],"usage":${usage}}`;
  };
  const choice = (index: number, delta: string, finish?: FinishReason, logprobs = "null") =>
    `{"index":${index},"delta":${delta},"logprobs":${logprobs},"finish_reason":${finish ? `"${finish}","stop_reason":null,"token_ids":null` : "null"}}`;
  const toolHead = (index: number, call: number) =>
    `{"tool_calls":[{"id":"chatcmpl-tool-${answer.id}-${index}-${call}","type":"function","index":${call},"function":{"name":${JSON.stringify(script.tools[call])},"arguments":""}}]}`;
  return {
    opening: () =>
      eachChoice(answer).map((index) =>
        event(`${choice(index, '{"role":"assistant","content":""}').slice(0, -1)},"prompt_token_ids":null}`),
      ),
    token(index, at, finish) {
      const { kind, text, call = 0, opens } = script.piece(at);
      const json = JSON.stringify(text);
      // the last piece of reasoning leaves with the first of what follows
      if (kind === "reasoning" && at === script.reasoning - 1 && !finish) return [];
      const border =
        at > 0 && at === script.reasoning ? `"reasoning":${JSON.stringify(script.piece(at - 1).text)},` : "";
      const logprobs = logprobsText(answer, text);
      if (kind === "reasoning") return [event(choice(index, `{"reasoning":${json}}`, finish, logprobs))];
      if (kind === "content") return [event(choice(index, `{${border}"content":${json}}`, finish, logprobs))];
      const first = opens ? [event(choice(index, `{${border}${toolHead(index, call).slice(1)}`))] : [];
      return [
        ...first,
        event(choice(index, `{"tool_calls":[{"index":${call},"function":{"arguments":${json}}}]}`, finish, logprobs)),
      ];
    },
    finish: (reason) => eachChoice(answer).map((index) => event(choice(index, '{"content":""}', reason))),
    closing() {
      const usage = usageText(answer, answer.entry.generated, reasoningDetails(answer));
      return request.includeUsage && usage !== undefined ? [`${head}],"usage":${usage}}`] : [];
    },
    whole(made, finish) {
      const text = textOf(answer, made);
      const forced = request.body["tool_choice"] !== undefined && request.body["tool_choice"] !== "auto";
      return JSON.stringify({
        id: `chatcmpl-${answer.id}`,
        object: "chat.completion",
        created: answer.createdSeconds,
        model: answer.model,
        choices: eachChoice(answer).map((index) => ({
          index,
          message: {
            role: "assistant",
            content: script.tools.length === 0 ? text.content : forced ? "" : null,
            refusal: null,
            annotations: null,
            audio: null,
            function_call: null,
            ...(script.tools.length === 0
              ? {}
              : {
                  tool_calls: text.calls.map((called, call) => ({
                    id: `chatcmpl-tool-${answer.id}-${index}-${call}`,
                    type: "function",
                    function: called,
                  })),
                }),
            reasoning: script.reasoning > 0 ? text.reasoning : null,
          },
          logprobs: request.body["logprobs"] ? { content: [] } : null,
          finish_reason: finish,
          stop_reason: null,
        })),
        usage: "@usage",
      }).replace('"@usage"', usageText(answer, answer.entry.generated, reasoningDetails(answer)) ?? "null");
    },
  };
}

function completionForm(answer: Answer): AnswerForm {
  const { request } = answer;
  const head = `{"id":"cmpl-${answer.id}","object":"text_completion","created":${answer.createdSeconds},"model":${JSON.stringify(answer.model)},"choices":[`;
  const event = (inner: string) => {
    const usage = request.continuousUsage ? usageText(answer) : undefined;
    return usage === undefined ? `${head}${inner}]}` : `${head}${inner}],"usage":${usage}}`;
  };
  const choice = (index: number, text: string, finish?: FinishReason) =>
    `{"index":${index},"text":${JSON.stringify(text)},"logprobs":null,"finish_reason":${finish ? `"${finish}"` : "null"},"stop_reason":null}`;
  return {
    opening: () => [],
    token: (index, at, finish) => [event(choice(index, request.script.piece(at).text, finish))],
    finish: (reason) => eachChoice(answer).map((index) => event(choice(index, "", reason))),
    closing() {
      const usage = usageText(answer);
      return request.includeUsage && usage !== undefined ? [`${head}],"usage":${usage}}`] : [];
    },
    whole: (made, finish) =>
      `${head}${eachChoice(answer)
        .map((index) => choice(index, textOf(answer, made).content, finish))
        .join(",")}],"usage":${usageText(answer) ?? "null"}}`,
  };
}

function reasoningDetails(answer: Answer): string {
  const { reasoning, length } = answer.request.script;
  if (reasoning === 0) return "";
  const perChoice = Math.min(reasoning, length, answer.entry.generated / answer.request.choices);
  return `,"completion_tokens_details":{"reasoning_tokens":${Math.floor(perChoice) * answer.request.choices}}`;
}

function metrics(model: string, figures: EngineFigures): string {
  const labels = `engine="0",model_name="${model}"`;
  const line = (name: string, type: string, value: number, more = "") =>
    `# TYPE vllm:${name} ${type}\nvllm:${name}{${labels}${more}} ${value}\n`;
  const states = ["awake", "weights_offloaded", "discard_all"] as const;
  return (
    frontMetrics(figures) +
    line("num_requests_running", "gauge", figures.running) +
    line("num_requests_waiting", "gauge", figures.waiting) +
    line("kv_cache_usage_perc", "gauge", Math.min(1, figures.running / figures.maxRunning)) +
    line("prefix_cache_queries_total", "counter", figures.promptTokens) +
    line("prefix_cache_hits_total", "counter", 0) +
    line("prompt_tokens_total", "counter", figures.promptTokens) +
    line("generation_tokens_total", "counter", figures.generatedTokens) +
    [...figures.finished]
      .map(([reason, count]) => line("request_success_total", "counter", count, `,finished_reason="${reason}"`))
      .join("") +
    states
      .map((state) =>
        line("engine_sleep_state", "gauge", Number(figures.sleeping === state), `,sleep_state="${state}"`),
      )
      .join("")
  );
}
