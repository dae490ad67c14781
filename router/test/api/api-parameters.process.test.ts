/** Tests every parameter of chat completions: its range, its refusal, and the parameter that the refusal names. */
import { rawJson } from "@weiche/shared/http/kept-json.ts";
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { chat, startApi } from "./api-harness.ts";

const api = await forThisFile(startApi());

const png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";
const jpeg = "data:image/jpeg;base64,/9j/4AAQSkZJRgABAQAAAQABAAD/2wBD";
const gif = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAA";
const webp = "data:image/webp;base64,UklGRhoAAABXRUJQVlA4TA0AAAAvAAAA";
const svg = `data:image/svg+xml;base64,${Buffer.from("<svg xmlns='x'></svg>").toString("base64")}`;
const image = (url: string) => ({ type: "image_url", image_url: { url } });
const images = (...urls: string[]) => ({ messages: [{ role: "user", content: urls.map(image) }] });
const messages = (...list: unknown[]) => ({ messages: list });
const tool = (name: string) => ({ type: "function", function: { name, parameters: { type: "object" } } });
const call = { id: "c1", type: "function", function: { name: "f", arguments: "{}" } };
const user = { role: "user", content: "Hello" };
const small = (more: object) => ({ model: "small-24b", ...more });
const thinker = (more: object) => ({ model: "general-3.8-27b", ...more });
const coder = (more: object) => ({ model: "coder-next", ...more });

