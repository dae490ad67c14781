/** An engine that follows the convention in its own words, like SGLang. */
import * as words from "../answer.ts";
import { eachChoice, metric, textOf, usageOf, type Answer, type AnswerForm, type Refusal } from "../answer.ts";
import { asNumber, type FinishReason } from "../request.ts";

export const openai: words.SimDialect = {
  terminatesErrors: true,
  healthBody: "",
  check({ body, promptTokens }, { contextTokens }) {
    const limit = asNumber(body["max_tokens"]) ?? 0;
    const total = promptTokens + limit;
    if (promptTokens >= contextTokens) return openai.overflow(promptTokens, contextTokens);
    if (total <= contextTokens) return undefined;
    return bad(
      `Requested token count exceeds the model's maximum context length of ${contextTokens} tokens. You requested a total of ${total} tokens: ${promptTokens} tokens from the input messages and ${limit} tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.`,
    );
  },
  refusals: {
    "not-found": { status: 404, body: '{"detail":"Not Found"}' },
    "bad-json": bad("Invalid JSON"),
    overloaded: failed(503, "SERVICE_UNAVAILABLE", "The request queue is full."),
    unavailable: failed(503, "SERVICE_UNAVAILABLE", "The request queue is full."),
    dead: failed(500, "InternalServerError", "Internal server error"),
    internal: failed(500, "InternalServerError", "Internal server error"),
  },
  overflow: (promptTokens, contextTokens) =>
    bad(`The input (${promptTokens} tokens) is longer than the model's context length (${contextTokens} tokens).`),
  form,
  eventOf: ({ body }) => `{"error":${body}}`,
  checkInputs(body, tokens, contextTokens) {
    if (body["dimensions"] != null)
      return bad("Model 'x' does not support matryoshka representation, but dimensions was given.");
    const longest = Math.max(...tokens);
    return longest > contextTokens ? openai.overflow(longest, contextTokens) : undefined;
  },
  embeddings: (data, tokens, { model }) => ({
    ...{ object: "list", data, model },
    usage: { prompt_tokens: tokens, total_tokens: tokens, completion_tokens: 0, prompt_tokens_details: null },
  }),
  page(path, { model, contextTokens }) {
    if (path === "/model_info") return { model_path: model, is_generation: true };
    const entry = { id: model, object: "model", created: 0, owned_by: "sglang", root: model };
    return path === "/v1/models" ? { object: "list", data: [{ ...entry, max_model_len: contextTokens }] } : undefined;
  },
  counted: (path, count, contextTokens) => (path === "/tokenize" ? words.tokenized(count, contextTokens) : undefined),
  metrics(model, figures) {
    const line = (name: string, type: "counter" | "gauge", value: number) =>
      metric(`sglang:${name}`, type, value, `model_name="${model}"`);
    return (
      words.frontMetrics(figures) +
      line("num_running_reqs", "gauge", figures.running) +
      line("num_queue_reqs", "gauge", figures.waiting) +
      line("token_usage", "gauge", Math.min(1, figures.running / figures.maxRunning)) +
      line("prompt_tokens_total", "counter", figures.promptTokens) +
      line("generation_tokens_total", "counter", figures.generatedTokens)
    );
  },
};

/** Its errors have no outer object `error`. */
function failed(status: number, type: string, message: string): Refusal {
  return { status, body: JSON.stringify({ object: "error", message, type, param: null, code: status }) };
}

function bad(message: string): Refusal {
  return failed(400, "BadRequest", message);
}

function form(answer: Answer): AnswerForm {
  const { request, id, createdSeconds: created, model } = answer;
  const { script } = request;
  const isChat = request.kind === "chat";
  const head = { id, object: isChat ? "chat.completion.chunk" : "text_completion", created, model };
  const event = (index: number, inner: object, finish?: FinishReason) => ({
    ...{ ...head, choices: [choice(index, inner, finish)] },
    usage: request.continuousUsage ? usageOf(answer) : undefined,
  });
  const choice = (index: number, inner: object, finish?: FinishReason) => {
    return { index, ...inner, logprobs: null, finish_reason: finish ?? null, matched_stop: null };
  };
  const said = (content: string | null, more: object = {}) =>
    isChat ? { delta: { reasoning_content: null, ...more, content } } : { text: content };
  const nothing = isChat ? { delta: { reasoning_content: null } } : { text: "" };
  return {
    opening: () => (isChat ? eachChoice(answer, (index) => event(index, said("", { role: "assistant" }))) : []),
    token(index, at, finish) {
      const { kind, text, call = 0, opens } = script.piece(at);
      const called = {
        ...{ id: opens ? `call_${id}_${index}_${call}` : null, index: call, type: "function" },
        function: { name: opens ? script.tools[call] : null, arguments: text },
      };
      const inner = {
        content: () => said(text),
        reasoning: () => ({ delta: { reasoning_content: text, content: null } }),
        arguments: () => ({ delta: { reasoning_content: null, content: null, tool_calls: [called] } }),
      };
      const reason = finish === "stop" && kind === "arguments" ? "tool_calls" : finish;
      return [event(index, inner[kind]()), ...(reason ? [event(index, nothing, reason)] : [])];
    },
    finish: (reason) => eachChoice(answer, (index) => event(index, nothing, reason)),
    closing() {
      const usage = usageOf(answer);
      return request.includeUsage && usage !== undefined ? [{ ...head, choices: [], usage }] : [];
    },
    whole(made, finish) {
      const { content, reasoning, calls } = textOf(answer, made);
      const called = calls.map((call, at) => ({ id: `call_${id}_${at}`, index: at, type: "function", function: call }));
      const isCall = script.tools.length > 0;
      const message = {
        ...{ role: "assistant", content: isCall ? null : content },
        ...{ reasoning_content: script.reasoning > 0 ? reasoning : null, tool_calls: isCall ? called : null },
      };
      const inner = isChat ? { message } : { text: content };
      const choices = eachChoice(answer, (index) => choice(index, inner, finish));
      return { ...head, object: head.object.replace(".chunk", ""), choices, usage: usageOf(answer) ?? null };
    },
  };
}
