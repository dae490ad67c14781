/** Tests models with rules of their own. Such models need only entries of the catalogue and no code. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseCatalogue } from "@weiche/shared/catalogue.ts";
import { startApi, type Harness } from "./api-harness.ts";

const five = readFileSync(join(import.meta.dirname, "../../../deploy/catalogue.yaml"), "utf8");
const more = `
  - id: deep-7b
    category: language
    status: Auslaufend
    contextTokens: 4096
    factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 0.125 }]
    reasoning: { mode: default-on, efforts: [minimal, maximal], default: minimal, templateKwargs: rejected }
    tools: { enforced: false }
    images: { max: 2, formats: [webp] }

  - id: plain-3b
    category: coding
    status: Verfügbar
    contextTokens: 100000
    factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 3 }]
    reasoning: { mode: optional, efforts: [none, high] }

  - id: short-vectors
    category: embeddings
    status: Beta
    contextTokens: 512
    factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 0.1 }]
    embeddings: { dimensions: { min: 8, max: 32, default: 16 }, inputTokens: 512 }
`;

let api: Harness;
beforeAll(async () => {
  const { catalogue } = parseCatalogue(five.replace(/^changes:/m, (changes) => more + changes));
  api = await startApi({ catalogue: () => catalogue! });
});
afterAll(() => api[Symbol.asyncDispose]());

const webp = "data:image/webp;base64,UklGRhoAAABXRUJQVlA4TA0AAAAvAAAA";
const png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";
const images = (...urls: string[]) => ({
  messages: [{ role: "user", content: urls.map((url) => ({ type: "image_url", image_url: { url } })) }],
});
const thinking = { chat_template_kwargs: { enable_thinking: true } };
const [chat, embeddings] = ["/v1/chat/completions", "/v1/embeddings"];
const url = "messages[0].content[0].image_url.url";

type Row = [sentence: string, model: string, path: string, more: object, refused?: [param: string, message: RegExp]];
const rows: Row[] = [
  ["a model for chats answers a chat", "deep-7b", chat, {}],
  ["a model accepts its own efforts", "deep-7b", chat, { reasoning_effort: "maximal" }],
  [
    "a model refuses efforts of other models",
    "deep-7b",
    chat,
    { reasoning_effort: "low" },
    ["reasoning_effort", /minimal, maximal/],
  ],
  [
    "a model whose reasoning cannot be disabled refuses `none`",
    "deep-7b",
    chat,
    { reasoning_effort: "none" },
    ["reasoning_effort", /minimal, maximal/],
  ],
  [
    "a model without template arguments refuses them",
    "deep-7b",
    chat,
    thinking,
    ["chat_template_kwargs", /not accepted/],
  ],
  ["a model accepts its two images", "deep-7b", chat, images(webp, webp)],
  ["a model refuses a third image", "deep-7b", chat, images(webp, webp, webp), ["messages", /at most 2/]],
  ["a model refuses another image format", "deep-7b", chat, images(png), [url, /one of webp/]],
  ["max_tokens may equal the context window", "deep-7b", chat, { max_tokens: 4_096 }],
  [
    "max_tokens above the context window is refused",
    "deep-7b",
    chat,
    { max_tokens: 4_097 },
    ["max_tokens", /4096.*4097/],
  ],
  ["a model with template arguments accepts them", "plain-3b", chat, thinking],
  ["another model accepts its own efforts", "plain-3b", chat, { reasoning_effort: "high" }],
  [
    "another model refuses an effort between its own",
    "plain-3b",
    chat,
    { reasoning_effort: "medium" },
    ["reasoning_effort", /none, high/],
  ],
  ["a model without images refuses them", "plain-3b", chat, images(webp), [url, /no images/]],
  ["max_tokens may equal a larger context window", "plain-3b", chat, { max_tokens: 100_000 }],
  [
    "max_tokens above the larger context window is refused",
    "plain-3b",
    chat,
    { max_tokens: 100_001 },
    ["max_tokens", /100000.*100001/],
  ],
  ["a language model refuses embeddings", "plain-3b", embeddings, { input: "x" }, ["model", /no embedding model/]],
  ["an embedding model embeds", "short-vectors", embeddings, { input: "x" }],
  ["an embedding model accepts its smallest dimensions", "short-vectors", embeddings, { input: "x", dimensions: 8 }],
  [
    "an embedding model refuses fewer dimensions",
    "short-vectors",
    embeddings,
    { input: "x", dimensions: 7 },
    ["dimensions", /from 8 to 32/],
  ],
  [
    "an embedding model refuses more dimensions than it has",
    "short-vectors",
    embeddings,
    { input: "x", dimensions: 33 },
    ["dimensions", /from 8 to 32/],
  ],
  ["an embedding model refuses chats", "short-vectors", chat, {}, ["model", /embedding model/]],
  ["the five existing models keep their rules", "general-3.8-27b", chat, { reasoning_effort: "xhigh", ...thinking }],
];

test.each(rows)("a catalogue with more models: %s [S2.8]", async (_sentence, model, path, asked, refused) => {
  const body = path === chat ? { messages: [{ role: "user", content: "Hello" }] } : {};
  const { status, json } = await api.post(path, { ...body, model, ...asked });
  const [param, message] = refused ?? [undefined, /^$/];
  expect([status, json.error?.param]).toEqual([refused ? 400 : 200, param]);
  expect(json.error?.message ?? "").toMatch(message);
});

test("added models are listed after the five existing models, and nodes receive their names [S2.8]", async () => {
  const { json } = await api.get("/v1/models");
  expect(json.data.slice(5).map(({ id }: { id: string }) => id)).toEqual(["deep-7b", "plain-3b", "short-vectors"]);
  await api.post(embeddings, { model: "short-vectors", input: "x" });
  expect(api.placement.asked.at(-1)).toMatchObject({ model: "short-vectors" });
  expect(api.nodes.sent.at(-1)!.request.billing.factor).toBe(100n);
});
