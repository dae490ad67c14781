import fc from "fast-check";
import { expect, test } from "vitest";
import type { ChoiceDelta, EngineChunk } from "../engines/dialects/dialect.ts";
import { readConventionChunk } from "../engines/dialects/chunk.ts";
import { UsageCount, type UsageLimits } from "./usage-count.ts";

const contextTokens = 100;

function counter(more: Partial<UsageLimits> = {}): UsageCount {
  const tokensMax = contextTokens * (more.choices ?? 1);
  const estimate = { promptTokens: () => 0, tokensPerByte: () => 0 };
  const usual = { contextTokens, tokensMax, choices: 1, usagePerChoice: false, reasons: false, estimate };
  return new UsageCount({ ...usual, ...more });
}

const says = (prompt: unknown, completion: unknown, more: object = {}) => ({ usage: { prompt, completion, ...more } });
const word = (index = 0, more: Partial<EngineChunk> = {}): EngineChunk => ({
  choices: [{ index, content: "x" }],
  ...more,
});
const finish = (index = 0, more: Partial<EngineChunk> = {}): EngineChunk => ({
  choices: [{ index, finish: "stop" }],
  ...more,
});
const final = (prompt: unknown, completion: unknown, more?: object): EngineChunk => ({
  choices: [],
  ...says(prompt, completion, more),
});

function counted(chunks: readonly EngineChunk[], more?: Parameters<typeof counter>[0]) {
  const usage = counter(more);
  for (const chunk of chunks) usage.take(chunk);
  return usage;
}

test("the engine's last usage counts", () => {
  const usage = counted([word(), word(), finish(), final(10, 3, { cached: 4, reasoning: 1 })]);
  expect(usage.finished()).toEqual({
    ...{ promptTokens: 10, completionTokens: 3, cachedTokens: 4, reasoningTokens: 1, source: "engine" },
  });
});

test("a prompt count that is impossible for the prompt's bytes is ignored, even if it fits the window [A2]", () => {
  const usage = counted([word(), finish(), final(11, 3)], { promptTokensMax: 10 });
  expect(usage.finished()).toEqual({ promptTokens: 0, completionTokens: 1, source: "counted" });
});

test("usage in the chunk of the finish counts like usage in its own chunk", () => {
  const usage = counted([word(), finish(0, says(10, 2))]);
  expect(usage.finished()).toEqual({ promptTokens: 10, completionTokens: 2, source: "engine" });
});

test("usage that came with a finish reason is not final if text follows", () => {
  const early: EngineChunk = { choices: [{ index: 0, content: "x", finish: "stop" }], ...says(10, 1) };
  expect(counted([early, word(), word()]).finished()).toEqual({
    ...{ promptTokens: 10, completionTokens: 3, source: "counted" },
  });
  expect(counted([word(), early]).finished()).toEqual({ promptTokens: 10, completionTokens: 1, source: "engine" });
});

const believedPrompt = [word(0, says(10, 1)), word(0, says(10, 2)), finish()];
const implausible: [name: string, chunk: EngineChunk | undefined][] = [
  ["a negative count", final(10, -5)],
  ["an infinite count", final(10, Infinity)],
  ["a count exceeds JavaScript's integers", final(10, 2 ** 53 + 1)],
  ["a fraction", final(10, 2.5)],
  ["text", final(10, "12")],
  ["null", final(10, null)],
  ["nothing at all", undefined],
  ["an empty usage", { choices: [], usage: { prompt: undefined, completion: undefined } }],
  ["a count exceeds the window", final(10, contextTokens + 1)],
  ["the prompt exceeds the window", final(contextTokens + 1, 2)],
  ["the prompt and the answer together exceed the window", final(11, contextTokens - 10)],
  ["a count is lower than an earlier one", final(10, 1)],
];
test.each(implausible)(
  "%s: the tokens of the pieces count instead, and are marked as estimated [A2]",
  (_name, chunk) => {
    const usage = counted(chunk ? [...believedPrompt, chunk] : believedPrompt);
    expect(usage.finished()).toEqual({ promptTokens: 10, completionTokens: 2, source: "counted" });
  },
);

