/** The dialect of vLLM's OpenAI server, version 0.32. The node-agent's tests have recordings of this version. */
import { frontMetrics, metric, tokenized, type EngineFigures, type Refusal, type SimDialect } from "../answer.ts";
import type { EngineFacts } from "../engine-facts.ts";
import { asArray, asNumber, field, text, type SimRequest } from "../request.ts";
import { answerForm } from "./vllm-answers.ts";

export const vllm: SimDialect = {
  terminatesErrors: true,
  canSleep: true,
  healthBody: "",
  check,
  refusals: {
    "not-found": { status: 404, body: '{"detail":"Not Found"}' },
    "bad-json": invalid(
      "body.33",
      "{'type': 'json_invalid', 'loc': 'body.33', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': 'Expecting value'}}",
    ),
    overloaded: failed(429, "TooManyRequestsError", "Too many requests"),
    unavailable: failed(503, "ServiceUnavailableError", "Service Unavailable"),
    internal: broken("Internal server error"),
    dead: broken("EngineCore encountered an issue. See stack trace (above) for the root cause."),
  },
  overflow: (promptTokens, contextTokens) => overflow(promptTokens, 0, contextTokens),
  form: answerForm,
  eventOf: ({ body }) => spaced(body),
  checkInputs(body, tokens, contextTokens) {
    const { dimensions, input } = body;
    if (dimensions != null)
      return bad(
        `Model '${text(body["model"])}' does not support Matryoshka embeddings; dimensions must be unset (received dimensions=${text(dimensions)}).`,
      );
    if (tokens.length === 0) return bad("You must pass at least one prompt");
    if ([input].flat().includes("")) return bad("The decoder prompt cannot be empty");
    const longest = Math.max(...tokens);
    return longest > contextTokens ? overflow(longest, 0, contextTokens) : undefined;
  },
  embeddings: (data, tokens, { id, model }) => ({
    ...{ id: `embd-${id}`, object: "list", created: 0, model, data },
    usage: { prompt_tokens: tokens, total_tokens: tokens, completion_tokens: 0, prompt_tokens_details: null },
  }),
  page: (path, facts) => (path === "/v1/models" ? models(facts) : pages[path]),
  counted: (path, count, contextTokens) =>
    path === "/tokenize" ? { ...tokenized(count, contextTokens), token_strs: null } : undefined,
  metrics,
};

const pages: Readonly<Record<string, unknown>> = {
  "/version": { version: "0.32.0" },
  "/load": { server_load: 0 },
  "/ping": "",
};

function models({ model, adapters, contextTokens }: EngineFacts): unknown {
  const entry = { id: model, object: "model", created: 0, owned_by: "vllm", root: model, parent: null };
  const base = { ...entry, max_model_len: contextTokens, permission: [] };
  const loras = adapters.map((id) => ({ ...entry, id, root: `/adapters/${id}`, parent: model, permission: [] }));
  return { object: "list", data: [base, ...loras] };
}

function failed(status: number, type: string, message: string, param?: string): Refusal {
  return { status, body: JSON.stringify({ error: { message, type, param: param ?? null, code: status } }) };
}

function broken(message: string): Refusal {
  return failed(500, "InternalServerError", message);
}

/** Pydantic's error text for a body in another format. */
function invalid(param: string, ...errors: readonly string[]): Refusal {
  const head = `${errors.length} validation error${errors.length === 1 ? "" : "s"}:`;
  return failed(400, "Bad Request", [head, ...errors].join("\n  "), param);
}

const schemaTypes: ReadonlySet<string> = new Set("object array string number integer boolean null".split(" "));

/** The message contains parameter and value, if the engine names them at all. */
function bad(message: string, param?: string, value?: number | string): Refusal {
  const tail = param === undefined ? "" : ` (parameter=${param}${value === undefined ? "" : `, value=${value}`})`;
  return failed(400, "BadRequestError", message + tail, param);
}

function unknownModel(asked: string, model: string): Refusal {
  const message = `The model \`${asked}\` does not exist. Valid aliases: ${model}.`;
  return failed(404, "NotFoundError", message, "model");
}

function overflow(promptTokens: number, maxTokens: number, contextTokens: number): Refusal {
  // The tokeniser stops one token after the limit, so that the message does not contain the true count.
  const atLeast = Math.min(promptTokens, Math.max(contextTokens - maxTokens, 0) + 1);
  const window = `This model's maximum context length is ${contextTokens} tokens. However, `;
  const message =
    promptTokens > contextTokens
      ? `your prompt contains at least ${contextTokens + 1} input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.`
      : `you requested ${maxTokens} output tokens and your prompt contains at least ${atLeast} input tokens, for a total of at least ${atLeast + maxTokens} tokens. Please reduce the length of the input prompt or the number of requested output tokens.`;
  return bad(window + message, "input_tokens", promptTokens > contextTokens ? contextTokens + 1 : atLeast);
}

