/** Answers to chats by the real process of the embedded engine. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask, chatWith, greedy, joined, type Message } from "./embedded-chat.ts";
import { metricsOf, post, startEngine, type EngineProcess } from "./embedded-process.ts";

let engine: EngineProcess;
let small: EngineProcess;
let { chat, message, chunksOf } = chatWith("");

beforeAll(async () => {
  [engine, small] = await Promise.all([startEngine(), startEngine(["--context", "128", "--parallel", "1"])]);
  ({ chat, message, chunksOf } = chatWith(engine.url));
});
afterAll(async () => {
  await engine[Symbol.asyncDispose]();
  await small[Symbol.asyncDispose]();
});

describe("chat", () => {
  test("an answer ends by itself, and its tokens are counted as the engine counts them", async () => {
    const before = await metricsOf(engine.url);
    const answer = await chat(ask("Who are you?"));
    const after = await metricsOf(engine.url);
    expect(answer).toMatchObject({ object: "chat.completion", model: "tiny", choices: [{ finish_reason: "stop" }] });
    expect(answer.choices[0]!.message.content).toMatch(/weiche-tiny/);
    const { prompt_tokens, completion_tokens, total_tokens } = answer.usage!;
    expect(prompt_tokens).toBe(after["prompt_tokens_total"]! - before["prompt_tokens_total"]!);
    expect(completion_tokens).toBe(after["generation_tokens_total"]! - before["generation_tokens_total"]!);
    expect(total_tokens).toBe(prompt_tokens + completion_tokens);
  });

  test("a stream contains the same: role, pieces, one finish, usage", async () => {
    const answer = await chat(ask("Who are you?"));
    const chunks = await chunksOf(ask("Who are you?"));
    expect(chunks[0]!.choices[0]!.delta).toEqual({ role: "assistant", content: "" });
    expect(joined(chunks, "content")).toBe(answer.choices[0]!.message.content);
    expect(chunks.map(({ choices }) => choices[0]?.finish_reason).filter(Boolean)).toEqual(["stop"]);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: answer.usage!.completion_tokens } });
    expect(chunks.slice(0, -1).filter(({ usage }) => usage)).toEqual([]);
  });

  test("max_tokens ends an answer, and the conversation continues from the tokens in the engine's context [S4.3]", async () => {
    const first = await chat({ ...ask("Count from 1 to 100."), max_tokens: 7 });
    expect(first).toMatchObject({ choices: [{ finish_reason: "length" }], usage: { completion_tokens: 7 } });
    const said = [ask("Count from 1 to 100.").messages[0], first.choices[0]!.message, { role: "user", content: "On." }];
    const second = await chat({ ...greedy, messages: said, max_tokens: 1 });
    expect(second.usage!.prompt_tokens_details!.cached_tokens).toBeGreaterThan(10);
  });

  test("a stop string ends the answer and is not shown [S4.9]", async () => {
    const others = Array(62).fill("never said");
    const answer = await chat({ ...ask("Count from 1 to 100."), stop: [...others, "12", "5, "] });
    expect(answer.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "1, 2, 3, 4, " } });
    expect(answer.usage!.completion_tokens).toBeLessThan(30);
  });

  test("a seed repeats an answer, and without one they differ [S4.11]", async () => {
    const story = { ...ask("Tell me a very long story about a dragon."), temperature: 1.5, max_tokens: 40 };
    const twice = await Promise.all([message({ ...story, seed: 7 }), message({ ...story, seed: 7 })]);
    expect(twice[0]!.content).toBe(twice[1]!.content);
    const others = await Promise.all([1, 2, 3, 4].map(() => message(story)));
    expect(new Set(others.map(({ content }) => content)).size).toBeGreaterThan(1);
  });

  test("penalties make repetitions less likely", async () => {
    const count = { ...ask("Count from 1 to 100."), max_tokens: 12, logprobs: true };
    const repeated = async (penalty: object) => {
      const { logprobs } = (await chat({ ...count, ...penalty })).choices[0]!;
      const text = logprobs!.content!.map(({ token }) => token);
      return logprobs!.content!.find(({ token }, index) => text.indexOf(token) < index)!.logprob;
    };
    const [plain, frequency, presence] = await Promise.all([
      repeated({}),
      repeated({ frequency_penalty: 1.5 }),
      repeated({ presence_penalty: 1.5 }),
    ]);
    expect(frequency).toBeLessThan(plain);
    expect(presence).toBeLessThan(plain);
  });

  test("several choices are numbered and counted together, with their prompt once [S4.10]", async () => {
    const three = { ...ask("Tell me a very long story about a dragon."), temperature: 1, seed: 1, n: 3, max_tokens: 5 };
    const answer = await chat(three);
    expect(answer.choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    const one = await chat({ ...three, n: 1 });
    expect(answer.usage).toMatchObject({ prompt_tokens: one.usage!.prompt_tokens, completion_tokens: 15 });
    const chunks = await chunksOf(three);
    const finished = chunks.flatMap(({ choices }) => choices.filter(({ finish_reason }) => finish_reason));
    expect(finished.map(({ index }) => index).toSorted((a, b) => a - b)).toEqual([0, 1, 2]);
    expect(chunks.at(-1)!.usage!.completion_tokens).toBe(15);
  });

  test("log probabilities are beside the content, in OpenAI's shape [S4.13]", async () => {
    const wish = { ...ask("What's the capital of Norway?"), logprobs: true, top_logprobs: 3 };
    const { message: said, logprobs } = (await chat(wish)).choices[0]!;
    expect(logprobs!.content!.map(({ token }) => token).join("")).toBe(said.content);
    for (const { token, logprob, bytes, top_logprobs } of logprobs!.content!) {
      expect(logprob).toBeLessThanOrEqual(0);
      expect(Buffer.from(bytes!).toString()).toBe(token);
      expect(top_logprobs).toHaveLength(3);
      expect(top_logprobs[0]).toMatchObject({ token, logprob });
    }
    const streamed = (await chunksOf(wish)).flatMap(
      ({ choices }) => (choices[0]?.logprobs as { content: { token: string }[] } | null)?.content ?? [],
    );
    expect(streamed.map(({ token }) => token).join("")).toBe(said.content);
  });

  test("the spelling of a control token in a client's text stays text", async () => {
    const tokens = async (content: string) => (await chat({ ...ask(content), max_tokens: 1 })).usage!.prompt_tokens;
    const [plain, spelt] = await Promise.all([tokens("ab"), tokens("a<|im_end|>b")]);
    expect(spelt - plain).toBeGreaterThan(3);
  });

  test("a prompt that exceeds the context is refused with both counts, streamed or not [S19.6]", async () => {
    const long = { messages: [{ role: "user", content: "one two three ".repeat(60) }] };
    for (const stream of [true, false]) {
      const answer = await post(small.url, "/v1/chat/completions", { ...long, stream });
      expect(answer.status).toBe(400);
      const { error } = (await answer.json()) as { error: { n_prompt_tokens: number; message: string } };
      expect(error).toMatchObject({ type: "exceed_context_size_error", n_ctx: 128 });
      expect(error.n_prompt_tokens).toBeGreaterThan(180);
      expect(error.message).toMatch(new RegExp(`${error.n_prompt_tokens} tokens.* 128 tokens`));
    }
  });

  test("a huge prompt is refused without delaying other requests", async () => {
    const huge = post(engine.url, "/v1/chat/completions", {
      messages: [{ role: "user", content: "x y ".repeat(2e6) }],
    });
    const longest = { ms: 0 };
    let running = true;
    const polling = (async () => {
      while (running) {
        const start = performance.now();
        await fetch(`${engine.url}/health`);
        longest.ms = Math.max(longest.ms, performance.now() - start);
      }
    })();
    expect((await huge).status).toBe(400);
    running = false;
    await polling;
    expect(longest.ms).toBeLessThan(1_000);
  });

  test("the answer may fill the context, and ends there [S4.6]", async () => {
    const answer = await post(small.url, "/v1/chat/completions", { ...ask("Count from 1 to 100."), max_tokens: 5000 });
    expect(await answer.json()).toMatchObject({ choices: [{ finish_reason: "length" }], usage: { total_tokens: 128 } });
  });
});

describe("thinking", () => {
  const sum = ask("Tom has 9 apples and gives 4 to Lena. How many apples are left?");

  test.each([{ reasoning_effort: "low" }, { chat_template_kwargs: { enable_thinking: true } }])(
    "on by %j",
    async (on) => {
      const answer = await chat({ ...sum, ...on });
      const { content, reasoning_content } = answer.choices[0]!.message as Message;
      expect(reasoning_content).not.toBe("");
      expect(`${content}${reasoning_content}`).not.toMatch(/<\/?think>/);
      const { completion_tokens, completion_tokens_details } = answer.usage!;
      expect(completion_tokens_details!.reasoning_tokens).toBeGreaterThan(3);
      expect(completion_tokens_details!.reasoning_tokens).toBeLessThan(completion_tokens);
      const chunks = await chunksOf({ ...sum, ...on });
      expect([joined(chunks, "reasoning_content"), joined(chunks, "content")]).toEqual([reasoning_content, content]);
    },
  );

  test("is off by default", async () => {
    for (const off of [{}, { reasoning_effort: "none" }, { chat_template_kwargs: { enable_thinking: false } }])
      expect(await message({ ...sum, ...off })).not.toHaveProperty("reasoning_content");
  });

  test("that uses up the tokens leaves no content [S5.4 S7.6]", async () => {
    const answer = await chat({ ...sum, reasoning_effort: "low", max_tokens: 4 });
    expect(answer.choices[0]).toMatchObject({ finish_reason: "length", message: { content: null } });
    expect(answer.usage!.completion_tokens_details!.reasoning_tokens).toBe(4);
  });
});
