/** Tests of the calls that users of the official OpenAI client make. */
import OpenAI from "openai";
import { standardResponseFormat } from "openai/helpers/standard-schema";
import { describe, expect, test } from "vitest";
import { personSchema, png, simulated, weatherParameters } from "./client-service.ts";
import type { Key, Person, Service, Subject } from "./client-service.ts";
type Thoughtful = { readonly reasoning_content?: string };

export function clientOf({ baseUrl, keys }: Service, key: Key = "all", options: object = {}): OpenAI {
  return new OpenAI({ baseURL: baseUrl, apiKey: keys[key], maxRetries: 0, ...options });
}

/** The smallest object that the helper accepts as a schema library. */
const unvalidated = {
  version: 1 as const,
  vendor: "weiche",
  types: undefined as { readonly input: unknown; readonly output: Person } | undefined,
  validate: (value: unknown) => ({ value: value as Person }),
};

const user = (content: string) => [{ role: "user" as const, content }];

/** `more` contains further fields of the request. */
type Refusal = [name: string, kind: abstract new (...all: never[]) => Error, key: Key, more: object, facts: object];

export function describeOpenAi(service: () => Service, subjects: readonly Subject[]): void {
  const errorOf = (key: Key, model: string, more: object): Promise<unknown> =>
    clientOf(service(), key)
      .chat.completions.create({ model, messages: user("Hello"), ...more })
      .catch((reason: unknown) => reason);

  describe.each(subjects)("the openai package with $name", (subject) => {
    const { model, embeddingModel, dimensions, contextTokens, smallTalk, weather, person } = subject;
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } };
    const openai = () => clientOf(service());
    const silent = { model, reasoning_effort: "none", temperature: 0 } as const;

    test("chats, streams the same text, and gets the usage of both [S1.1 S1.11 S6.5]", async () => {
      const request = { ...silent, messages: user(smallTalk) };
      const answer = await openai().chat.completions.create(request);
      const [choice] = answer.choices;
      expect(choice).toMatchObject({ index: 0, finish_reason: "stop", message: { role: "assistant" } });
      const { prompt_tokens, completion_tokens, total_tokens } = answer.usage!;
      expect(prompt_tokens + completion_tokens).toBe(total_tokens);
      const stream = openai().chat.completions.stream({ ...request, stream_options: { include_usage: true } });
      const streamed = await stream.finalChatCompletion();
      expect(streamed.choices[0]!.message.content).toBe(choice!.message.content);
      expect(streamed.usage).toMatchObject({ prompt_tokens, completion_tokens, total_tokens });
      expect(answer.model).toBe(model);
    });

    test("separates reasoning from the answer, in one body and in a stream [S5.5 S6.3 S7.1]", async () => {
      const request = { model, temperature: 0, messages: user(smallTalk) };
      const { message, finish_reason } = (await openai().chat.completions.create(request)).choices[0]!;
      const thoughts = (message as Thoughtful).reasoning_content!;
      expect([finish_reason, thoughts.length > 0, message.content!.length > 0]).toEqual(["stop", true, true]);
      const pieces = { reasoning: "", content: "" };
      const order = new Set<string>();
      for await (const { choices } of await openai().chat.completions.create({ ...request, stream: true })) {
        const delta = choices[0]!.delta as Thoughtful & { content?: string };
        if (delta.reasoning_content) order.add("reasoning");
        if (delta.content) order.add("content");
        pieces.reasoning += delta.reasoning_content ?? "";
        pieces.content += delta.content ?? "";
      }
      expect(pieces).toEqual({ reasoning: thoughts, content: message.content });
      expect([...order]).toEqual(["reasoning", "content"]);
    });

    test.each([false, true])(
      "calls a tool and continues to the final answer (stream: %s) [S5.6 S6.3 S8.5]",
      async (stream) => {
        const cities: string[] = [];
        const get_weather = ({ city }: { city: string }) => {
          cities.push(city);
          return '{"temperature": 17, "condition": "cloudy"}';
        };
        const called = { name: "get_weather", description: "Get the weather of a city", parameters: weatherParameters };
        const tool = { type: "function", function: { ...called, function: get_weather, parse: JSON.parse } } as const;
        const request = { ...silent, messages: user(weather), tools: [tool] };
        const completions = openai().chat.completions;
        // oxlint-disable-next-line typescript/no-explicit-any -- the helper's types require those of a schema library
        const run = stream ? completions.runTools({ ...request, stream } as any) : completions.runTools(request as any);
        expect((await run.finalContent())!.length).toBeGreaterThan(3);
        expect(cities).toEqual([expect.stringMatching(/\w/)]);
        expect(run.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
      },
    );

    test("parses structured output with its helper [S9.1]", async () => {
      const response_format = standardResponseFormat({ "~standard": unvalidated }, "person", {
        schema: personSchema,
      });
      const answer = await openai().chat.completions.parse({ ...silent, messages: user(person), response_format });
      const { parsed } = answer.choices[0]!.message;
      expect(parsed).toMatchObject({ name: expect.any(String), age: expect.any(Number) });
      expect(["Kassel", "Bonn"]).toContain(parsed!.city);
    });

    test("embeds as base64, its default, and as numbers [S1.2 S11.3 S11.4 S11.8]", async () => {
      const input = ["The dog runs across the meadow.", "Die Suppe ist heiß."];
      const packed = await openai().embeddings.create({ model: embeddingModel, input });
      const plain = await openai().embeddings.create({ model: embeddingModel, input, encoding_format: "float" });
      const short = await openai().embeddings.create({ model: embeddingModel, input: input[0]!, dimensions: 64 });
      expect(packed.data.map(({ index, embedding }) => [index, embedding.length])).toEqual([
        [0, dimensions],
        [1, dimensions],
      ]);
      expect(packed.data[1]!.embedding.map((value) => value.toFixed(5))).toEqual(
        plain.data[1]!.embedding.map((value) => value.toFixed(5)),
      );
      expect(short.data[0]!.embedding.length).toBe(64);
      expect(packed.usage.total_tokens).toBe(packed.usage.prompt_tokens);
    });

    test("completes a text, in one body and as a stream [S1.4 S6.9]", async () => {
      const request = { model, prompt: smallTalk, max_tokens: 5, temperature: 0 };
      const { choices } = await openai().completions.create(request);
      let text = "";
      for await (const part of await openai().completions.create({ ...request, stream: true }))
        text += part.choices[0]?.text ?? "";
      expect([text, choices[0]!.text.length > 0]).toEqual([choices[0]!.text, true]);
    });

    test.each<Refusal>([
      ["a wrong model [S2.5]", OpenAI.BadRequestError, "all", { model: "nope" }, { status: 400, param: "model" }],
      [
        "a conversation that is too long [S18.4]",
        OpenAI.BadRequestError,
        "all",
        { messages: user("word ".repeat(30_000)) },
        {
          status: 400,
          type: "ContextWindowExceededError",
          message: expect.stringMatching(new RegExp(`${contextTokens}.*\\d{5}`)),
        },
      ],
      ["no package [S13.5]", OpenAI.PermissionDeniedError, "noPackage", {}, { status: 403, code: "no_package" }],
      [
        "a model that the key may not use [S13.7]",
        OpenAI.PermissionDeniedError,
        "restricted",
        {},
        { status: 403, type: "key_model_access_denied", code: "403", param: "model" },
      ],
      [
        "an image for a model that accepts none",
        OpenAI.BadRequestError,
        "all",
        { messages: [{ role: "user", content: [image] }] },
        { status: 400, param: "messages[0].content[0].image_url.url" },
      ],
      ["a used-up quota [S15.2]", OpenAI.RateLimitError, "noQuota", {}, { status: 429, code: "insufficient_quota" }],
    ])("throws its own error for %s", async (_name, kind, key, more, facts) => {
      const error = await errorOf(key, model, more);
      expect(error).toBeInstanceOf(kind);
      expect(error).toMatchObject(facts);
    });
  });

  describe("the openai package", () => {
    const { model } = simulated;

    test("gets answers in the convention's format [S5.1 S5.2]", async () => {
      const before = Math.floor(Date.now() / 1_000);
      const answer = await clientOf(service()).chat.completions.create({ model, messages: user("sim:tokens=2"), n: 2 });
      expect(answer).toMatchObject({ id: expect.stringMatching(/^chatcmpl-/), object: "chat.completion", model });
      expect(answer.created).toBeGreaterThanOrEqual(before - 1);
      expect(answer.created).toBeLessThanOrEqual(Date.now() / 1_000 + 1);
      const choice = (index: number) => ({
        index,
        finish_reason: "stop",
        message: { role: "assistant", content: "t0 t1 " },
      });
      expect(answer.choices).toMatchObject([choice(0), choice(1)]);
    });

    test("sends history and tools with each request, where both count as input, because the service keeps nothing [S3.6 S5.9 S8.7]", async () => {
      const tokens = async (more: object) => {
        const request = { ...{ model, messages: user("Hello"), max_tokens: 1 }, ...more };
        return (await clientOf(service()).chat.completions.create(request)).usage!.prompt_tokens;
      };
      const history = [...user("Hello"), { role: "assistant", content: "x".repeat(400) }, ...user("Hello")];
      const tool = { type: "function", function: { name: "f", description: "x".repeat(400) } };
      const alone = await tokens({});
      expect(await tokens({ messages: history })).toBeGreaterThanOrEqual(alone + 100);
      expect(await tokens({ tools: [tool] })).toBeGreaterThanOrEqual(alone + 100);
      expect(await tokens({})).toBe(alone);
    });

    test("gets no reasoning if it is switched off or the model has none [S5.5 S7.3 S7.4]", async () => {
      const thoughts = async (named: string, more: object = {}) => {
        const request = { model: named, messages: user("sim:tokens=2,reasoning=3"), ...more };
        const { message } = (await clientOf(service()).chat.completions.create(request)).choices[0]!;
        return (message as Thoughtful).reasoning_content ?? "none";
      };
      const kwargs = (enable_thinking: boolean) => ({ chat_template_kwargs: { enable_thinking } });
      expect(await thoughts("general-3.8-27b", { reasoning_effort: "none" })).toBe("none");
      expect(await thoughts("general-3.8-27b", kwargs(false))).toBe("none");
      expect(await thoughts("general-4-31b")).toBe("none");
      expect(await thoughts("small-24b", { reasoning_effort: "high" })).toBe("none");
      expect(await thoughts("general-4-31b", { reasoning_effort: "low" })).toBe("r0 r1 r2 ");
      expect(await thoughts("general-4-31b", kwargs(true))).toBe("r0 r1 r2 ");
    });

    test("runs several tool calls of one answer [S5.6 S8.6]", async () => {
      const seen: string[] = [];
      const tools = ["get_weather", "get_time"].map((name) => {
        const run = () => void seen.push(name);
        return { type: "function", function: { name, parameters: weatherParameters, function: run } } as const;
      });
      const messages = user("sim:calls=3,tokens=4 Weather and time in Bonn and Ulm?");
      // oxlint-disable-next-line typescript/no-explicit-any -- as above
      const run = clientOf(service()).chat.completions.runTools({ model, messages, tools } as any);
      await run.done();
      expect(seen).toEqual(["get_weather", "get_time", "get_weather"]);
      const calls = run.messages.flatMap((message) => ("tool_calls" in message ? (message.tool_calls ?? []) : []));
      expect(new Set(calls.map(({ id }) => id)).size).toBe(3);
    });

    test("sends images to a model that accepts them, and their tokens are counted [S5.9 S10.5]", async () => {
      const ask = (...images: string[]) => {
        const parts = images.map((url) => ({ type: "image_url" as const, image_url: { url } }));
        const content = [{ type: "text" as const, text: "What is this?" }, ...parts];
        return clientOf(service()).chat.completions.create({
          model: "general-4-31b",
          messages: [{ role: "user", content }],
        });
      };
      const uri = `data:image/png;base64,${png}`;
      const [without, withTwo] = await Promise.all([ask(), ask(uri, uri)]);
      expect(withTwo.usage!.prompt_tokens - without.usage!.prompt_tokens).toBe(2 * 280);
      await expect(ask("https://example.com/a.png")).rejects.toThrow(OpenAI.BadRequestError);
      await expect(ask(uri, uri, uri, uri, uri)).rejects.toThrow(/at most 4/);
    });

    test("lists the models that its key may use [S1.3]", async () => {
      const list = async (key: Key) =>
        (await Array.fromAsync(clientOf(service(), key).models.list())).map(({ id }) => id);
      expect(await list("restricted")).toEqual(["small-24b"]);
      expect((await list("all")).slice(0, 2)).toEqual(["small-24b", "general-3.8-27b"]);
    });

    test.each<Refusal>([
      [
        "a failing engine [S18.7]",
        OpenAI.InternalServerError,
        "all",
        { messages: user("sim:fault=500") },
        { status: 500, code: "500" },
      ],
      [
        "an engine without room [S18.8]",
        OpenAI.InternalServerError,
        "all",
        { messages: user("sim:fault=503") },
        { status: 503, code: "overloaded" },
      ],
    ])("throws its own error for %s", async (_name, kind, key, more, facts) => {
      const error = await errorOf(key, model, more);
      expect(error).toBeInstanceOf(kind);
      expect(error).toMatchObject(facts);
    });

    test("throws its own error for a wrong key and for an unknown path [S1.9 S13.2]", async () => {
      const stranger = clientOf(service(), "all", { apiKey: "sk-weiche-wrong" });
      await expect(stranger.models.list()).rejects.toThrow(OpenAI.AuthenticationError);
      const responses = clientOf(service()).responses.create({ model, input: "Hello" });
      await expect(responses).rejects.toThrow(OpenAI.PermissionDeniedError);
    });

    test("throws in the middle of a broken stream [S6.7]", async () => {
      const stream = await clientOf(service()).chat.completions.create({
        ...{ model, messages: user("sim:tokens=50,fault=cut:20"), stream: true },
      });
      const read = async () => {
        for await (const part of stream) void part;
      };
      await expect(read()).rejects.toThrow(OpenAI.APIError);
    });

    test("does not retry when the quota is used up [S18.5]", async () => {
      let tries = 0;
      const counting: typeof fetch = (...request) => {
        tries++;
        return fetch(...request);
      };
      const spent = clientOf(service(), "noQuota", { maxRetries: 2, fetch: counting });
      await expect(spent.chat.completions.create({ model, messages: user("Hello") })).rejects.toThrow(
        OpenAI.RateLimitError,
      );
      expect(tries).toBe(1);
    });
  });
}
