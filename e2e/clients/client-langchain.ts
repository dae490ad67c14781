/** Tests of the calls that users of LangChain's package for OpenAI make. */
import { HumanMessage, ToolMessage, type AIMessage, type BaseMessage } from "@langchain/core/messages";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { describe, expect, test } from "vitest";
import { personSchema, png, simulated, weatherParameters } from "./client-service.ts";
import type { Key, Person, Service, Subject } from "./client-service.ts";

export function chatOf({ baseUrl, keys }: Service, model: string, key: Key = "all", more: object = {}): ChatOpenAI {
  const { configuration = {}, ...options } = more as { configuration?: object };
  const settings = { model, apiKey: keys[key], maxRetries: 0, ...options };
  return new ChatOpenAI({ ...settings, configuration: { baseURL: baseUrl, ...configuration } });
}

const getWeather = {
  type: "function",
  function: { name: "get_weather", description: "Get the weather of a city", parameters: weatherParameters },
} as const;
const getTime = { type: "function", function: { ...getWeather.function, name: "get_time" } } as const;

type Refusal = [name: string, key: Key, model: string, prompt: string, facts: object];

export function describeLangChain(service: () => Service, subjects: readonly Subject[]): void {
  const errorOf = (key: Key, model: string, prompt: string): Promise<unknown> =>
    chatOf(service(), model, key)
      .invoke(prompt)
      .catch((reason: unknown) => reason);

  describe.each(subjects)("LangChain with $name", (subject) => {
    const { model, embeddingModel, dimensions, smallTalk, weather, person } = subject;
    const silent = () => chatOf(service(), model, "all", { temperature: 0, modelKwargs: { reasoning_effort: "none" } });

    test("chats, streams the same text, and gets the usage of both [S1.11]", async () => {
      const answer = await silent().invoke(smallTalk);
      expect(answer.response_metadata).toMatchObject({ finish_reason: "stop", model_name: model });
      const { input_tokens, output_tokens, total_tokens } = answer.usage_metadata!;
      expect(input_tokens + output_tokens).toBe(total_tokens);
      const chunks = await Array.fromAsync(await silent().stream(smallTalk));
      const whole = chunks.reduce((all, chunk) => all.concat(chunk));
      expect(whole.text).toBe(answer.text);
      expect(whole.usage_metadata).toMatchObject({ input_tokens, output_tokens, total_tokens });
    });

    test("separates reasoning from the answer, in one body and in a stream [S7.1]", async () => {
      const thinker = chatOf(service(), model, "all", { temperature: 0 });
      const answer = await thinker.invoke(smallTalk);
      const thoughts = answer.additional_kwargs["reasoning_content"];
      expect(thoughts).toMatch(/\w/);
      const chunks = await Array.fromAsync(await thinker.stream(smallTalk));
      const joined = chunks.map((chunk) => (chunk.additional_kwargs["reasoning_content"] as string | undefined) ?? "");
      expect([joined.join(""), chunks.map(({ text }) => text).join("")]).toEqual([thoughts, answer.text]);
    });

    test("calls a tool and continues to the final answer [S8.5]", async () => {
      const agent = silent().bindTools([getWeather]);
      const messages: BaseMessage[] = [new HumanMessage(weather)];
      const asked = await agent.invoke(messages);
      expect(asked.tool_calls).toMatchObject([{ name: "get_weather", args: { city: expect.any(String) } }]);
      const { id } = asked.tool_calls![0]!;
      messages.push(asked, new ToolMessage({ tool_call_id: id!, content: '{"temperature": 17}' }));
      const last = await agent.invoke(messages);
      expect([last.text.length > 3, last.tool_calls]).toEqual([true, []]);
    });

    test.each(["jsonSchema", "functionCalling"] as const)("parses structured output by %s [S9.1]", async (method) => {
      const options = { method, name: "person" };
      const parser = silent().withStructuredOutput<Person & Record<string, unknown>>(personSchema, options);
      expect(["Kassel", "Bonn"]).toContain((await parser.invoke(person)).city);
    });

    test("parses any JSON [S9.2]", async () => {
      const parser = silent().withStructuredOutput<Record<string, unknown>>(personSchema, { method: "jsonMode" });
      expect(Object.keys(await parser.invoke(person)).length).toBeGreaterThan(0);
    });

    test("embeds one text and several texts", async () => {
      const settings = { model: embeddingModel, apiKey: service().keys.all, maxRetries: 0 };
      const configuration = { baseURL: service().baseUrl };
      const many = await new OpenAIEmbeddings({ ...settings, configuration }).embedDocuments(["The dog", "Die Suppe"]);
      expect(many.map(({ length }) => length)).toEqual([dimensions, dimensions]);
      const short = new OpenAIEmbeddings({ ...settings, configuration, dimensions: 64, encodingFormat: "float" });
      expect((await short.embedQuery("The dog")).length).toBe(64);
    });

    test.each<Refusal>([
      ["a wrong model", "all", "nope", "Hello", { status: 400, param: "model" }],
      [
        "a wrong key [S13.2]",
        "wrong",
        model,
        "Hello",
        { status: 401, code: "401", message: expect.stringContaining("A valid API key is needed") },
      ],
      [
        "a conversation that is too long [S18.4]",
        "all",
        model,
        "word ".repeat(30_000),
        { name: "ContextOverflowError" },
      ],
      ["no package", "noPackage", model, "Hello", { status: 403, code: "no_package" }],
      [
        "a used-up quota [S18.5]",
        "noQuota",
        model,
        "Hello",
        { name: "InsufficientQuotaError", code: "insufficient_quota" },
      ],
    ])("throws its own error for %s", async (_name, key, named, prompt, facts) => {
      expect(await errorOf(key, named, prompt)).toMatchObject(facts);
    });
  });

  describe("LangChain", () => {
    const { model } = simulated;

    test("runs several tool calls of one answer [S8.6]", async () => {
      const agent = chatOf(service(), model).bindTools([getWeather, getTime]);
      const messages: BaseMessage[] = [new HumanMessage("sim:calls=3,tokens=4 Weather and time in Bonn and Ulm?")];
      const asked: AIMessage = await agent.invoke(messages);
      expect(asked.tool_calls!.map(({ name }) => name)).toEqual(["get_weather", "get_time", "get_weather"]);
      messages.push(asked, ...asked.tool_calls!.map(({ id }) => new ToolMessage({ tool_call_id: id!, content: "17" })));
      expect((await agent.invoke(messages)).response_metadata["finish_reason"]).toBe("stop");
    });

    test("forces a function call if the model supports it [S8.4]", async () => {
      const forced = chatOf(service(), model).bindTools([getWeather, getTime], { tool_choice: "get_time" });
      const { tool_calls, response_metadata } = await forced.invoke("Hello");
      expect([tool_calls!.map(({ name }) => name), response_metadata["finish_reason"]]).toEqual([
        ["get_time"],
        "tool_calls",
      ]);
    });

    test("sends an image to a model that accepts images", async () => {
      const ask = (...images: object[]) =>
        chatOf(service(), "general-4-31b").invoke([
          new HumanMessage({ content: [{ type: "text", text: "What is this?" }, ...images] as never }),
        ]);
      const image = { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } };
      const [without, withOne] = await Promise.all([ask(), ask(image)]);
      expect(withOne.usage_metadata!.input_tokens - without.usage_metadata!.input_tokens).toBe(280);
    });

    test.each<Refusal>([
      ["a failing engine", "all", model, "sim:fault=500", { status: 500 }],
      ["an engine without room", "all", model, "sim:fault=503", { status: 503, code: "overloaded" }],
    ])("throws its own error for %s", async (_name, key, named, prompt, facts) => {
      expect(await errorOf(key, named, prompt)).toMatchObject(facts);
    });

    test("throws in the middle of a broken stream [S6.7]", async () => {
      const read = async () => Array.fromAsync(await chatOf(service(), model).stream("sim:tokens=50,fault=cut:20"));
      await expect(read()).rejects.toThrow(/engine failed|broken off/);
    });
  });
}