const bounded: [name: string, completion: number, limits: Partial<UsageLimits>, source: string][] = [
  ["as much as was requested", 5, { maxTokens: 5 }, "engine"],
  ["with a token that ends the answer", 6, { maxTokens: 5 }, "engine"],
  ["more than was requested", 7, { maxTokens: 5 }, "counted"],
  ["as much as several answers may be", 12, { maxTokens: 5, choices: 2 }, "engine"],
  ["more than several answers may be", 13, { maxTokens: 5, choices: 2 }, "counted"],
  [
    "one of several answers is longer than one may be",
    7,
    { maxTokens: 5, choices: 2, usagePerChoice: true },
    "counted",
  ],
  ["more than the window, however much was requested", 101, { maxTokens: 1_000 }, "counted"],
];
test.each(bounded)("%s: %i of %j is %s [A2]", (_name, completion, limits, source) => {
  const chunks = [word(0), finish(0), word(1), finish(1), final(10, completion), final(10, completion)];
  const usage = counted(limits.usagePerChoice ? chunks : chunks.slice(0, -1), limits);
  expect(usage.finished()).toMatchObject({
    source,
    completionTokens: source === "engine" ? completion : (limits.choices ?? 1),
  });
});

test("whatever an engine sends, the bill is at most what the router allows, and never negative [A2]", () => {
  const limits = fc.record({ choices: fc.integer({ min: 1, max: 3 }), usagePerChoice: fc.boolean() });
  const tokensMax = fc.integer({ min: 0, max: 3 * contextTokens });
  const tokens = fc.oneof(fc.integer({ min: -2, max: 2 * contextTokens }), fc.constantFrom(undefined, Infinity, "9"));
  const usage = fc.option(fc.record({ prompt: tokens, completion: tokens, reasoning: tokens }), { nil: undefined });
  const choice = fc.record({
    index: fc.nat(3),
    content: fc.constantFrom("", "x"),
    reasoning: fc.constantFrom("", "t"),
  });
  const chunk = fc.record({ choices: fc.array(choice, { maxLength: 2 }), usage });
  const many = fc.array(fc.tuple(chunk, fc.integer({ min: 1, max: 150 })), { maxLength: 8 });
  fc.assert(
    fc.property(limits, tokensMax, many, fc.nat(2 * contextTokens), (given, most, chunks, promptSeen) => {
      const count = counter({ ...given, tokensMax: most });
      for (const [one, times] of chunks)
        for (let n = 0; n < times; n++) count.take(one.usage ? (one as EngineChunk) : { choices: one.choices });
      for (const counts of [count.soFar(), count.soFar(promptSeen), count.finished()]) {
        const { promptTokens, completionTokens, reasoningTokens = 0 } = counts;
        expect(promptTokens + completionTokens).toBeLessThanOrEqual(most);
        expect(Math.min(promptTokens, completionTokens)).toBeGreaterThanOrEqual(0);
        expect(reasoningTokens).toBeLessThanOrEqual(completionTokens);
      }
    }),
  );
});

test("a prompt that exceeds the window is also ignored if several answers may cost more than the window", () => {
  const chunks = [word(0), finish(0), word(1), finish(1)];
  const limits = { choices: 2 };
  const within = counted([...chunks, final(contextTokens, 2)], limits).finished();
  expect(within).toMatchObject({ promptTokens: contextTokens, source: "engine" });
  const beyond = counted([...chunks, final(contextTokens + 1, 2)], limits).finished();
  expect(beyond).toMatchObject({ promptTokens: 0, source: "counted" });
});

test.each([{}, { prompt_tokens: null, completion_tokens: null }, { prompt_tokens: 10 }, { total_tokens: 12 }])(
  "usage of an engine that has counted nothing yet is ignored: %j",
  (usage) => {
    const early = readConventionChunk({ choices: [{ index: 0, delta: { content: "x" } }], usage });
    const counts = counted([early, word(), finish(), final(10, 3)]).finished();
    expect(counts).toEqual({ promptTokens: 10, completionTokens: 3, source: "engine" });
  },
);

test.each([1, 2])(
  "usage in its own chunk in mid-stream counts for its prompt, and the pieces of %i answers count",
  (choices) => {
    const ends = Array.from({ length: choices }, (_, index) => [word(index), word(index), finish(index)]).flat();
    const early = counted([word(), final(10, 1), ...ends], { choices });
    const pieces = 1 + 2 * choices;
    expect(early.finished()).toEqual({ promptTokens: 10, completionTokens: pieces, source: "counted" });
    const both = counted([word(), final(10, 1), ...ends, final(10, pieces + 4)], { choices });
    expect(both.finished()).toEqual({ promptTokens: 10, completionTokens: pieces + 4, source: "engine" });
  },
);

test("of a prompt count that falls, only the lower number counts", () => {
  const usage = counted([...believedPrompt, final(4, 2)]);
  expect(usage.finished()).toEqual({ promptTokens: 4, completionTokens: 2, source: "counted" });
});

test("a count that falls in mid-stream invalidates later counts [A2]", () => {
  const usage = counted([word(0, says(10, 5)), word(0, says(10, 2)), finish(), final(10, 60)]);
  expect(usage.finished()).toEqual({ promptTokens: 10, completionTokens: 2, source: "counted" });
});