const accepted: [sentence: string, more: Record<string, unknown>][] = [
  ["max_tokens is an integer [S4.3]", { max_tokens: 100 }],
  ["max_tokens may be 1 [S4.3]", { max_tokens: 1 }],
  ["stop takes 64 strings [S4.9]", { stop: Array(64).fill("x") }],
  ["max_completion_tokens is accepted as well [S4.4]", { max_completion_tokens: 100 }],
  ["max_completion_tokens may be 1", { max_completion_tokens: 1 }],
  ["temperature may be 0 [S4.7]", { temperature: 0 }],
  ["temperature may be 2 [S4.7]", { temperature: 2 }],
  ["top_p may be 0 [S4.8]", { top_p: 0 }],
  ["top_p may be 1 [S4.8]", { top_p: 1 }],
  ["stop may be a string [S4.9]", { stop: "\n" }],
  ["stop may be an array [S4.9]", { stop: ["a", "b"] }],
  ["stop may be an empty array", { stop: [] }],
  ["n may be 1", { n: 1 }],
  ["n may be 8 [S4.10]", { n: 8 }],
  ["seed is an integer [S4.11]", { seed: 42 }],
  ["seed may be negative [S4.11]", { seed: -1 }],
  ["seed may be the smallest of 64 bits", { seed: -(2 ** 63) }],
  ["seed may be the largest number below 2^63", { seed: rawJson("9223372036854775807") }],
  ["penalties may be -2 [S4.12]", { presence_penalty: -2, frequency_penalty: -2 }],
  ["penalties may be 2 [S4.12]", { presence_penalty: 2, frequency_penalty: 2 }],
  ["logprobs with top_logprobs [S4.13]", { logprobs: true, top_logprobs: 20 }],
  ["top_logprobs 0 without logprobs", { top_logprobs: 0 }],
  ["stream is a boolean [S4.14]", { stream: false }],
  ["stream_options with include_usage [S4.15]", { stream: true, stream_options: { include_usage: true } }],
  ["stream_options without stream [S4.15]", { stream_options: { include_usage: true } }],
  ["tools with tool_choice auto [S8.3]", { tools: [tool("f")], tool_choice: "auto" }],
  ["tool_choice none [S8.3]", { tools: [tool("f")], tool_choice: "none" }],
  ["tool_choice required [S8.3]", { tools: [tool("f")], tool_choice: "required" }],
  [
    "tool_choice names one function [S8.3]",
    { tools: [tool("f")], tool_choice: { type: "function", function: { name: "f" } } },
  ],
  ["a tool without description and parameters [S8.1]", { tools: [{ type: "function", function: { name: "f" } }] }],
  ["response_format json_object [S9.2]", { response_format: { type: "json_object" } }],
  ["response_format text [S9.3]", { response_format: { type: "text" } }],
  [
    "response_format json_schema [S9.1]",
    { response_format: { type: "json_schema", json_schema: { name: "n", schema: { type: "object" }, strict: true } } },
  ],
  ["reasoning_effort none [S7.2 S7.9]", { reasoning_effort: "none" }],
  ["general-4-31b accepts low [S7.9]", { reasoning_effort: "low" }],
  ["general-4-31b accepts medium [S7.9]", { reasoning_effort: "medium" }],
  ["general-4-31b accepts high [S7.9]", { reasoning_effort: "high" }],
  ["general-4-31b accepts any other level [S7.9]", { reasoning_effort: "extreme" }],
  ["general-3.8-27b accepts low [S7.8]", thinker({ reasoning_effort: "low" })],
  ["general-3.8-27b accepts medium [S7.8]", thinker({ reasoning_effort: "medium" })],
  ["general-3.8-27b accepts xhigh [S7.8]", thinker({ reasoning_effort: "xhigh" })],
  ["general-3.8-27b accepts none [S7.8]", thinker({ reasoning_effort: "none" })],
  ["a model without reasoning takes reasoning_effort and produces none [S7.4]", small({ reasoning_effort: "high" })],
  ["chat_template_kwargs switches reasoning [S7.2]", { chat_template_kwargs: { enable_thinking: true } }],
  ["chat_template_kwargs with coder-next", coder({ chat_template_kwargs: { enable_thinking: false } })],
  ["content as an array of text parts [S3.2]", messages({ role: "user", content: [{ type: "text", text: "Hi" }] })],
  ["a developer's message [S3.1]", messages({ role: "developer", content: "s" }, user)],
  [
    "all four roles [S3.1]",
    messages({ role: "system", content: "s" }, user, { role: "assistant", content: "a" }, user),
  ],
  [
    "an assistant's tool_calls and the tool's answer [S3.3]",
    messages(
      user,
      { role: "assistant", content: null, tool_calls: [call] },
      {
        role: "tool",
        tool_call_id: "c1",
        content: "42",
      },
    ),
  ],
  ["tool_calls without content [S3.4]", messages(user, { role: "assistant", tool_calls: [call] }, user)],
  [
    "an answer that ended while reasoning may be sent back [S3.5]",
    messages(user, { role: "assistant", content: null }, user),
  ],
  [
    "a sent-back reasoning_content is ignored [S3.5]",
    messages(user, { role: "assistant", content: "a", reasoning_content: { any: 1 } }, user),
  ],
  ["a PNG as data URI [S10.4]", images(png)],
  ["a JPEG as data URI [S10.4]", images(jpeg)],
  ["a WebP as data URI [S10.4]", images(webp)],
  ["a GIF as data URI [S10.4]", images(gif)],
  [
    "the bytes of an image decide its format, not its media type [S10.4]",
    images(png.replace("image/png", "image/x-unknown")),
  ],
  ["a data URI with parameters [S10.1]", images(png.replace(";base64", ';charset=utf-8;name="a.png";base64'))],
  ["four images [S10.3]", images(png, jpeg, gif, webp)],
  ["an image beside text [S10.1]", messages({ role: "user", content: [{ type: "text", text: "?" }, image(png)] })],
  ["detail and other fields of an image are dropped", messages({ role: "user", content: [{ ...image(png), x: 1 }] })],
  [
    "unknown fields at the top [S4.17]",
    { user: "u", store: true, metadata: { a: [1] }, service_tier: "auto", logit_bias: 5 },
  ],
  ["unknown fields in a message [S4.17]", messages({ ...user, name: "n", cache_control: {} })],
  ["unknown fields in chat_template_kwargs [S4.17]", { chat_template_kwargs: { enable_thinking: true, other: [1] } }],
  ["unknown fields in stream_options [S4.17]", { stream: true, stream_options: { include_obfuscation: false } }],
  ["unknown fields in tools [S4.17]", { tools: [{ ...tool("f"), cache: 1, function: { name: "f", strict: true } }] }],
  ["null within an optional parameter means absent [S4.16]", { stream_options: { include_usage: null } }],
  ["small-24b with chat_template_kwargs null [S7.10]", small({ chat_template_kwargs: null })],
  ["the node decides about max_tokens as large as the context window", { max_tokens: 32_768 }],
  ["integers may be written as 1.0 or 1e2", { n: 1.0, max_tokens: 1e2 }],
];
/** The optional parameters in the order of the service's table. */
const optional = [
  ...["max_tokens", "max_completion_tokens", "temperature", "top_p", "stop", "n", "seed", "presence_penalty"],
  ...["frequency_penalty", "logprobs", "top_logprobs", "stream", "stream_options", "tools", "tool_choice"],
  ...["response_format", "reasoning_effort", "chat_template_kwargs"],
];
test.each(optional)("null counts as absent: %s [S4.16]", async (name) => {
  const answer = await api.post("/v1/chat/completions", chat({ [name]: null }));
  expect([answer.status, answer.json]).toEqual([200, { ok: true }]);
});

