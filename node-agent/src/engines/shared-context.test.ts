import { expect, test } from "vitest";
import { limitToContext, sharedContext } from "./shared-context.ts";

const on = (line: string, env: Record<string, string> = {}) => sharedContext({ words: line.split(" "), env });

test.each<[string, ReturnType<typeof sharedContext>]>([
  ["llama-server -m x", { because: "no -np" }],
  ["llama-server -m x -c 8192", { because: "no -np", tokens: 8_192 }],
  ["llama-server -np -1", { because: "no -np" }],
  ["llama-server --no-kv-unified", { because: "no -np" }],
  ["llama-server -np 4", undefined],
  ["llama-server --parallel 4 -c 8192", undefined],
  ["llama-server -np 4 -kvu", { because: "-kvu" }],
  ["llama-server -np 4 --kv_unified --ctx_size 8192", { because: "-kvu", tokens: 8_192 }],
  ["llama-server -np 4 -kvu -no-kvu", undefined],
  ["llama-server -np 1 -kvu", undefined],
  ["llama-server -np 4 -c 0 -kvu", { because: "-kvu" }],
  ["llama-server -np 4 -kvu --kv-unified-per-slot 2048", undefined],
  ["llama-server -np 4 -kvu --kv-unified-per-slot 2048 -c 4096", { because: "-kvu", tokens: 4_096 }],
  ["llama-server -np 8 -np 4", undefined],
  ["llama-server -np 4 -kvu -c 8192 --embeddings", undefined],
])("whether the slots of '%s' share one context", (line, shared) => {
  expect(on(line)).toEqual(shared);
});

test("the environment counts if the command does not set it", () => {
  expect(on("llama-server", { LLAMA_ARG_N_PARALLEL: "4" })).toBeUndefined();
  expect(on("llama-server", { LLAMA_ARG_N_PARALLEL: "4", LLAMA_ARG_KV_UNIFIED: "true" })).toEqual({ because: "-kvu" });
  expect(on("llama-server -np 4 --no-kv-unified", { LLAMA_ARG_KV_UNIFIED: "1" })).toBeUndefined();
  expect(on("llama-server", { LLAMA_ARG_CTX_SIZE: "4096" })).toEqual({ because: "no -np", tokens: 4_096 });
});

test("of slots that share a context, as many are used as can be full", () => {
  const said = { windowTokens: 2_048, parallelMax: 4 };
  expect(limitToContext(said, { because: "no -np" })).toEqual({ ...said, parallelMax: 1, sharedSlots: 4 });
  // Each slot is limited to the model's training context, or to its own limit.
  expect(limitToContext(said, { because: "-kvu", tokens: 5_000 })).toEqual({ ...said, parallelMax: 2, sharedSlots: 4 });
  expect(limitToContext(said, { because: "-kvu", tokens: 8_192 })).toEqual(said);
  expect(limitToContext({ parallelMax: 4 }, { because: "-kvu" }), "an engine without reported limits").toEqual({
    parallelMax: 4,
  });
});
