/** Engines that report the length of the prompt before a client can have received any output. */
import { expect, test } from "vitest";
import { SseParser } from "@weiche/shared/http/sse.ts";
import { isObject, parseJson } from "@weiche/shared/json.ts";
import { UsageCount, hasText } from "../../src/answer/usage-count.ts";
import { dialects } from "../../src/engines/dialects/all.ts";
import type { DialectName } from "../../src/engines/engine.ts";
import { readRecording } from "./recordings.ts";

const limits = {
  ...{ contextTokens: 4_096, tokensMax: 1_000_000, choices: 2, reasons: false },
  estimate: {
    promptTokens: () => expect.fail("the prompt is estimated"),
    tokensPerByte: () => expect.fail("output is estimated"),
  },
};

/** Recorded with the agent's requests: usage in each event of vLLM, progress and timings of llama-server. */
const recordings: [dialect: DialectName, name: string, promptTokens: number][] = [
  ["llama-server", "68-return-progress", 22],
  ["vllm", "v13-chat-stream-continuous", 17],
  ["vllm", "v16-chat-thinking-on-stream", 17],
  ["vllm", "v18-chat-thinking-cut-stream", 17],
  ["vllm", "v46-chat-n2-stream", 17],
  ["vllm", "v61-tool-stream", 155],
  ["vllm", "v65-tool-named-stream", 155],
  ["vllm", "v70-tool-thinking-stream", 151],
  ["vllm", "v72-tool-required-thinking-stream", 151],
  ["vllm", "v73-tool-named-thinking-stream", 151],
  ["vllm", "v74-tool-logprobs-stream", 155],
  ["vllm", "v81-completion-stream", 3],
];

test.each(recordings)(
  "%s has counted the prompt of %s before its first output: %i tokens [A9]",
  (name, recording, tokens) => {
    const dialect = dialects[name];
    const usage = new UsageCount({ ...limits, usagePerChoice: dialect.usagePerChoice });
    for (const event of new SseParser().push(Buffer.from(readRecording(recording).body))) {
      const data = event.kind === "data" ? parseJson(event.data) : undefined;
      if (!isObject(data)) throw new Error("no output");
      const chunk = dialect.readChunk(data);
      usage.take(chunk);
      if (chunk.choices.some(hasText)) break;
    }
    expect(usage.soFar()).toMatchObject({ promptTokens: tokens });
    expect(usage.soFar().estimatedTokens).toBeUndefined();
  },
);
