/** Many requests at once with the retries that the client has by itself. */
import { apiKey, atOnce, baseURL, check, load, model, starterKey, tooLong, versions } from "./service.mjs";

versions("openai");
const { OpenAI } = load("openai");

function asking(content, key = apiKey) {
  const client = new OpenAI({ baseURL, apiKey: key });
  return () => client.chat.completions.create({ model, messages: [{ role: "user", content }] });
}

await check("overflow", asking(tooLong));
await check("60 at once from one address", () => atOnce(60, asking("sim:tokens=3,itl=5,reasoning=0 Hello")));
const long = asking("sim:tokens=40,itl=100,reasoning=0 Hello", starterKey);
await check("8 at once on Starter, answers of 4 s", () => atOnce(8, long));