test("a repeated usage counts once, and repeated usages of several answers are ignored [A2]", () => {
  const twice = [word(), finish(), final(10, 2), final(10, 2)];
  expect(counted(twice).finished()).toMatchObject({ completionTokens: 2, source: "engine" });
  expect(counted(twice, { usagePerChoice: true }).finished()).toMatchObject({ completionTokens: 1, source: "counted" });
});

test("usages of several answers add up, with the prompt once", () => {
  const chunks = [word(0), finish(0), final(10, 3), word(1), finish(1), final(10, 4)];
  expect(counted(chunks, { choices: 2, usagePerChoice: true }).finished()).toMatchObject({
    ...{ promptTokens: 10, completionTokens: 7, source: "engine" },
  });
  expect(counted(chunks.slice(0, -1), { choices: 2, usagePerChoice: true }).finished()).toMatchObject({
    ...{ completionTokens: 2, source: "counted" },
  });
});

test("an answer that was cut off costs the last count that was read", () => {
  const usage = counter();
  expect(usage.soFar()).toEqual({ promptTokens: 0, completionTokens: 0, source: "counted" });
  usage.take({ choices: [{ index: 0 }], ...says(10, 0) });
  expect(usage.soFar()).toMatchObject({ promptTokens: 10, completionTokens: 0 });
  for (let n = 1; n <= 20; n++) {
    usage.take(word(0, says(10, 3 * n)));
    expect(usage.soFar()).toEqual({ promptTokens: 10, completionTokens: 3 * n, source: "counted" });
  }
});

test.each<[what: string, usageOf: (chunk: number) => object]>([
  ["in the first chunk only", (chunk) => (chunk === 1 ? says(10, 1) : {})],
  ["with zeros after the first chunk", (chunk) => (chunk === 1 ? says(10, 1) : says(0, 0))],
  ["in every tenth chunk", (chunk) => (chunk % 10 === 1 ? says(10, chunk) : {})],
  ["of each chunk alone", () => says(10, 1)],
  ["of the prompt alone", () => says(10, 0)],
])(
  "an answer whose usage comes %s costs its pieces if it was cut off, and reaches its limit [A9]",
  (_what, usageOf) => {
    const usage = counter();
    for (let chunk = 1; chunk <= 50; chunk++) usage.take(word(0, usageOf(chunk)));
    expect(usage.soFar()).toMatchObject({ promptTokens: 10, completionTokens: 50 });
    expect(usage.lengthOf(0)).toBe(50);
    usage.take(finish());
    usage.take(final(10, 55));
    expect(usage.finished()).toMatchObject({ promptTokens: 10, completionTokens: 55, source: "engine" });
  },
);

test("a final count that is far too low for the pieces is ignored [A9]", () => {
  const words = Array.from({ length: 50 }, () => word());
  expect(counted([...words, finish(), final(10, 4)]).finished()).toMatchObject({ completionTokens: 50 });
  // A token of several characters may come character by character.
  expect(counted([...words, finish(), final(10, 5)]).finished()).toMatchObject({ completionTokens: 5 });
});

test("a final usage of zeros leaves the count before it", () => {
  const counts = counted([...believedPrompt.slice(0, -1), finish(0, says(10, 3)), final(0, 0)]).finished();
  expect(counts).toEqual({ promptTokens: 10, completionTokens: 3, source: "engine" });
});

test("without running usage, an answer that was cut off costs the pieces that were read", () => {
  const pieces: Partial<ChoiceDelta>[] = [{ reasoning: "a" }, { content: "b" }, { toolCalls: [{ index: 0 }] }, {}];
  const usage = counted(pieces.map((piece) => ({ choices: [{ index: 0, ...piece }] })));
  expect(usage.soFar()).toEqual({ promptTokens: 0, completionTokens: 3, reasoningTokens: 1, source: "counted" });
});

test("several answers that were cut off cost the same with running sums and with running parts", () => {
  const parts = [word(0, says(10, 1)), word(1, says(10, 1)), word(0, says(10, 2))];
  const sums = [word(0, says(10, 1)), word(1, says(10, 2)), word(0, says(10, 3))];
  for (const chunks of [parts, sums])
    expect(counted(chunks, { choices: 2 }).soFar()).toMatchObject({ promptTokens: 10, completionTokens: 3 });
});

