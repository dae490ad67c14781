/** Both providers of the AI SDK, and many requests at once with the retries that it has by itself. */
import { apiKey, atOnce, baseURL, check, load, model, starterKey, tooLong, versions } from "./service.mjs";

versions("ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible");
const { generateText } = load("ai");
const { createOpenAI } = load("@ai-sdk/openai");
const { createOpenAICompatible } = load("@ai-sdk/openai-compatible");

const openai = createOpenAI({ baseURL, apiKey });
const compatible = (key = apiKey) => createOpenAICompatible({ name: "weiche", baseURL, apiKey: key })(model);
const ask = async (served, prompt = "sim:tokens=3 Hello") =>
  (await generateText({ model: served, prompt })).text ? "answered" : "empty";

await check("openai(model)", () => ask(openai(model)));
await check("openai.chat(model)", () => ask(openai.chat(model)));
await check("compatible", () => ask(compatible()));
await check("overflow", () => ask(compatible(), tooLong));
const short = "sim:tokens=3,itl=5,reasoning=0 Hello";
await check("60 at once from one address", () => atOnce(60, () => ask(compatible(), short)));
const long = "sim:tokens=40,itl=100,reasoning=0 Hello";
await check("8 at once on Starter, answers of 4 s", () => atOnce(8, () => ask(compatible(starterKey), long)));
