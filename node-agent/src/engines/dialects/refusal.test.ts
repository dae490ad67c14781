import { expect, test } from "vitest";
import type { EngineRefusal } from "./dialect.ts";
import { readConventionRefusal } from "./refusal.ts";

const vllm = (message: string, param: string | null = null) => ({
  error: { message, type: "BadRequestError", param, code: 400 },
});
const sglang = (message: string) => ({ object: "error", message, type: "BadRequest", param: null, code: 400 });

const overflows: [
  engine: string,
  status: number,
  body: unknown,
  promptTokens: number | undefined,
  contextTokens: number | undefined,
  promptTokensMin?: number,
][] = [
  [
    "vLLM",
    400,
    vllm(
      "This model's maximum context length is 4096 tokens. However, you requested 100 output tokens and your prompt contains at least 3997 input tokens, for a total of at least 4097 tokens.",
      "input_tokens",
    ),
    undefined,
    4096,
    3997,
  ],
  [
    "vLLM by characters",
    400,
    vllm(
      "This model's maximum context length is 4096 tokens. However, you requested 0 output tokens and your prompt contains 900000 characters (more than 131072 characters, which is the upper bound for 4096 input tokens).",
      "input_text",
    ),
    undefined,
    4096,
  ],
  [
    "vLLM by its limit",
    400,
    vllm(
      "max_completion_tokens=99999 cannot be greater than max_model_len=max_total_tokens=4096. Please request fewer output tokens.",
      "max_completion_tokens",
    ),
    undefined,
    4096,
  ],
  ["vLLM with a full window", 400, vllm("max_tokens must be at least 1, got 0."), undefined, undefined],
  [
    "older vLLM",
    400,
    vllm(
      "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages, Please reduce the length of the messages.",
    ),
    5000,
    4096,
  ],
  [
    "vLLM's Rust front",
    400,
    vllm("this model's maximum context length is 8192 tokens, but the prompt contains 9000 input tokens"),
    9000,
    8192,
  ],
  [
    "llama-server",
    400,
    {
      error: {
        code: 400,
        message: "request (1520 tokens) exceeds the available context size (1024 tokens), try increasing it",
        type: "exceed_context_size_error",
        n_prompt_tokens: 1520,
        n_ctx: 1024,
      },
    },
    1520,
    1024,
  ],
  [
    "llama-server's text alone",
    400,
    { error: { message: "request (1520 tokens) exceeds the available context size (1024 tokens), try increasing it" } },
    1520,
    1024,
  ],
  [
    "llama-server's embeddings",
    500,
    {
      error: {
        code: 500,
        message:
          "input (902 tokens) is too large to process. increase the physical batch size (current batch size: 512)",
        type: "server_error",
      },
    },
    902,
    512,
  ],
  [
    "SGLang",
    400,
    sglang("The input (5000 tokens) is longer than the model's context length (4096 tokens)."),
    5000,
    4096,
  ],
  [
    "SGLang with a limit",
    400,
    sglang(
      "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5096 tokens: 5000 tokens from the input messages and 96 tokens for the completion.",
    ),
    5000,
    4096,
  ],
  [
    "TEI",
    422,
    { message: "`inputs` must have less than 512 tokens. Given: 600", code: 422, type: "Validation" },
    600,
    512,
  ],
  [
    "OpenAI",
    400,
    {
      error: {
        message: "This model's maximum context length is 4097 tokens. However, your messages resulted in 5000 tokens.",
        code: "context_length_exceeded",
      },
    },
    5000,
    4097,
  ],
  [
    "the embedded engine",
    400,
    {
      error: {
        message: "the prompt has 70 tokens, which exceeds the available context size of 64 tokens",
        type: "exceed_context_size_error",
        n_prompt_tokens: 70,
        n_ctx: 64,
      },
    },
    70,
    64,
  ],
];
test.each(overflows)(
  "%s is understood as a prompt that is too long",
  (_engine, status, body, promptTokens, contextTokens, promptTokensMin) => {
    expect(readConventionRefusal(status, body)).toEqual({
      kind: "context",
      promptTokens,
      promptTokensMin,
      contextTokens,
    });
  },
);