test("reasoning tokens are counted by pieces if the engine does not report them", () => {
  const thought = (usage: object = {}): EngineChunk => ({ choices: [{ index: 0, reasoning: "x" }], ...usage });
  const running = [thought(says(10, 2)), thought(says(10, 5)), word(0, says(10, 6)), finish(), final(10, 6)];
  expect(counted(running).finished()).toMatchObject({ completionTokens: 6, reasoningTokens: 5, source: "engine" });
  const silent = [thought(), thought(), word(), finish(), final(10, 4)];
  expect(counted(silent).finished()).toMatchObject({ completionTokens: 4, reasoningTokens: 2 });
  expect(counted([...silent.slice(0, -1), final(10, 4, { reasoning: 3 })]).finished()).toMatchObject({
    reasoningTokens: 3,
  });
  expect(counted([...silent.slice(0, -1), final(10, 4, { reasoning: 5 })]).finished()).toMatchObject({
    reasoningTokens: 2,
  });
});

test("a reasoning model that did not reason reports no reasoning tokens, and other models report nothing about them [S5.8]", () => {
  const answer = [word(), finish(), final(10, 1)];
  expect(counted(answer, { reasons: true }).finished()).toMatchObject({ reasoningTokens: 0 });
  expect(counted(answer.slice(0, 1), { reasons: true }).soFar()).toMatchObject({ reasoningTokens: 0 });
  expect(counted(answer).finished()).not.toHaveProperty("reasoningTokens");
});

test("numbers that JSON allows but no engine can mean are ignored [A2]", () => {
  for (const tokens of ["-5", "1e400", "9007199254740993", '"12"', "null", "true", "[1]", "{}"]) {
    const usage = counter();
    usage.take(word());
    usage.take(finish());
    usage.take(
      readConventionChunk(
        JSON.parse(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":${tokens}}}`) as Record<
          string,
          unknown
        >,
      ),
    );
    expect(usage.finished()).toEqual({ promptTokens: 0, completionTokens: 1, source: "counted" });
  }
});

const estimate = { promptTokens: () => 40, tokensPerByte: () => 0.25 };

test("a prompt without a count from the engine is estimated once output has begun [A9]", () => {
  const begun = { promptTokens: 40, completionTokens: 1, estimatedTokens: 40, source: "counted" };
  expect(counted([word()], { estimate }).soFar()).toEqual(begun);
  expect(counted([word(), finish()], { estimate }).finished()).toEqual(begun);
  expect(counted([], { estimate }).soFar()).toEqual({ promptTokens: 0, completionTokens: 0, source: "counted" });
});

test("a prompt with a count from the engine is not estimated", () => {
  expect(counted([word(0, says(10, 1))], { estimate }).soFar()).toEqual({
    ...{ promptTokens: 10, completionTokens: 1, source: "counted" },
  });
  expect(counted([word()], { estimate }).soFar(12)).toEqual({
    ...{ promptTokens: 12, completionTokens: 1, source: "counted" },
  });
});

test.each([
  ["beyond the window", final(101, 1)],
  ["of no prompt", final(0, 1)],
  ["of no output", final(10, 0)],
])(
  "after a final count %s the prompt is the estimate or the last plausible count, and never free [A9]",
  (_name, chunk) => {
    const { promptTokens, completionTokens } = counted([word(), finish(), chunk], { estimate }).finished();
    expect([promptTokens, completionTokens]).toEqual([chunk.usage?.completion === 0 ? 10 : 40, 1]);
  },
);

test("no estimate exceeds the window or the router's limit [A9]", () => {
  const large = { promptTokens: () => 1_000, tokensPerByte: () => 1_000 };
  expect(counted([word()], { estimate: large }).soFar()).toMatchObject({ promptTokens: 100, estimatedTokens: 100 });
  const some = counted([word()], { estimate: large, tokensMax: 30 }).soFar();
  expect(some).toMatchObject({ promptTokens: 30, completionTokens: 0, estimatedTokens: 30 });
});

test("pieces that are too large for one token are estimated by their length, and others count one each [A9]", () => {
  const piece = (content: string): EngineChunk => ({ choices: [{ index: 0, content }] });
  const call: EngineChunk = {
    choices: [{ index: 0, toolCalls: [{ index: 0, name: "f".repeat(40), arguments: "x".repeat(160) }] }],
  };
  const none = { ...estimate, promptTokens: () => 0 };
  expect(counted([piece("x".repeat(32))], { estimate: none }).soFar()).toMatchObject({ completionTokens: 1 });
  expect(counted([call], { estimate: none }).soFar()).toEqual({
    ...{ promptTokens: 0, completionTokens: 50, estimatedTokens: 49, source: "counted" },
  });
  expect(counted([call, finish(), final(10, 42)], { estimate: none }).finished()).toMatchObject({
    ...{ completionTokens: 42, source: "engine" },
  });
});
