/**
 * Tests every parameter of embeddings and legacy completions: its range, its refusal, and the parameter that the
 * refusal names.
 */
import { describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { startApi } from "./api-harness.ts";

const api = await forThisFile(startApi());

describe("embeddings", () => {
  const embed = (more: object) => ({ model: "vl-embedding-2b", input: "text", ...more });
  test.each([
    ["one text [S11.1]", {}],
    ["a list of texts [S11.1]", { input: ["a", "b"] }],
    ["2,048 texts [S11.1]", { input: Array.from({ length: 2_048 }, () => "t") }],
    ["dimensions 64 [S11.3]", { dimensions: 64 }],
    ["dimensions 2048 [S11.3]", { dimensions: 2_048 }],
    ["encoding_format float [S11.4]", { encoding_format: "float" }],
    ["encoding_format base64 [S11.4]", { encoding_format: "base64" }],
    ["an instruction [S11.5]", { instruction: "Find the answer." }],
    ["dimensions null, as if absent", { dimensions: null }],
    ["encoding_format null, as if absent", { encoding_format: null }],
    ["instruction null, as if absent", { instruction: null }],
    ["unknown fields", { user: "u", truncate: 5 }],
  ])("accept: %s", async (_sentence, more) => {
    expect((await api.post("/v1/embeddings", embed(more))).status).toBe(200);
  });
  test.each<[sentence: string, more: object, param: string, message?: RegExp]>([
    ["model is required", { model: undefined }, "model"],
    ["an unknown model", { model: "nope" }, "model"],
    ["a language model does not embed [S2.7]", { model: "small-24b" }, "model"],
    ["input is required [S11.1]", { input: undefined }, "input"],
    ["input is not null", { input: null }, "input"],
    ["input is text [S11.1]", { input: 5 }, "input"],
    ["input is not an empty list [S11.1]", { input: [] }, "input"],
    ["input is not an empty text [S11.1]", { input: "" }, "input", /must not be empty/],
    ["no text of a list is empty [S11.1]", { input: ["a", ""] }, "input[1]", /must not be empty/],
    [
      "input is a list of strings, not of tokens [S11.1]",
      { input: [1, 2] },
      "input[0]",
      /check_embedding_ctx_length=False/,
    ],
    ["nor of lists of tokens [S11.1]", { input: [[1, 2]] }, "input[0]", /check_embedding_ctx_length=False/],
    ["more than 2,048 texts [S11.1]", { input: Array.from({ length: 2_049 }, () => "t") }, "input"],
    ["dimensions below 64 [S11.3]", { dimensions: 63 }, "dimensions"],
    ["dimensions above 2048 [S11.3]", { dimensions: 2_049 }, "dimensions"],
    ["dimensions is an integer [S11.3]", { dimensions: 64.5 }, "dimensions"],
    ["encoding_format is float or base64 [S11.4]", { encoding_format: "int8" }, "encoding_format"],
    ["instruction is a string [S11.5]", { instruction: 5 }, "instruction"],
  ])("refuse with 400 and name it: %s", async (_sentence, more, param, message = /./) => {
    const { status, json } = await api.post("/v1/embeddings", embed(more));
    expect([status, json.error.type, json.error.param]).toEqual([400, "invalid_request_error", param]);
    expect(json.error.message).toMatch(message);
  });
});

describe("legacy completions", () => {
  const complete = (more: object) => ({ model: "coder-next", prompt: "Once", max_tokens: 5, ...more });
  const optional = [
    ...["max_tokens", "temperature", "top_p", "stop", "n", "seed", "presence_penalty", "frequency_penalty", "logprobs"],
    ...["stream", "stream_options"],
  ];
  test.each<[sentence: string, more: object]>([
    ["model, prompt and max_tokens [S12.1]", {}],
    ["a stream [S12.2]", { stream: true }],
    ["sampling parameters [S12.2]", { temperature: 1, top_p: 0.5, stop: ["x"], n: 2, seed: 1, logprobs: 5 }],
    ["logprobs 0", { logprobs: 0 }],
    ["logprobs 20", { logprobs: 20 }],
    ["top_p 0", { top_p: 0 }],
    ["the smallest seed of 64 bits", { seed: -(2 ** 63) }],
    ...optional.map((name) => [`${name} null, as if absent`, { [name]: null }] as [string, object]),
    ["an empty prompt", { prompt: "" }],
    ["a prompt as a list of one [S12.1]", { prompt: ["Once"] }],
    ["unknown fields [S12.2]", { best_of: 1, echo: false }],
  ])("accept: %s", async (_sentence, more) => {
    expect((await api.post("/v1/completions", complete(more))).status).toBe(200);
  });
  test.each([
    ["prompt is required [S12.1]", { prompt: undefined }, "prompt"],
    ["prompt is no list of token ids [S12.1]", { prompt: [1, 2] }, "prompt"],
    ["prompt is one text [S12.1]", { prompt: ["a", "b"] }, "prompt"],
    ["prompt is a list of a text", { prompt: [1] }, "prompt[0]"],
    ["model is required", { model: undefined }, "model"],
    ["max_tokens is at least 1 [S12.1]", { max_tokens: 0 }, "max_tokens"],
    ["logprobs is a number here", { logprobs: true }, "logprobs"],
    ["logprobs is an integer", { logprobs: 1.5 }, "logprobs"],
    ["logprobs is at least 0 [S12.2]", { logprobs: -1 }, "logprobs"],
    ["logprobs is at most 20 [S12.2]", { logprobs: 21 }, "logprobs"],
    ["temperature is at most 2", { temperature: 2.1 }, "temperature"],
    ["top_p is at most 1", { top_p: 1.1 }, "top_p"],
    ["stop has at most 64 strings", { stop: Array(65).fill("x") }, "stop"],
    ["n is at most 8, the model's bound", { n: 9 }, "n"],
    ["n is at least 1", { n: 0 }, "n"],
    ["seed is below 2^63", { seed: 2 ** 63 + 2_048 }, "seed"],
    ["presence_penalty is at most 2", { presence_penalty: 2.1 }, "presence_penalty"],
    ["frequency_penalty is at least -2", { frequency_penalty: -2.1 }, "frequency_penalty"],
    ["stream is a boolean", { stream: 1 }, "stream"],
    ["an embedding model does not complete [S2.7]", { model: "vl-embedding-2b" }, "model"],
    ["max_tokens exceeds the context window [S12.1]", { max_tokens: 40_000 }, "max_tokens"],
  ])("refuse with 400 and name it: %s", async (_sentence, more, param) => {
    const { status, json } = await api.post("/v1/completions", complete(more));
    expect([status, json.error.param]).toEqual([400, param]);
  });
});