/** Error events contain spaces that error bodies do not. */
function spaced(body: string): string {
  const { error } = JSON.parse(body) as { error: Record<string, unknown> };
  const members = Object.entries(error).map(([name, value]) => `"${name}": ${JSON.stringify(value)}`);
  return `{"error": {${members.join(", ")}}}`;
}

function tooManyStops(given: number, most: number): Refusal {
  const at = `'loc': 'body.stop'`;
  const input = `'input': '<list of ${given} items>'`;
  const [text, long] = ["Input should be a valid string", "List should have at most"];
  const length = `'ctx': {'field_type': 'List', 'max_length': ${most}, 'actual_length': ${given}}`;
  return invalid(
    "body.stop",
    `{'type': 'string_type', ${at}, 'msg': '${text}', ${input}}`,
    `{'type': 'too_long', ${at}, 'msg': '${long} ${most} items after validation, not ${given}', ${input}, ${length}}`,
  );
}

function check(
  request: SimRequest,
  { model, adapters, contextTokens, stopStringsMax }: EngineFacts,
): Refusal | undefined {
  const { body, promptTokens } = request;
  const limitName = body["max_completion_tokens"] === undefined ? "max_tokens" : "max_completion_tokens";
  const limit = asNumber(body[limitName]);
  const temperature = asNumber(body["temperature"]);
  const top = asNumber(body["top_logprobs"]) ?? 0;
  const asked = body["model"];
  if (asked !== undefined && asked !== model && !adapters.includes(text(asked)))
    return unknownModel(text(asked), model);
  if (request.kind === "chat" && !Array.isArray(body["messages"]))
    return invalid(
      "body.messages",
      `{'type': 'missing', 'loc': 'body.messages', 'msg': 'Field required', 'input': '<dict of ${Object.keys(body).length} items>'}`,
    );
  if (body["stream_options"] != null && !request.stream)
    return bad("Stream options can only be defined when `stream=True`.", "stream_options");
  if (limit !== undefined && limit < 1) return bad(`max_tokens must be at least 1, got ${limit}.`, limitName, limit);
  if (temperature !== undefined && temperature < 0)
    return bad(
      `temperature must be non-negative, got ${temperature.toFixed(1)}.`,
      "temperature",
      temperature.toFixed(1),
    );
  if (temperature === 0 && (asNumber(body["n"]) ?? 1) > 1)
    return bad(`n must be 1 when using greedy sampling, got ${String(body["n"])}.`);
  if (top > 0 && body["logprobs"] !== true)
    return bad("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs");
  if (Array.isArray(body["tools"]) && body["tools"].length === 0)
    return bad(
      "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.",
      "tools",
    );
  if ([body["stop"]].flat().includes("")) return bad("stop cannot contain an empty string.");
  const stops = asArray(body["stop"]).length;
  if (stops > stopStringsMax) return tooManyStops(stops, stopStringsMax);
  if (limit !== undefined && limit > contextTokens)
    return bad(
      `${limitName}=${limit} cannot be greater than max_model_len=${contextTokens}. Please request fewer output tokens.`,
      limitName,
      limit,
    );
  const schemaType = field(field(field(body["response_format"], "json_schema"), "schema"), "type");
  if (typeof schemaType === "string" && !schemaTypes.has(schemaType))
    return { ...bad(`Grammar error: Invalid type: ${schemaType}`), late: true };
  const perPrompt = request.kind === "chat" ? promptTokens : promptTokens / Math.max(1, asArray(body["prompt"]).length);
  if (perPrompt + (limit ?? 0) > contextTokens) return overflow(promptTokens, limit ?? 0, contextTokens);
  if (perPrompt === contextTokens) return bad("max_tokens must be at least 1, got 0.", "max_tokens", 0);
  return undefined;
}

function metrics(model: string, figures: EngineFigures): string {
  const line = (name: string, type: "counter" | "gauge", value: number, reason = "", state = "") =>
    metric(`vllm:${name}`, type, value, `engine="0",${reason}model_name="${model}"${state}`);
  const ended = [...figures.finished].map(([reason, count]) =>
    line("request_success_total", "counter", count, `finished_reason="${reason}",`),
  );
  const states = ["awake", "weights_offloaded", "discard_all"].map((state) =>
    line("engine_sleep_state", "gauge", Number(figures.sleeping === state), "", `,sleep_state="${state}"`),
  );
  return (
    frontMetrics(figures) +
    line("num_requests_running", "gauge", figures.running) +
    line("num_requests_waiting", "gauge", figures.waiting) +
    line("kv_cache_usage_perc", "gauge", Math.min(1, figures.running / figures.maxRunning)) +
    line("prefix_cache_queries_total", "counter", figures.promptTokens) +
    line("prefix_cache_hits_total", "counter", 0) +
    line("prompt_tokens_total", "counter", figures.promptTokens) +
    line("generation_tokens_total", "counter", figures.generatedTokens) +
    ended.join("") +
    states.join("")
  );
}
