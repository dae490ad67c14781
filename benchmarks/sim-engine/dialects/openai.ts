/** An engine that follows the convention in its own way, worded as SGLang does. */
import {
  eachChoice,
  frontMetrics,
  textOf,
  tokenized,
  usageText,
  type Answer,
  type AnswerForm,
  type EngineFigures,
  type Refusal,
  type SimDialect,
} from "../answer.ts";
import type { EngineFacts } from "../engine-facts.ts";
import { asNumber, type FinishReason, type SimRequest } from "../request.ts";

export const openai: SimDialect = {
  listensWhileLoading: false,
  closesAfterStream: false,
  terminatesErrors: true,
  noticesLeaversLate: false,
  canSleep: false,
  ignoresNamedTool: false,
  healthBody: "",
  check,
  refusal(kind, details = {}) {
    switch (kind) {
      case "overflow": {
        const { promptTokens = 40_000, contextTokens = 32_768 } = details;
        return failed(
          400,
          "BadRequest",
          `The input (${promptTokens} tokens) is longer than the model's context length (${contextTokens} tokens).`,
        );
      }
      case "unknown-model":
        return failed(404, "NotFound", "Model not found");
      case "not-found":
        return { status: 404, body: '{"detail":"Not Found"}' };
      case "bad-json":
        return failed(400, "BadRequest", "Invalid JSON");
      case "overloaded":
      case "unavailable":
        return failed(503, "SERVICE_UNAVAILABLE", "The request queue is full.");
      case "dead":
      case "internal":
        return failed(500, "InternalServerError", "Internal server error");
    }
  },
  form,
  eventOf: ({ body }) => `{"error":${body}}`,
  checkInputs(body, tokens, contextTokens) {
    if (body["dimensions"] !== undefined && body["dimensions"] !== null)
      return failed(
        400,
        "BadRequest",
        "Model 'x' does not support matryoshka representation, but dimensions was given.",
      );
    const longest = Math.max(...tokens);
    return longest > contextTokens ? openai.refusal("overflow", { promptTokens: longest, contextTokens }) : undefined;
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
  counted: (path, count, contextTokens) => (path === "/tokenize" ? tokenized(count, contextTokens) : undefined),
  metrics,
};

/** Unwrapped, unlike everybody else's. */
function failed(status: number, type: string, message: string): Refusal {
  return { status, body: JSON.stringify({ object: "error", message, type, param: null, code: status }) };
}

function check({ body, promptTokens }: SimRequest, { contextTokens }: EngineFacts): Refusal | undefined {
  const limit = asNumber(body["max_tokens"]) ?? 0;
  const total = promptTokens + limit;
  if (promptTokens >= contextTokens) return openai.refusal("overflow", { promptTokens, contextTokens });
  if (total <= contextTokens) return undefined;
  return failed(
    400,
    "BadRequest",
    `Requested token count exceeds the model's maximum context length of ${contextTokens} tokens. You requested a total of ${total} tokens: ${promptTokens} tokens from the input messages and ${limit} tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.`,
  );
}

function form(answer: Answer): AnswerForm {
  const { request } = answer;
  const { script } = request;
  const chat = request.kind === "chat";
  const head = `{"id":"${answer.id}","object":"${chat ? "chat.completion.chunk" : "text_completion"}","created":`;
  const event = (inner: string) => {
    const usage = request.continuousUsage ? usageText(answer) : undefined;
    return `${head}${answer.createdSeconds},"model":${JSON.stringify(answer.model)},"choices":[${inner}]${usage === undefined ? "" : `,"usage":${usage}`}}`;
  };
  const choice = (index: number, inner: string, finish?: FinishReason) =>
    `{"index":${index},${inner},"logprobs":null,"finish_reason":${finish ? `"${finish}"` : "null"},"matched_stop":null}`;
  const said = (content: string, more = "") =>
    chat ? `"delta":{"reasoning_content":null,${more}"content":${content}}` : `"text":${content}`;
  return {
    opening: () =>
      chat ? eachChoice(answer).map((index) => event(choice(index, said('""', '"role":"assistant",')))) : [],
    token(index, at, finish) {
      const { kind, text, call = 0, opens } = script.piece(at);
      const json = JSON.stringify(text);
      const id = opens ? `"call_${answer.id}_${index}_${call}"` : "null";
      const name = opens ? JSON.stringify(script.tools[call]) : "null";
      const called = `{"id":${id},"index":${call},"type":"function","function":{"name":${name},"arguments":${json}}}`;
      const inner =
        kind === "content"
          ? said(json)
          : kind === "reasoning"
            ? `"delta":{"reasoning_content":${json},"content":null}`
            : `"delta":{"reasoning_content":null,"content":null,"tool_calls":[${called}]}`;
      const reason = finish === "stop" && kind === "arguments" ? "tool_calls" : finish;
      const last = chat ? '"delta":{"reasoning_content":null}' : '"text":""';
      return [event(choice(index, inner)), ...(reason ? [event(choice(index, last, reason))] : [])];
    },
    finish: (reason) =>
      eachChoice(answer).map((index) =>
        event(choice(index, chat ? '"delta":{"reasoning_content":null}' : '"text":""', reason)),
      ),
    closing() {
      const usage = usageText(answer);
      const model = JSON.stringify(answer.model);
      return request.includeUsage && usage !== undefined
        ? [`${head}${answer.createdSeconds},"model":${model},"choices":[],"usage":${usage}}`]
        : [];
    },
    whole(made, finish) {
      const text = textOf(answer, made);
      const called =
        script.tools.length === 0
          ? null
          : text.calls.map((call, at) => {
              return { id: `call_${answer.id}_${at}`, index: at, type: "function", function: call };
            });
      const reasoning = script.reasoning > 0 ? text.reasoning : null;
      const message = {
        role: "assistant",
        content: called ? null : text.content,
        reasoning_content: reasoning,
        tool_calls: called,
      };
      const one = (index: number) => ({
        index,
        ...(chat ? { message } : { text: text.content }),
        logprobs: null,
        finish_reason: finish,
        matched_stop: null,
      });
      const object = chat ? "chat.completion" : "text_completion";
      return `{"id":"${answer.id}","object":"${object}","created":${answer.createdSeconds},"model":${JSON.stringify(answer.model)},"choices":${JSON.stringify(eachChoice(answer).map(one))},"usage":${usageText(answer) ?? "null"}}`;
    },
  };
}

function metrics(model: string, figures: EngineFigures): string {
  const line = (name: string, type: string, value: number) =>
    `# TYPE sglang:${name} ${type}\nsglang:${name}{model_name="${model}"} ${value}\n`;
  return (
    frontMetrics(figures) +
    line("num_running_reqs", "gauge", figures.running) +
    line("num_queue_reqs", "gauge", figures.waiting) +
    line("token_usage", "gauge", Math.min(1, figures.running / figures.maxRunning)) +
    line("prompt_tokens_total", "counter", figures.promptTokens) +
    line("generation_tokens_total", "counter", figures.generatedTokens)
  );
}
