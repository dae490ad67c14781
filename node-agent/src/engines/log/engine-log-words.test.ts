import { expect, test } from "vitest";
import { knownWords } from "./engine-log-words.ts";

const lines: readonly (readonly [line: string, kept: string | undefined])[] = [
  // llama-server 0.5.0
  [
    "WARNING: JSON schema conversion was incomplete: Pattern must start with '^': canary",
    "WARNING JSON schema conversion was incomplete",
  ],
  ["parse: error parsing grammar: expecting newline or end at canary", "error parsing grammar"],
  ['root ::= "{" space canary-kv "}" space', undefined],
  ['E srv    operator(): got exception: {"error":{"message":"canary"}}', "got exception"],
  ["/llama.cpp/ggml/src/ggml-cuda/ggml-cuda.cu:102: CUDA error", "CUDA error"],
  // vLLM 0.32.0
  [
    "(EngineCore pid=12) ERROR 11-23 01:02:03 [core.py:1100] EngineCore encountered a fatal error.",
    "ERROR 11-23 01:02:03 EngineCore encountered a fatal error",
  ],
  ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "OutOfMemoryError … out of memory"],
  [
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "RuntimeError … CUDA error … an illegal memory access was encountered",
  ],
  ['INFO:     127.0.0.1:53312 - "POST /v1/chat/completions HTTP/1.1" 200 OK', undefined],
  ["ValueError: canary ValueError", "ValueError"],
  ["canaryValueErrorcanary", undefined],
];

test.each(lines)("the log keeps %j as %j", (line, kept) => {
  expect(knownWords(line)).toBe(kept);
});
