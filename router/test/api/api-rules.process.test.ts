/** Tests the rules of the API: keys, the order of refusals and their form. Each row proves a sentence of the conformance page. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { valuesMax } from "@weiche/shared/http/json-guard.ts";
import { parseCatalogue } from "@weiche/shared/catalogue.ts";
import { asId, isUuidv7, uuidv7TimeMs } from "@weiche/shared/ids.ts";
import { allow, caller, catalogue, chat, startApi, type Answer, type Harness } from "./api-harness.ts";

const announced = parseCatalogue(
  `- { id: soon, category: language, status: Demnächst, contextTokens: 100, factors: [{ validFrom: "2026-01-01T00:00:00Z", factor: 1 }] }`,
).catalogue!;

let api: Harness;
beforeAll(async () => {
  api = await startApi({ catalogue: () => new Map([...catalogue, ...announced]), limits: { perIpPerSecond: 0 } });
  api.keys
    .set("sk-revoked", { refused: "invalid_api_key", why: "revoked" })
    .set("sk-expired", { refused: "invalid_api_key", why: "expired" })
    .set("sk-over-limit", { refused: "invalid_api_key", why: "blocked-by-limit" })
    .set("sk-blocked-user", { refused: "invalid_api_key", why: "user-blocked" })
    .set("sk-blocked-account", { refused: "invalid_api_key", why: "account-blocked" })
    .set("sk-no-package", { refused: "no_package" })
    .set("sk-no-quota", { refused: "insufficient_quota", caller: allow("small-24b") })
    .set("sk-no-quota-no-minute", {
      refused: "insufficient_quota",
      caller: caller({ accountId: "q" as never, requestsPerMinute: 0, parallelRequests: 0 }),
    })
    .set("sk-small-only", allow("small-24b", "coder-next"))
    .set("sk-nothing", allow())
    .set("sk-no-minute", caller({ accountId: "m" as never, requestsPerMinute: 0 }))
    .set("sk-no-parallel", caller({ accountId: "p" as never, parallelRequests: 0 }));
});
afterAll(() => api[Symbol.asyncDispose]());

interface Expected {
  readonly status: number;
  readonly type?: string;
  readonly code?: string;
  readonly param?: string | null;
  readonly message?: RegExp;
  readonly page?: true;
  readonly headers?: Record<string, string | null>;
}
type Row = [sentence: string, ask: () => Promise<Answer>, expected: Expected];

const chatPath = "/v1/chat/completions";
const as = (key: string, body: unknown = chat(), headers = {}) =>
  api.post(chatPath, body, { authorization: `Bearer ${key}`, ...headers });
const without = (path: string, method = "POST") =>
  api.fetch(path, { method, ...(method === "POST" ? { body: "{}" } : {}) });

const invalidKey = { status: 401, type: "authentication_error", code: "401", param: null } as const;
const page403 = { status: 403, page: true } as const;
const bad = { status: 400, type: "invalid_request_error", code: "400" } as const;
const denied = { status: 403, type: "key_model_access_denied", code: "403", param: "model" } as const;
const rate = { status: 429, type: "rate_limit_error", code: "rate_limit_exceeded", param: null } as const;
const badId = {
  ...{ ...bad, param: "messages[0].tool_call_id" },
  message: /NUL characters and lone surrogates/,
};
const broken = (text: string, id = "call") =>
  as("sk-good", chat({ messages: [{ role: "tool", content: text, tool_call_id: id }], stop: text }));
const embed = { model: "vl-embedding-2b", input: "x" };
const prompt = { model: "coder-next", prompt: "x" };
const twice = (first: string, second: string) =>
  api.fetch(chatPath, {
    method: "POST",
    body: "{}",
    headers: [
      ["authorization", first],
      ["authorization", second],
    ],
  });
const deep = `{"model":"general-4-31b","messages":${"[".repeat(70)}${"]".repeat(70)}}`;

const rows: Row[] = [
  ["chat completions answer [S1.1]", () => api.post(chatPath, chat()), { status: 200 }],
  ["chat completions answer without /v1 [S1.5]", () => api.post("/chat/completions", chat()), { status: 200 }],
  ["completions answer [S1.4]", () => api.post("/v1/completions", prompt), { status: 200 }],
  ["completions answer without /v1 [S1.5]", () => api.post("/completions", prompt), { status: 200 }],
  ["embeddings answer [S1.2]", () => api.post("/v1/embeddings", embed), { status: 200 }],
  ["embeddings answer without /v1 [S1.5]", () => api.post("/embeddings", embed), { status: 200 }],
  ["models are listed [S1.3]", () => api.get("/v1/models"), { status: 200 }],
  ["models are listed without /v1 [S1.5]", () => api.get("/models"), { status: 200 }],
  ["a path with a slash at its end [S1.6]", () => api.get("/v1/models/?x=1"), { status: 200 }],
  ["a path with a slash at its end, without /v1 [S1.6]", () => api.post("/chat/completions/", chat()), { status: 200 }],
  ["a path with doubled slashes [S1.6]", () => api.post("//v1//chat///completions//", chat()), { status: 200 }],
  ["a path with doubled slashes, without /v1 [S1.6]", () => api.post("//embeddings", embed), { status: 200 }],
  ["a query does not change the path", () => api.post(`${chatPath}?api-version=1`, chat()), { status: 200 }],

  ...["responses", "assistants", "threads", "files", "batches", "fine_tuning/jobs", "moderations"].map((name): Row => [
    `/v1/${name} is not supported [S1.9]`,
    () => without(`/v1/${name}`),
    page403,
  ]),
  ...["images/generations", "audio/speech", "audio/transcriptions", "audio/translations"].map((name): Row => [
    `/v1/${name} is not supported [S1.9]`,
    () => without(`/v1/${name}`),
    page403,
  ]),
  ["any other path is not supported [S1.10 S18.2]", () => without("/"), page403],
  ["a single model has no path [S1.10]", () => api.get("/v1/models/small-24b"), page403],
  ["a path in capitals is another path [S1.10]", () => api.get("/V1/MODELS"), page403],
  ["the prefix /v1 is accepted only once [S1.10]", () => api.get("/v1/v1/models"), page403],
  ["a path that cannot be decoded [S1.10]", () => without("/v1/%zz"), page403],
  ["GET on chat completions [S1.10]", () => api.get(chatPath), page403],
  ["POST on models [S1.10]", () => api.post("/v1/models", {}), page403],
  ["DELETE on models [S1.10]", () => api.fetch("/v1/models", { method: "DELETE" }), page403],
  ["OPTIONS [S1.10]", () => api.fetch(chatPath, { method: "OPTIONS" }), page403],
  ["a method of WebDAV [S1.10]", () => api.fetch("/v1/models", { method: "PROPFIND" }), page403],

  ["chat needs a key [E4 S1.7 S13.2]", () => without(chatPath), invalidKey],
  ["completions need a key [S1.7]", () => without("/v1/completions"), invalidKey],
  ["embeddings need a key [S1.7]", () => without("/v1/embeddings"), invalidKey],
  ["models need a key [S1.7]", () => without("/v1/models", "GET"), invalidKey],
  ["a wrong key [S13.2]", () => as("sk-wrong"), { ...invalidKey, message: /valid API key/ }],
  ["a revoked key [S13.3]", () => as("sk-revoked"), { ...invalidKey, message: /revoked/ }],
  ["an expired key [S13.3]", () => as("sk-expired"), { ...invalidKey, message: /expired/ }],
  ["a key that is blocked by a limit [S13.3]", () => as("sk-over-limit"), { ...invalidKey, message: /limit/ }],
  ["a key of a blocked user [S13.3]", () => as("sk-blocked-user"), { ...invalidKey, message: /blocked/ }],
  [
    "a key of a blocked account [S13.3]",
    () => as("sk-blocked-account"),
    { ...invalidKey, message: /operator of this service/ },
  ],
  [
    "another scheme than Bearer [S13.1]",
    () => api.post(chatPath, chat(), { authorization: "Basic sk-good" }),
    invalidKey,
  ],
  ["Bearer without a key [S13.1]", () => api.post(chatPath, chat(), { authorization: "Bearer " }), invalidKey],
  [
    "two keys in one header [S13.1]",
    () => api.post(chatPath, chat(), { authorization: "Bearer sk-good sk-good" }),
    invalidKey,
  ],
  [
    "a key in another header than Authorization [S13.1]",
    () => api.fetch("/v1/models", { headers: { "x-api-key": "sk-good" } }),
    invalidKey,
  ],
  [
    "the scheme in any case [S13.1]",
    () => api.post(chatPath, chat(), { authorization: "bEARER sk-good" }),
    { status: 200 },
  ],
  ["two different credentials [E4 S13.1]", () => twice("Bearer sk-good", "Bearer sk-other"), bad],
  [
    "two different credentials, the first of them wrong [E4 S13.1]",
    () => twice("Bearer sk-wrong", "Bearer sk-good"),
    bad,
  ],

  ["no active package [S13.5]", () => as("sk-no-package"), { status: 403, code: "no_package", param: null }],
  [
    "models need a package [S2.6 S13.5]",
    () => api.get("/v1/models", { authorization: "Bearer sk-no-package" }),
    { status: 403, code: "no_package" },
  ],
  [
    "the quota is used up [S18.5]",
    () => as("sk-no-quota"),
    {
      status: 429,
      type: "insufficient_quota",
      code: "insufficient_quota",
      param: null,
      headers: { "x-should-retry": "false", "retry-after": null },
    },
  ],
  [
    "models are listed without quota [S2.6]",
    () => api.get("/v1/models", { authorization: "Bearer sk-no-quota" }),
    { status: 200 },
  ],
  [
    "requests per minute [S18.6 S19.2]",
    () => as("sk-no-minute"),
    { ...rate, message: /per minute/, headers: { "retry-after": "60", "x-should-retry": null } },
  ],
  [
    "parallel requests [S18.6 S19.3]",
    () => as("sk-no-parallel"),
    { ...rate, message: /parallel requests/, headers: { "retry-after": "60" } },
  ],
  [
    "the list of models does not count as a request per minute [S2.6]",
    () => api.get("/v1/models", { authorization: "Bearer sk-no-minute" }),
    { status: 200 },
  ],
  [
    "the list of models does not count as a parallel request [S2.6]",
    () => api.get("/v1/models", { authorization: "Bearer sk-no-parallel" }),
    { status: 200 },
  ],

  [
    "a body over 20 MB [S18.2]",
    () => api.post(chatPath, Buffer.alloc((20 << 20) + 1, 32)),
    { status: 413, page: true },
  ],
  [
    "a body without Content-Type application/json [S1.8]",
    () => api.post(chatPath, chat(), { "content-type": "text/plain" }),
    bad,
  ],
  [
    "a Content-Type with a parameter [S1.8]",
    () => api.post(chatPath, chat(), { "content-type": "Application/JSON ; charset=utf-8" }),
    { status: 200 },
  ],
  [
    "a byte order mark before the body [S1.8]",
    () => api.post(chatPath, `\ufeff${JSON.stringify(chat())}`),
    { status: 200 },
  ],
  ["a byte order mark alone", () => api.post(chatPath, "\ufeff"), { ...bad, message: /JSON/, param: null }],
  ["a compressed body [S1.8]", () => api.post(chatPath, chat(), { "content-encoding": "gzip" }), bad],
  ["an empty body [S1.8]", () => api.post(chatPath, ""), bad],
  ["a body that is no JSON [S1.8]", () => api.post(chatPath, "{"), { ...bad, message: /JSON/, param: null }],
  ["invalid UTF-8 [S18.10]", () => api.post(chatPath, Buffer.from([0x22, 0xff, 0x22])), { ...bad, message: /UTF-8/ }],
  ["JSON deeper than 64 [S18.10]", () => api.post(chatPath, deep), { ...bad, message: /64/ }],
  [
    "a body of more than 32,768 values [S18.10]",
    () => api.post(chatPath, chat({ x: Array(valuesMax).fill(0) })),
    { ...bad, message: /more than 32768 values/, param: null },
  ],
  ["a member twice [S18.10]", () => api.post(chatPath, '{"model":"a","model":"b"}'), { ...bad, message: /twice/ }],
  ["__proto__ [S18.10]", () => api.post(chatPath, '{"__proto__":{}}'), { ...bad, message: /__proto__/ }],
  [
    "half a surrogate pair in the name of a member [S18.10]",
    () => api.post(chatPath, '{"\\ud800":1}'),
    { ...bad, message: /surrogate/ },
  ],
  ["NUL in the name of a member [S18.10]", () => api.post(chatPath, '{"\\u0000":1}'), { ...bad, message: /NUL/ }],
  ["NUL in texts [S18.10]", () => broken("\0"), { status: 200 }],
  ["half a surrogate pair in texts [S18.10]", () => broken("\ud800"), { status: 200 }],
  ["NUL in an id [S18.10]", () => broken("x", "a\0"), badId],
  ["half a surrogate pair in an id [S18.10]", () => broken("x", "a\ud800"), badId],
  ["a body that is no object [S1.8]", () => api.post(chatPath, "[]"), { ...bad, message: /object/ }],

  ["an unknown model [S2.5]", () => as("sk-good", chat({ model: "nope" })), { ...bad, param: "model" }],
  ["an announced model [S2.4]", () => as("sk-good", chat({ model: "soon" })), { ...bad, param: "model" }],
  [
    "a model that the key may not use [S13.7]",
    () => as("sk-small-only"),
    { ...denied, message: /small-24b, coder-next\./ },
  ],
  ["a key that may use nothing [S13.7]", () => as("sk-nothing"), { ...denied, message: /none/ }],
  ["a model that the key may use [S13.7]", () => as("sk-small-only", chat({ model: "small-24b" })), { status: 200 }],

  [
    "a path is refused before the key [S13.8]",
    () => api.post("/v1/files", {}, { authorization: "Bearer sk-wrong" }),
    page403,
  ],
  ["a key is refused before the size [S13.8]", () => as("sk-wrong", Buffer.alloc((20 << 20) + 1)), invalidKey],
  [
    "a key is refused before the body is checked [D4 S13.8]",
    () => as("sk-wrong", "{", { "content-type": "!" }),
    invalidKey,
  ],
  [
    "the package is checked before the body [S13.8]",
    () => as("sk-no-package", "{"),
    { status: 403, code: "no_package" },
  ],
  [
    "the quota is checked before the body [S13.8]",
    () => as("sk-no-quota", "{"),
    { status: 429, code: "insufficient_quota" },
  ],
  [
    "the quota is checked before the rate",
    () => as("sk-no-quota-no-minute"),
    { status: 429, code: "insufficient_quota", headers: { "x-should-retry": "false", "retry-after": null } },
  ],
  ["limits are checked before the body [S13.8]", () => as("sk-no-minute", "{"), rate],
  ["limits are checked before the size", () => as("sk-no-minute", Buffer.alloc((20 << 20) + 1)), rate],
  [
    "the size is checked before the JSON",
    () => as("sk-good", Buffer.alloc((20 << 20) + 1, 0)),
    { status: 413, page: true },
  ],
  ["JSON is checked before the schema", () => as("sk-good", '{"model":5,"model":6}'), { ...bad, param: null }],
  [
    "the schema is checked before the model",
    () => as("sk-good", chat({ model: "nope", n: 0 })),
    { ...bad, param: "n" },
  ],
  [
    "the existence of a model is checked before the right to use it",
    () => as("sk-nothing", chat({ model: "nope" })),
    bad,
  ],
  [
    "the right to use a model is checked before its rules",
    () => as("sk-nothing", chat({ max_tokens: 99_999 })),
    denied,
  ],
];

test.each(rows)("%s [S1.12 S18.1]", async (_sentence, ask, expected) => {
  const answer = await ask();
  expect(answer.status).toBe(expected.status);
  expect(isUuidv7(answer.headers.get("x-request-id") ?? "")).toBe(true);
  const isPage = expected.page === true;
  expect(answer.headers.get("content-type")).toBe(`${isPage ? "text/html" : "application/json"}; charset=utf-8`);
  expect(isPage).toBe(answer.text.includes("<!doctype html>"));
  for (const [name, value] of Object.entries(expected.headers ?? {})) expect(answer.headers.get(name)).toBe(value);
  if (expected.status === 200 || isPage) return;
  expect(Object.keys(answer.json)).toEqual(["error"]);
  expect(Object.keys(answer.json.error).sort()).toEqual(["code", "message", "param", "type"]);
  const { message = /./, type, code, param } = expected;
  const known = Object.entries({ type, code, param }).filter(([, value]) => value !== undefined);
  expect(answer.json.error).toMatchObject(Object.fromEntries(known));
  expect(answer.json.error.message).toMatch(message);
});

test("errors for missing, wrong, revoked, expired and blocked keys differ only in the message of existing keys [S13.3]", async () => {
  const keys = ["sk-wrong", "sk-revoked", "sk-expired", "sk-over-limit", "sk-blocked-user", "sk-blocked-account"];
  const answers = await Promise.all([without(chatPath), ...keys.map((key) => as(key))]);
  const rest = answers.map(({ status, headers, json: { error } }) => {
    const own = new Set(["date", "x-request-id", "content-length"]);
    const same = [...headers].map(([name, value]) => (own.has(name) ? name : `${name}: ${value}`));
    return JSON.stringify([status, same, error.type, error.code, error.param]);
  });
  expect(new Set(rest).size).toBe(1);
  expect(answers[0]!.json).toEqual(answers[1]!.json);
  expect(new Set(answers.map((answer) => answer.json.error.message)).size).toBe(6);
});

test("the list of models has id and constant fields, includes only the key's models and no announced model [S2.2 S2.3]", async () => {
  const all = await api.get("/v1/models");
  expect(all.json).toEqual({
    object: "list",
    data: [...catalogue.keys()].map((id) => ({
      id,
      object: "model",
      created: expect.any(Number),
      owned_by: expect.any(String),
    })),
  });
  const few = await api.get("/v1/models", { authorization: "Bearer sk-small-only" });
  expect(few.json.data.map(({ id }: { id: string }) => id)).toEqual(["small-24b", "coder-next"]);
  const none = await api.get("/v1/models", { authorization: "Bearer sk-nothing" });
  expect(none.json).toEqual({ object: "list", data: [] });
});

test("a key is checked at the time of its request's id, which also decides on the billing period", async () => {
  await using api = await startApi();
  const asked: unknown[] = [];
  const find = api.keys.find.bind(api.keys);
  api.keys.find = (...given: [string, number?]) => {
    asked.push(given[1]);
    return find(given[0]);
  };
  const answer = await api.get("/v1/models");
  expect(asked).toEqual([uuidv7TimeMs(asId(answer.headers.get("x-request-id")!))]);
});

test("refusals with different remedies are counted by different reasons", async () => {
  const nodeRefuses = (param: string) => () => ({
    status: 400,
    chunks: [JSON.stringify({ error: { message: "m", type: "invalid_request_error", param, code: "400" } })],
  });
  const counted = async (body: object) => {
    api.refused.length = 0;
    expect((await api.post("/v1/chat/completions", body)).status).toBe(400);
    return api.refused;
  };
  expect(await counted(chat({ n: 9 }))).toEqual(["too_many_answers"]);
  for (const [param, word] of [
    ["n", "too_many_answers"],
    ["tools[0].function.parameters", "schema_refused"],
    ["response_format.json_schema.schema", "schema_refused"],
    ["temperature", "invalid_request"],
  ] as const) {
    api.nodes.script = nodeRefuses(param);
    expect(await counted(chat())).toEqual([word]);
  }
});
