/** Models that differ from the tiny one, made by changing its file. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { post, startEngine, tinyModel, type EngineProcess } from "./embedded-process.ts";

let directory: string;
beforeAll(async () => void (directory = await mkdtemp(join(tmpdir(), "weiche-models-"))));
afterAll(() => rm(directory, { recursive: true }));

async function startChanged(change: (file: Buffer) => void, args: readonly string[] = []): Promise<EngineProcess> {
  const file = await readFile(tinyModel);
  change(file);
  const path = join(directory, "changed.gguf");
  await writeFile(path, file);
  return startEngine([...args, "--model", path]);
}

/** Renames a key, so that nothing reads it. */
function forget(file: Buffer, key: string): void {
  const at = file.indexOf(key);
  expect(at).toBeGreaterThan(0);
  file.write("x", at + key.length - 1);
}

async function ask(engine: EngineProcess, body: object) {
  const messages = [{ role: "user", content: "What is the weather in Hamburg?" }];
  const answer = await post(engine.url, "/v1/chat/completions", { temperature: 0, messages, ...body });
  return (await answer.json()) as { choices: { finish_reason: string; message: Record<string, unknown> }[] };
}

test("tags of reasoning and calls are also found if they are control tokens", async () => {
  await using engine = await startChanged((file) => {
    const key = "tokenizer.ggml.token_type";
    // The key is followed by the type of the value, the type of its items, their number, then 32 bits each.
    const types = file.indexOf(key) + key.length + 4 + 4 + 8;
    const [think, toolCallEnd, control] = [2042, 2045, 3];
    for (let token = think; token <= toolCallEnd; token++) file.writeInt32LE(control, types + token * 4);
  });
  const tools = [{ type: "function", function: { name: "get_weather", parameters: { type: "object" } } }];
  const { choices } = await ask(engine, { tools, reasoning_effort: "low" });
  expect(choices[0]).toMatchObject({
    finish_reason: "tool_calls",
    message: { content: null, reasoning_content: expect.stringMatching(/^\w/), tool_calls: [{ type: "function" }] },
  });
});

test("a model without a chat template gets a plain one", async () => {
  await using engine = await startChanged((file) => forget(file, "tokenizer.chat_template"));
  const { choices } = await ask(engine, { max_tokens: 20 });
  expect(choices[0]!.message["content"]).not.toBe("");
});

test("a model without a pooling type gets the mean", async () => {
  const vector = async (engine: EngineProcess) => {
    const answer = await post(engine.url, "/v1/embeddings", { input: "The dog runs across the meadow." });
    return ((await answer.json()) as { data: { embedding: number[] }[] }).data[0]!.embedding;
  };
  await using silent = await startChanged((file) => forget(file, "qwen3.pooling_type"), ["--embeddings"]);
  await using told = await startEngine(["--embeddings"]);
  expect(await vector(silent)).toEqual(await vector(told));
});
