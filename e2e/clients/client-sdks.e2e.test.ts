/**
 * Tests the libraries that clients use against the whole system: a real router, a real agent and both kinds of engines.
 */
import { generateText } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../cluster/cluster.ts";
import { askStream, type Answer, type Question } from "../cluster/api-client.ts";
import { describeAiSdk, providerOf } from "./client-ai-sdk.ts";
import { chatOf, describeLangChain } from "./client-langchain.ts";
import { clientOf, describeOpenAi } from "./client-openai.ts";
import { describePython } from "./client-python.ts";
import { embedded, simulated, startService, type Service } from "./client-service.ts";
import { describeCalls } from "./documented-calls.ts";
import { describeDocument } from "./documented.ts";

let service: Service;
beforeAll(async () => {
  service = await startService();
}, 90_000);
afterAll(() => service?.[Symbol.asyncDispose]());

const subjects = [simulated, embedded];
describeOpenAi(() => service, subjects);
describeAiSdk(() => service, subjects);
describeLangChain(() => service, subjects);
describeDocument(() => service, subjects);
describePython(() => service);
describeCalls(() => service);

describe("without help of their user, all libraries", () => {
  type Key = keyof Service["keys"];
  type Ask = (prompt: string, key: Key, model: string, options: object) => Promise<unknown>;
  const libraries: Record<string, Ask> = {
    openai: (content, key, model, options) =>
      clientOf(service, key, { maxRetries: 4, ...options }).chat.completions.create({
        ...{ model, messages: [{ role: "user", content }] },
      }),
    "AI SDK": (prompt, key, model, options) =>
      generateText({ model: providerOf(service, key, options)(model), maxRetries: 4, prompt }),
    LangChain: (prompt, key, model, options) =>
      chatOf(service, model, key, { maxRetries: 4, configuration: options }).invoke(prompt),
  };

  /** Asks with each library, and records the statuses that each received. */
  function askWithEach(key: Key, model: string) {
    const statuses = Object.keys(libraries).map((): number[] => []);
    const answers = Object.values(libraries).map((ask, index) => {
      const noting: typeof fetch = async (...request) => {
        const response = await fetch(...request);
        statuses[index]!.push(response.status);
        return response;
      };
      return ask("sim:tokens=3", key, model, { fetch: noting });
    });
    return { statuses, all: Promise.all(answers) };
  }

  function ask(question: Partial<Question>): Promise<Answer> {
    const { baseUrl, keys } = service;
    return askStream({ ...{ baseUrl, apiKey: keys.all, model: "small-24b", text: "sim:tokens=3" }, ...question });
  }

  test("retry during a switch until the model is back [S17.5 S18.8]", async () => {
    // A refusal's waiting time is the duration of the last switch. These requests cause one switch of each kind first.
    for (const model of ["small-24b", "coder-next", "small-24b"]) await ask({ model });
    const leaving = new AbortController();
    const { promise: begun, resolve: onPiece } = Promise.withResolvers<void>();
    const long = ask({ text: "sim:tokens=20000", signal: leaving.signal, onPiece: () => onPiece() });
    await begun;
    const other = ask({ model: "coder-next" });
    await until("the slot to be closed", async () => (await ask({})).error?.code === "model_switching");
    const { statuses, all } = askWithEach("patient", "small-24b");
    await until("each library to be refused", () => statuses.every(([first]) => first !== undefined));
    leaving.abort();
    await all;
    expect(statuses.map((seen) => [seen[0], seen.at(-1)])).toEqual(statuses.map(() => [503, 200]));
    expect([await long, await other]).toMatchObject([{ ending: "left" }, { ending: "whole" }]);
  });

  test("retry after too many concurrent requests until there is a place [S6.6 S18.6]", async () => {
    const apiKey = service.keys.fiveAtOnce;
    const leaving = new AbortController();
    let begun = 0;
    const running = Array.from({ length: 5 }, () => {
      const onPiece = (pieces: number) => void (begun += Number(pieces === 1));
      return ask({ apiKey, model: simulated.model, text: "sim:tokens=20000", signal: leaving.signal, onPiece });
    });
    await until("five requests to run", () => begun === 5);
    const refused = clientOf(service, "fiveAtOnce").chat.completions.create({
      ...{ model: simulated.model, messages: [{ role: "user", content: "Hello" }] },
    });
    const error: unknown = await refused.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(OpenAI.RateLimitError);
    expect(error).toMatchObject({ code: "rate_limit_exceeded", message: expect.stringMatching(/parallel requests/) });
    const { statuses, all } = askWithEach("fiveAtOnce", simulated.model);
    await until("each library to be refused", () => statuses.every(([first]) => first !== undefined));
    leaving.abort();
    await all;
    expect(statuses.map((seen) => [seen[0], seen.at(-1)])).toEqual(statuses.map(() => [429, 200]));
    await Promise.all(running);
  });
});