test.each(accepted)("chat accepts: %s", async (_sentence, more) => {
  const answer = await api.post("/v1/chat/completions", chat(more));
  expect([answer.status, answer.json]).toEqual([200, { ok: true }]);
});

const refused: [sentence: string, more: Record<string, unknown>, param: string, message?: RegExp][] = [
  ["model is required [S4.1]", { model: undefined }, "model"],
  ["model is a string [S4.1]", { model: 5 }, "model"],
  ["model is not null", { model: null }, "model"],
  ["an unknown model", { model: "nope" }, "model", /does not exist/],
  ["an embedding model does not chat [S2.7]", { model: "vl-embedding-2b" }, "model"],
  ["messages are required [S3.7 S4.2]", { messages: undefined }, "messages"],
  ["messages are an array [S4.2]", { messages: "Hello" }, "messages"],
  ["at least one message [S3.7]", { messages: [] }, "messages"],
  ["a message is an object", messages("Hello"), "messages[0]"],
  ["a role is a known one [S3.1]", messages({ role: "wizard", content: "x" }), "messages[0].role", /developer/],
  ["a role is required [S3.1]", messages({ content: "x" }), "messages[0].role"],
  ["content is a string or parts [S3.2]", messages(user, { role: "user", content: 5 }), "messages[1].content"],
  ["a user's content is required [S3.2]", messages({ role: "user" }), "messages[0].content"],
  ["a user's content is not null [S3.2]", messages({ role: "user", content: null }), "messages[0].content"],
  ["a system's content is required [S3.2]", messages({ role: "system" }, user), "messages[0].content"],
  ["an assistant needs content or tool_calls [S3.4]", messages({ role: "assistant" }), "messages[0].content"],
  ["a tool's answer carries tool_call_id [S3.3]", messages({ role: "tool", content: "x" }), "messages[0].tool_call_id"],
  ["a tool_call has an id [S3.4]", messages({ role: "assistant", tool_calls: [{}] }), "messages[0].tool_calls[0].id"],
  [
    "a tool_call's arguments are a string [S3.4]",
    messages({ role: "assistant", tool_calls: [{ id: "c", function: { name: "f", arguments: {} } }] }),
    "messages[0].tool_calls[0].function.arguments",
  ],
  ["a part has a kind [S3.2]", messages({ role: "user", content: [{ text: "x" }] }), "messages[0].content[0].type"],
  [
    "a part is text or image_url [S3.2]",
    messages({ role: "user", content: [{ type: "audio" }] }),
    "messages[0].content[0].type",
  ],
  [
    "a text part has text [S3.2]",
    messages({ role: "user", content: [{ type: "text" }] }),
    "messages[0].content[0].text",
  ],
  [
    "an image has a url [S10.1]",
    messages({ role: "user", content: [{ type: "image_url" }] }),
    "messages[0].content[0].image_url",
  ],
  [
    "images go into user messages [S10.1]",
    messages({ role: "system", content: [image(png)] }),
    "messages[0].content[0].type",
  ],
  [
    "an image given as a link [S10.2]",
    images("https://x.example/a.png"),
    "messages[0].content[0].image_url.url",
    /data URI/,
  ],
  ["an image given as http [S10.2]", images("http://127.0.0.1/a.png"), "messages[0].content[0].image_url.url"],
  ["an image given as a file [S10.2]", images("file:///etc/passwd"), "messages[0].content[0].image_url.url"],
  ["an image that is not Base64 [S10.1]", images("data:image/png,abc"), "messages[0].content[0].image_url.url"],
  ["an image of broken Base64 [S10.1]", images("data:image/png;base64,%%%%"), "messages[0].content[0].image_url.url"],
  ["an image without bytes [S10.1]", images("data:image/png;base64,"), "messages[0].content[0].image_url.url"],
  [
    "an SVG with its own media type [S10.4]",
    images(svg),
    "messages[0].content[0].image_url.url",
    /png, jpeg, webp, gif/,
  ],
  [
    "an SVG with the media type of PNG [S10.4]",
    images(svg.replace("svg+xml", "png")),
    "messages[0].content[0].image_url.url",
  ],
  ["an SVG beside a PNG [S10.4]", images(png, svg), "messages[0].content[1].image_url.url"],
  ["more than four images [S10.3]", images(png, png, png, png, png), "messages", /at most 4/],
  [
    "small-24b takes no images [S10.6]",
    { ...images(png), ...small({}) },
    "messages[0].content[0].image_url.url",
    /no images/,
  ],
  [
    "general-3.8-27b takes no images [S10.6]",
    thinker(images(png)),
    "messages[0].content[0].image_url.url",
    /no images/,
  ],
  ["coder-next takes no images [S10.6]", coder(images(png)), "messages[0].content[0].image_url.url", /no images/],
  ["max_tokens is at least 1 [S4.3]", { max_tokens: 0 }, "max_tokens"],
  ["max_tokens is an integer [S4.3]", { max_tokens: 1.5 }, "max_tokens"],
  ["nothing is converted to a number [S4.16]", { max_tokens: "10" }, "max_tokens"],
  ["stop has at most 64 strings [S4.9]", { stop: Array(65).fill("x") }, "stop"],
  ["max_completion_tokens is at least 1 [S4.4]", { max_completion_tokens: -1 }, "max_completion_tokens"],
  ["temperature is at least 0 [S4.7]", { temperature: -0.1 }, "temperature"],
  ["temperature is at most 2 [S4.7]", { temperature: 2.1 }, "temperature"],
  ["temperature is a number [S4.7]", { temperature: "1" }, "temperature"],
  ["top_p is at least 0 [S4.8]", { top_p: -0.1 }, "top_p"],
  ["top_p is at most 1 [S4.8]", { top_p: 1.1 }, "top_p"],
  ["stop is a string or an array [S4.9]", { stop: 5 }, "stop"],
  ["stop is an array of strings [S4.9]", { stop: ["a", 5] }, "stop[1]"],
  ["n is at least 1 [S4.10]", { n: 0 }, "n"],
  ["n is at most 8, the model's bound [B11 S4.10]", { n: 64 }, "n", /at most 8 for this model, not 64/],
  ["n is at most 128 for any model", { n: 129 }, "n", /from 1 to 128|at most 128/],
  ["seed is an integer [S4.11]", { seed: 0.5 }, "seed"],
  ["seed is below 2^63 [S4.11]", { seed: 2 ** 63 + 2_048 }, "seed"],
  ["seed is at least -2^63 [S4.11]", { seed: -(2 ** 63) - 2_048 }, "seed"],
  ["presence_penalty is at most 2 [S4.12]", { presence_penalty: 2.1 }, "presence_penalty"],
  ["presence_penalty is at least -2 [S4.12]", { presence_penalty: -2.1 }, "presence_penalty"],
  ["frequency_penalty is at most 2 [S4.12]", { frequency_penalty: 2.1 }, "frequency_penalty"],
  ["frequency_penalty is at least -2 [S4.12]", { frequency_penalty: -2.1 }, "frequency_penalty"],
  ["logprobs is a boolean [S4.13]", { logprobs: 5 }, "logprobs"],
  ["top_logprobs is at most 20 [S4.13]", { logprobs: true, top_logprobs: 21 }, "top_logprobs"],
  ["top_logprobs is at least 0 [S4.13]", { logprobs: true, top_logprobs: -1 }, "top_logprobs"],
  ["top_logprobs needs logprobs [S4.13]", { top_logprobs: 2 }, "top_logprobs"],
  ["stream is a boolean [S4.14]", { stream: "true" }, "stream"],
  ["stream_options is an object [S4.15]", { stream_options: true }, "stream_options"],
  ["include_usage is a boolean [S4.15]", { stream_options: { include_usage: 1 } }, "stream_options.include_usage"],
  ["tools is an array [S8.1]", { tools: {} }, "tools"],
  ["a tool is of type function [S8.1]", { tools: [{ type: "web", function: { name: "f" } }] }, "tools[0].type"],
  ["a tool has a name [S8.1]", { tools: [{ type: "function", function: {} }] }, "tools[0].function.name"],
  [
    "a tool's parameters are an object [S8.1]",
    { tools: [{ type: "function", function: { name: "f", parameters: [] } }] },
    "tools[0].function.parameters",
  ],
  ["tool_choice is one of its words [S8.3]", { tools: [tool("f")], tool_choice: "any" }, "tool_choice"],
  [
    "tool_choice names a function of tools [S8.3]",
    { tools: [tool("f")], tool_choice: { type: "function", function: { name: "g" } } },
    "tool_choice",
  ],
  [
    "tool_choice names a function without tools [S8.3]",
    { tool_choice: { type: "function", function: { name: "g" } } },
    "tool_choice",
  ],
  ["tool_choice required needs tools [S8.3]", { tool_choice: "required" }, "tool_choice"],
  ["response_format has a known type [S9.3]", { response_format: { type: "xml" } }, "response_format.type"],
  ["response_format is an object [S9.3]", { response_format: "json" }, "response_format"],
  [
    "json_schema is required for its type [S9.1]",
    { response_format: { type: "json_schema" } },
    "response_format.json_schema",
  ],
  [
    "a json_schema has a name [S9.1]",
    { response_format: { type: "json_schema", json_schema: { schema: {} } } },
    "response_format.json_schema.name",
  ],
  [
    "a json_schema has a schema [S9.1]",
    { response_format: { type: "json_schema", json_schema: { name: "n" } } },
    "response_format.json_schema.schema",
  ],
  ["reasoning_effort is a string [S7.9]", { reasoning_effort: 1 }, "reasoning_effort"],
  [
    "general-3.8-27b rejects high [S7.8]",
    thinker({ reasoning_effort: "high" }),
    "reasoning_effort",
    /none, low, medium, xhigh/,
  ],
  [
    "small-24b rejects chat_template_kwargs [S7.10]",
    small({ chat_template_kwargs: { enable_thinking: false } }),
    "chat_template_kwargs",
  ],
  ["small-24b rejects empty chat_template_kwargs [S7.10]", small({ chat_template_kwargs: {} }), "chat_template_kwargs"],
  ["chat_template_kwargs is an object", { chat_template_kwargs: true }, "chat_template_kwargs"],
  [
    "enable_thinking is a boolean",
    { chat_template_kwargs: { enable_thinking: "no" } },
    "chat_template_kwargs.enable_thinking",
  ],
];
test.each(refused)("chat refuses with 400 and names it: %s [S18.3]", async (_sentence, more, param, message = /./) => {
  const answer = await api.post("/v1/chat/completions", chat(more));
  expect([answer.status, answer.json]).toEqual([
    400,
    { error: { message: expect.stringMatching(message), type: "invalid_request_error", param, code: "400" } },
  ]);
});

test.each(["max_tokens", "max_completion_tokens"])(
  "%s beyond the context window names the counts [S4.5 S18.4]",
  async (name) => {
    const { status, json } = await api.post("/v1/chat/completions", chat({ [name]: 32_769 }));
    const { type, code, param } = json.error;
    expect([status, type, code, param]).toEqual([400, "ContextWindowExceededError", "context_length_exceeded", name]);
    expect(json.error.message).toMatch(/32768 tokens.*32769 in the completion/);
  },
);
