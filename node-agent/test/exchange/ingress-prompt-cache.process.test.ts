/** Tests which requests may share prompts in an engine's cache, and which clients see the number of cached tokens. */
import { expect, test } from "vitest";
import type { CachePrompts, DialectName } from "../../src/engines/engine.ts";
import { Rig } from "./ingress-rig.ts";
import { delta, done, event, usageOf } from "./scripted-engine.ts";

const usage = { ...usageOf(67, 1), prompt_tokens_details: { cached_tokens: 66 } };
const stream = delta({ content: "x" }, "stop") + event({ choices: [], usage }) + done;

type Told = { readonly cache_salt?: unknown; readonly cache_prompt?: unknown };
const ofAccount = "account-1";
const ofRequest = "its request's id";
const cases: [dialect: DialectName, mode: CachePrompts | undefined, told: Told, isShown: boolean][] = [
  ["vllm", undefined, { cache_salt: ofAccount }, true],
  ["vllm", "per-account", { cache_salt: ofAccount }, true],
  ["vllm", "off", { cache_salt: ofRequest }, true],
  ["vllm", "shared", {}, true],
  ["openai", undefined, { cache_salt: ofAccount }, false],
  ["openai", "off", { cache_salt: ofRequest }, false],
  ["openai", "shared", {}, true],
  ["llama-server", undefined, { cache_prompt: false }, false],
  ["llama-server", "off", { cache_prompt: false }, false],
  ["llama-server", "shared", { cache_prompt: true }, true],
];

test.each(cases)(
  "%s, cachePrompts %s: it gets %j, cached tokens are shown: %s [D10]",
  async (dialect, mode, told, isShown) => {
    await using rig = await Rig.open(stream, { dialect, cachePrompts: mode });
    const long = { role: "user", content: "x ".repeat(600_000) };
    // A prompt that is long enough to be read and written in another thread.
    const third = mode === "off" ? { messages: [long] } : {};
    const bodies = [{}, { stream: true, stream_options: { include_usage: true } }, third];
    const asked = bodies.map(async (body) => await rig.chat(body).answer);
    for (const { status, text } of await Promise.all(asked)) {
      expect(status).toBe(200);
      expect(text.includes('"cached_tokens":66')).toBe(isShown);
      expect(text).toContain('"prompt_tokens":67');
    }
    for (const { headers, body } of rig.engine.saw) {
      const id = /x-request-id: (\S+)/i.exec(headers)![1];
      const fields = Object.entries(body).filter(([name]) => name.startsWith("cache_"));
      const said = fields.map(([name, value]) => [name, value === id ? ofRequest : value] as const);
      expect(Object.fromEntries(said)).toEqual(told);
    }
    await rig.quiet();
    expect(rig.outbox.records.map(({ promptTokens, cachedTokens }) => [promptTokens, cachedTokens])).toEqual(
      Array(3).fill([67, 66]),
    );
  },
);
