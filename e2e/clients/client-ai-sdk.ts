/** Tests of the calls that users of the Vercel AI SDK make, with its provider for compatible services. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, embed, embedMany, generateText, isStepCount, jsonSchema, Output, streamText, tool } from "ai";
import { describe, expect, test } from "vitest";
import { personSchema, png, simulated, weatherParameters } from "./client-service.ts";
import type { Key, Person, Service, Subject } from "./client-service.ts";

export function providerOf({ baseUrl, keys }: Service, key: Key = "all", options: object = {}) {
  const settings = { name: "weiche", baseURL: baseUrl, apiKey: keys[key], includeUsage: true };
  return createOpenAICompatible({ ...settings, supportsStructuredOutputs: true, ...options });
}

type Facts = [statusCode: number, isRetryable: boolean, message: RegExp];
type Refusal = [name: string, key: Key, model: string, prompt: string, ...facts: Facts];

const factsOf = (...[statusCode, isRetryable, message]: Facts): object => ({
  ...{ statusCode, isRetryable, message: expect.stringMatching(message) },
  data: { error: { code: expect.any(String) } },
});

export function describeAiSdk(service: () => Service, subjects: readonly Subject[]): void {
  const errorOf = (key: Key, model: string, prompt: string): Promise<unknown> =>
    generateText({ model: providerOf(service(), key)(model), prompt, maxRetries: 0 }).catch(
      (reason: unknown) => reason,
    );

  describe.each(subjects)("the AI SDK with $name", (subject) => {
    const { model, embeddingModel, dimensions, smallTalk, weather, person } = subject;
    const provider = () => providerOf(service());
    const silent = () => ({
      ...{ model: provider()(model), temperature: 0, maxRetries: 0 },
      providerOptions: { weiche: { reasoningEffort: "none" } },
    });

    test("chats, streams the same text, and gets the usage of both [S1.11]", async () => {
      const request = { ...silent(), prompt: smallTalk };
      const { text, finishReason, usage, reasoningText } = await generateText(request);
      expect([finishReason, text.length > 0, reasoningText]).toEqual(["stop", true, undefined]);
      const streamed = streamText(request);
      expect((await Array.fromAsync(streamed.textStream)).join("")).toBe(text);
      const { inputTokens, outputTokens, totalTokens } = usage;
      expect(inputTokens! + outputTokens!).toBe(totalTokens);
      expect(await streamed.totalUsage).toMatchObject({ inputTokens, outputTokens, totalTokens });
    });

    test("separates reasoning from the answer, in one body and in a stream [S5.8 S7.1 S7.5]", async () => {
      const request = { model: provider()(model), temperature: 0, prompt: smallTalk };
      const { text, reasoningText, usage } = await generateText(request);
      expect([text.length > 0, reasoningText!.length > 0]).toEqual([true, true]);
      expect(usage.outputTokenDetails.reasoningTokens).toBeGreaterThan(0);
      const pieces = { "reasoning-delta": "", "text-delta": "" };
      for await (const part of streamText(request).fullStream)
        if (part.type === "reasoning-delta" || part.type === "text-delta") pieces[part.type] += part.text;
      expect(pieces).toEqual({ "reasoning-delta": reasoningText, "text-delta": text });
    });

    test.each([false, true])("calls a tool and continues to the final answer (stream: %s) [S8.5]", async (stream) => {
      const cities: string[] = [];
      const get_weather = tool({
        description: "Get the weather of a city",
        inputSchema: jsonSchema<{ city: string }>(weatherParameters),
        execute: ({ city }) => (cities.push(city), { temperature: 17, condition: "cloudy" }),
      });
      const request = { ...silent(), prompt: weather, tools: { get_weather }, stopWhen: isStepCount(3) };
      const text = stream ? await streamText(request).text : (await generateText(request)).text;
      expect(text.length).toBeGreaterThan(3);
      expect(cities).toEqual([expect.stringMatching(/\w/)]);
    });

    test("parses structured output [S9.1]", async () => {
      const output = Output.object({ schema: jsonSchema<Person>(personSchema), name: "person" });
      const { output: parsed } = await generateText({ ...silent(), prompt: person, output });
      expect(parsed).toMatchObject({ name: expect.any(String), age: expect.any(Number) });
      expect(["Kassel", "Bonn"]).toContain(parsed.city);
    });

    test("embeds one text and several texts", async () => {
      const values = ["The dog runs across the meadow.", "Die Suppe ist heiß."];
      const many = await embedMany({ model: provider().embeddingModel(embeddingModel), values });
      expect(many.embeddings.map(({ length }) => length)).toEqual([dimensions, dimensions]);
      const options = { weiche: { dimensions: 64 } };
      const one = await embed({
        ...{ model: provider().embeddingModel(embeddingModel), value: values[0]!, providerOptions: options },
      });
      expect(one.embedding.length).toBe(64);
      expect(many.usage.tokens).toBeGreaterThan(one.usage.tokens);
    });

    test.each<Refusal>([
      ["a wrong model", "all", "nope", "Hello", 400, false, /does not exist/],
      ["a wrong key [S13.2]", "wrong", model, "Hello", 401, false, /^A valid API key is needed/],
      ["a conversation that is too long", "all", model, "word ".repeat(30_000), 400, false, /maximum context length/],
      ["no package", "noPackage", model, "Hello", 403, false, /no active package/],
      ["a model that the key may not use", "restricted", model, "Hello", 403, false, /may use: small-24b/],
    ])("throws an APICallError for %s", async (_name, key, named, prompt, ...facts) => {
      const error = await errorOf(key, named, prompt);
      expect(APICallError.isInstance(error)).toBe(true);
      expect(error).toMatchObject(factsOf(...facts));
    });
  });

  describe("the AI SDK", () => {
    const { model } = simulated;

    test("runs several tool calls of one answer [S8.6]", async () => {
      const seen: string[] = [];
      const named = (name: string) =>
        tool({ inputSchema: jsonSchema(weatherParameters), execute: () => (seen.push(name), "17") });
      const { steps } = await generateText({
        model: providerOf(service())(model),
        prompt: "sim:calls=3,tokens=4 Weather and time in Bonn and Ulm?",
        tools: { get_weather: named("get_weather"), get_time: named("get_time") },
        stopWhen: isStepCount(3),
      });
      expect(seen).toEqual(["get_weather", "get_time", "get_weather"]);
      expect(steps.map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"]);
    });

    test("sends an image to a model that accepts images", async () => {
      const ask = (...content: { type: "file"; mediaType: string; data: string }[]) =>
        generateText({
          model: providerOf(service())("general-4-31b"),
          messages: [{ role: "user", content: [{ type: "text", text: "What is this?" }, ...content] }],
        });
      const [without, withOne] = await Promise.all([ask(), ask({ type: "file", mediaType: "image/png", data: png })]);
      expect(withOne.usage.inputTokens! - without.usage.inputTokens!).toBe(280);
    });

    test.each<Refusal>([
      ["a failing engine", "all", model, "sim:fault=500", 500, true, /engine/],
      ["an engine without room", "all", model, "sim:fault=503", 503, true, /no room/],
    ])("throws an APICallError for %s", async (_name, key, named, prompt, ...facts) => {
      const error = await errorOf(key, named, prompt);
      expect(APICallError.isInstance(error)).toBe(true);
      expect(error).toMatchObject(factsOf(...facts));
    });

    test("throws in the middle of a broken stream [S6.7]", async () => {
      const errors: unknown[] = [];
      const prompt = "sim:tokens=50,fault=cut:20";
      const { fullStream } = streamText({ model: providerOf(service())(model), prompt, onError() {} });
      const read = async () => {
        for await (const part of fullStream) if (part.type === "error") errors.push(part.error);
      };
      await read().catch(() => {}); // the connection is cut, too
      expect(errors.length).toBe(1);
    });
  });
}
