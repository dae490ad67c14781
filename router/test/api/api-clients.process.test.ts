/** Tests the official client against the API: its error classes, its retries and its reaction to a broken stream. */
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI, {
  APIError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  PermissionDeniedError,
  RateLimitError,
} from "openai";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { allow, caller, startApi, type SimAnswer } from "./api-harness.ts";

const api = await forThisFile(startApi());
beforeAll(async () => {
  api.keys
    .set("sk-no-quota", { refused: "insufficient_quota", caller: caller() })
    .set("sk-no-package", { refused: "no_package" })
    .set("sk-small-only", allow("small-24b"))
    .set("sk-full", caller({ accountId: asId<AccountId>("full"), parallelRequests: 0 }));
});
beforeEach(() => {
  api.nodes.sent.length = 0;
  api.finished.length = 0;
  api.placement.names = ["n1"];
});

const client = (apiKey = "sk-good", maxRetries = 0, baseURL = `http://127.0.0.1:${api.port}/v1`) =>
  new OpenAI({ apiKey, baseURL, maxRetries });
const request = { model: "general-4-31b", messages: [{ role: "user" as const, content: "Hello" }] };
const completion = {
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "general-4-31b",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
};
const chunk = (delta: object) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "general-4-31b", choices: [{ index: 0, delta }] })}\n\n`;
const failing = (status: number, code: string, retryAfterSeconds?: number): SimAnswer => ({
  status,
  ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  chunks: [JSON.stringify({ error: { message: "m", type: "t", param: null, code } })],
});

test("the client lists models, chats and streams, with and without /v1 [S1.5]", async () => {
  for (const baseURL of [`http://127.0.0.1:${api.port}/v1`, `http://127.0.0.1:${api.port}`]) {
    const openai = client("sk-good", 0, baseURL);
    expect((await openai.models.list()).data.length).toBe(5);
    api.nodes.script = () => ({ chunks: [JSON.stringify(completion)] });
    const answer = await openai.chat.completions.create(request).withResponse();
    expect(answer.data.choices[0]!.message.content).toBe("Hi");
    expect(answer.request_id).toBe(api.nodes.sent.at(-1)!.request.requestId);
    api.nodes.script = () => ({
      kind: "events",
      chunks: [chunk({ role: "assistant", content: "Grü" }), chunk({ content: "ße" }), "data: [DONE]\n\n"],
    });
    let text = "";
    for await (const part of await openai.chat.completions.create({ ...request, stream: true }))
      text += part.choices[0]?.delta.content;
    expect(text).toBe("Grüße");
  }
});

test.each([
  [
    "AuthenticationError",
    AuthenticationError,
    () => client("sk-wrong").chat.completions.create(request),
    { status: 401, code: "401" },
  ],
  [
    "PermissionDeniedError",
    PermissionDeniedError,
    () => client("sk-no-package").chat.completions.create(request),
    { status: 403, code: "no_package" },
  ],
  [
    "PermissionDeniedError",
    PermissionDeniedError,
    () => client("sk-small-only").chat.completions.create(request),
    { type: "key_model_access_denied", code: "403", param: "model" },
  ],
  [
    "BadRequestError",
    BadRequestError,
    () => client().chat.completions.create({ ...request, model: "nope" }),
    { status: 400, param: "model" },
  ],
  [
    "BadRequestError",
    BadRequestError,
    () => client().chat.completions.create({ ...request, max_tokens: 40_000 }),
    { type: "ContextWindowExceededError" },
  ],
  [
    "RateLimitError",
    RateLimitError,
    () => client("sk-full").chat.completions.create(request),
    { status: 429, code: "rate_limit_exceeded" },
  ],
  [
    "RateLimitError",
    RateLimitError,
    () => client("sk-no-quota").chat.completions.create(request),
    { status: 429, code: "insufficient_quota" },
  ],
  [
    "InternalServerError",
    InternalServerError,
    () => client().chat.completions.create({ ...request, seed: 500 }),
    { status: 500, code: "500" },
  ],
  [
    "InternalServerError",
    InternalServerError,
    () => client().chat.completions.create({ ...request, seed: 503 }),
    { status: 503, code: "overloaded" },
  ],
] as const)("it throws %s", async (_name, kind, act, facts) => {
  api.nodes.script = ({ body }) => (body.includes("503") ? failing(503, "overloaded", 1) : failing(500, "500"));
  const error: unknown = await act().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(kind);
  expect(error).toMatchObject(facts);
});

test.each(["model_switching", "overloaded"])(
  "the client repeats a request after 503 %s and its retry-after, and succeeds [S18.8]",
  async (code) => {
    api.nodes.script = () =>
      api.nodes.sent.length === 1 ? failing(503, code, 1) : { chunks: [JSON.stringify(completion)] };
    const started = performance.now();
    expect((await client("sk-good", 2).chat.completions.create(request)).choices[0]!.message.content).toBe("Hi");
    expect(performance.now() - started).toBeGreaterThan(900);
    expect(api.finished.map(({ status }) => status)).toEqual([503, 200]);
  },
);

test("the error for the Responses API names what to use instead [S1.9]", async () => {
  const asked = client().responses.create({ model: request.model, input: "Hello" });
  await expect(asked).rejects.toThrow(/Use \/v1\/chat\/completions instead of \/v1\/responses/);
});

test("the client does not repeat a request when the quota is used up", async () => {
  await client("sk-no-quota", 1)
    .chat.completions.create(request)
    .catch(() => {});
  expect(api.finished.length).toBe(1);
});

const ofEach = (count: number, status: number) => Array<number>(count).fill(status);

/** Creates a client as users do, with its default number of retries. */
const plainClient = (port: number) => new OpenAI({ apiKey: "sk-good", baseURL: `http://127.0.0.1:${port}/v1` });

test("60 simultaneous requests of one address are all answered with the client's default retries [S19.2]", async () => {
  await using limited = await startApi({ limits: { perIpPerSecond: 10, perIpBurst: 20 } });
  limited.nodes.script = () => ({ chunks: [JSON.stringify(completion)] });
  const openai = plainClient(limited.port);
  await Promise.all(Array.from({ length: 60 }, () => openai.chat.completions.create(request)));
  expect(limited.finished.filter(({ status }) => status === 200).length).toBe(60);
  expect(limited.finished.filter(({ status }) => status === 503).length).toBeLessThanOrEqual(45);
});

test("eight simultaneous requests are all answered with the client's default retries if five may run [S19.2]", async () => {
  api.keys.set(
    "sk-good",
    caller({ accountId: asId<AccountId>("starter"), requestsPerMinute: 30, parallelRequests: 5 }),
  );
  // Longer than twice the shortest wait that a refusal can name.
  api.nodes.script = () => ({ held: sleep(2_200), chunks: [JSON.stringify(completion)] });
  const openai = plainClient(api.port);
  const askAtOnce = (count: number) =>
    Promise.all(Array.from({ length: count }, () => openai.chat.completions.create(request)));
  // These requests let the router learn how long answers take.
  await askAtOnce(3);
  api.finished.length = 0;
  await askAtOnce(8);
  api.keys.set("sk-good", caller());
  expect(api.finished.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
    ...ofEach(8, 200),
    ...ofEach(3, 429),
  ]);
});

test("the client reports a broken stream as an error, not as an end", async () => {
  api.nodes.script = () => ({ kind: "events", chunks: [chunk({ content: "Hi" })], ending: "broken" });
  const stream = await client().chat.completions.create({ ...request, stream: true });
  const read = async () => {
    for await (const part of stream) void part;
  };
  await expect(read()).rejects.toThrow(APIError);
});