const others: [name: string, status: number, body: unknown, refusal: EngineRefusal][] = [
  ["an unknown model", 404, vllm("The model `x` does not exist."), { kind: "failed", reason: "unknown model" }],
  ["a wrong key, reported as a string", 401, { error: "Unauthorized" }, { kind: "failed", reason: "key refused" }],
  [
    "a wrong value with its name",
    400,
    vllm("temperature must be non-negative", "temperature"),
    { kind: "invalid", param: "temperature" },
  ],
  ["a wrong value with its place", 400, vllm("x", "body.messages"), { kind: "invalid", param: "messages" }],
  ["a wrong value with a name of the engine's own", 400, vllm("x", "body.cache_salt"), { kind: "invalid" }],
  ["a wrong value, unwrapped", 400, sglang("bad"), { kind: "invalid" }],
  ["validation", 422, { error: "batch size", error_type: "Validation" }, { kind: "invalid" }],
  [
    "an image for a model that cannot see",
    500,
    { error: { message: "image input is not supported - hint" } },
    { kind: "invalid" },
  ],
  [
    "an endpoint of another kind of model",
    501,
    { error: { message: "does not support embeddings" } },
    { kind: "invalid" },
  ],
  [
    "loading",
    503,
    { error: { message: "Loading model", type: "unavailable_error", code: 503 } },
    { kind: "overloaded" },
  ],
  ["a full queue", 429, { message: "Model is overloaded", code: 429, type: "overloaded" }, { kind: "overloaded" }],
  ["a broken backend", 424, { message: "backend" }, { kind: "failed", reason: "engine error" }],
  [
    "a dead engine",
    500,
    { error: { message: "EngineCore encountered an issue", type: "InternalServerError", code: 500 } },
    { kind: "failed", reason: "core died" },
  ],
  [
    "a crash that quotes a context",
    500,
    { error: { message: "maximum context length is 12 tokens" } },
    { kind: "failed", reason: "engine error" },
  ],
  ["no JSON", 502, undefined, { kind: "failed", reason: "engine error" }],
  ["an error that is a number", 400, { error: 7 }, { kind: "invalid" }],
];
test.each(others)("%s is understood", (_name, status, body, refusal) => {
  expect(readConventionRefusal(status, body)).toEqual(refusal);
});

const overflow = "maximum context length is 4096 tokens";
const long: [name: string, message: string, refusal: EngineRefusal][] = [
  ["an overflow at its beginning", overflow.padEnd(256 << 10, "x"), { kind: "context", contextTokens: 4096 }],
  ["an overflow after its first 2 KB", overflow.padStart(256 << 10, "x"), { kind: "invalid" }],
];
test.each(long)(
  "only the first 2 KB of a message of 256 KB are read: %s",
  { timeout: 10_000 },
  (_name, message, refusal) => {
    expect(readConventionRefusal(400, vllm(message))).toEqual(refusal);
  },
);

const digits = "1".repeat(256 << 10);
test.each(["", " tokens in the messages", " tokens. Given: 5"])(
  "256 KB of digits, then '%s', mean that a prompt is too long, without numbers",
  { timeout: 10_000 },
  (end) => {
    const error = { type: "exceed_context_size_error", message: digits + end };
    expect(readConventionRefusal(400, { error })).toEqual({ kind: "context" });
  },
);

test("a number that no window can have is ignored", () => {
  const message = `maximum context length is ${2 ** 31} tokens: ${"8".repeat(11)} tokens in the messages`;
  expect(readConventionRefusal(400, vllm(message))).toEqual({ kind: "context" });
  const error = { type: "exceed_context_size_error", n_prompt_tokens: 2 ** 31, n_ctx: 2 ** 31 - 1 };
  expect(readConventionRefusal(400, { error })).toEqual({ kind: "context", contextTokens: 2 ** 31 - 1 });
});
