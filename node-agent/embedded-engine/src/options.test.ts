import { expect, test } from "vitest";
import { readOptions } from "./options.ts";

const least = ["--model", "/models/some-8b.gguf", "--port", "9000"];

test("a model file and a port are enough", () => {
  expect(readOptions(least, 8)).toEqual({
    modelFile: "/models/some-8b.gguf",
    alias: "some-8b",
    listen: { host: "127.0.0.1", port: 9000 },
    parallel: 4,
    threads: 7,
    embeddings: false,
    gpu: false,
  });
});

test("one processor is left to Node.js, but there is always at least one thread", () => {
  expect(readOptions(least, 2).threads).toBe(1);
  expect(readOptions(least, 1).threads).toBe(1);
  expect(readOptions([...least, "--threads", "2"], 1).threads).toBe(2);
});

test("every option is read", () => {
  const args = ["--model", "x.gguf", "--alias", "tiny", "--socket", "/run/x.sock", "--context", "2048"];
  expect(readOptions([...args, "--parallel", "2", "--embeddings", "--gpu"], 2)).toMatchObject({
    alias: "tiny",
    listen: { path: "/run/x.sock" },
    contextTokens: 2048,
    parallel: 2,
    embeddings: true,
    gpu: true,
  });
});

test.each([
  [[], "--model"],
  [["--model", "x.gguf"], "--port N or --socket"],
  [[...least, "--host", "0.0.0.0"], "not loopback"],
  [["--model", "x.gguf", "--port", "70000"], "--port must be"],
  [[...least, "--parallel", "0"], "--parallel must be"],
  [[...least, "--context", "many"], "--context must be"],
  [[...least, "--colour"], "--colour"],
  [[...least, "--alias"], "--alias"],
])("%j is refused in one line", (args, reason) => {
  const refusal = () => readOptions(args, 2);
  expect(refusal).toThrow(reason);
  expect(refusal).toThrow(/^[^\n]+$/);
});
