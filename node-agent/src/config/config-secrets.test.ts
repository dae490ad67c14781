import { expect, test } from "vitest";
import { checkAgentText } from "./config.ts";
import { secretOf } from "./config-secrets.ts";

const engine = { model: "m", dialect: "vllm", command: ["vllm", "serve", "m", "--port", "{port}"] };

test.each<[what: string, more: object, secret: RegExp]>([
  ["a token for downloads", { env: { HF_TOKEN: "x" } }, /env\.HF_TOKEN of m in slot a/],
  ["an engine's key", { command: [...engine.command, "--api-key", "x"] }, /--api-key/],
  ["an engine's key, as one word", { command: [...engine.command, "--api-key=x"] }, /--api-key of/],
  ["a password of an external engine", { launcher: "external", url: "http://u:p@gpu:8000", command: undefined }, /url/],
  ["words that only sound similar", { env: { TOKENIZERS_PARALLELISM: "false", KEYS: "1" } }, /^none$/],
  ["flags that only sound similar", { command: [...engine.command, "--max-num-batched-tokens", "8"] }, /^none$/],
  ["no secret", {}, /^none$/],
])("%s", (_what, more, secret) => {
  const { value, mistakes } = checkAgentText(
    JSON.stringify({ node: "n", slots: [{ name: "a", engines: [{ ...engine, ...more }] }] }),
  );
  expect(mistakes).toEqual([]);
  expect(secretOf(value!) ?? "none").toMatch(secret);
});
