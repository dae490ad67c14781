/** Tests which parts of a node's answer reach a client, and that no page and no error repeats anything of a request. */
import { beforeEach, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, isUuidv7, type AccountId, type ModelId } from "@weiche/shared/ids.ts";
import { caller, catalogue, chat, startApi } from "./api-harness.ts";
import { RawClient, rawPost, until } from "../edge/raw-client.ts";

const api = await forThisFile(startApi());
beforeEach(() => {
  api.nodes.script = () => ({ chunks: ['{"ok":true}'] });
  api.nodes.sent.length = 0;
  api.placement.names = ["n1", "n2"];
  api.placement.refused = undefined;
});

const chatPath = "/v1/chat/completions";

test("the router ignores a request id of the client [S1.12]", async () => {
  const answer = await api.post(chatPath, chat(), { "x-request-id": "mine" });
  expect(isUuidv7(answer.headers.get("x-request-id")!)).toBe(true);
  expect(api.nodes.sent.at(-1)!.request.requestId).toBe(answer.headers.get("x-request-id"));
});

test("answers, streams and errors carry only the router's own headers [S1.13]", async () => {
  const error = '{"error":{"message":"m","type":"t","param":null,"code":"c","stack":"secret"},"more":1}';
  for (const head of [
    { status: 200, chunks: ["{}"] },
    { status: 200, kind: "events" as const, chunks: ["data: 1\n\n"] },
    { status: 500, chunks: [error] },
  ]) {
    api.nodes.script = () => head;
    const answer = await api.post(chatPath, chat());
    const ours = [
      "cache-control",
      "connection",
      "content-length",
      "content-type",
      "date",
      "keep-alive",
      "transfer-encoding",
      "x-accel-buffering",
      "x-request-id",
    ];
    expect([...answer.headers.keys()].filter((name) => !ours.includes(name))).toEqual([]);
    expect(answer.text).not.toContain("secret");
  }
});

test("no page and no error repeats anything of the request [D6 S1.13]", async () => {
  const canary = "kanarienvogel";
  const headers = {
    authorization: `Bearer ${canary}`,
    "x-forwarded-for": canary,
    cookie: canary,
    "user-agent": canary,
  };
  const answers = await Promise.all([
    api.fetch(`/${canary}?${canary}=${canary}`, { headers }),
    api.fetch(chatPath, { method: "POST", headers, body: canary }),
    ...[
      canary,
      `"${canary}`,
      { [canary]: canary },
      chat({ model: canary }),
      chat({ tool_choice: canary }),
      chat({ messages: [{ role: canary }] }),
      chat({ [canary]: 1, n: canary }),
    ].map((body) => api.post(chatPath, body)),
  ]);
  expect(answers.filter(({ text }) => text.includes(canary))).toEqual([]);
  expect(answers.every(({ status }) => status >= 400)).toBe(true);
});

const nodeError = (status: number, code: string, retryAfterSeconds?: number) => ({
  status,
  ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  chunks: [JSON.stringify({ error: { message: `says ${code}`, type: "t", param: null, code } })],
});
const ask = () => api.post(chatPath, chat());
test.each<[path: string, body: object, tokensMax: number]>([
  ["chat/completions", { messages: [{ role: "user", content: "x" }] }, 32_768],
  ["chat/completions", { messages: [{ role: "user", content: "x" }], n: 3 }, 3 * 32_768],
  ["chat/completions", { messages: [{ role: "user", content: "x" }], max_tokens: 10 }, 4_096 + 6 * 81 + 11],
  ["completions", { prompt: "x", n: 3, max_completion_tokens: 10 }, 3 * 32_768],
  ["completions", { prompt: "x", n: 3, max_tokens: 10 }, 4_096 + 6 * 57 + 3 * 11],
  ["embeddings", { input: "x".repeat(4_000) }, 8_192],
  ["embeddings", { input: ["x".repeat(4_000), "y".repeat(4_000)] }, 2 * 8_192],
])("for %s %j a node may bill at most %i tokens [A8]", async (path, body, tokensMax) => {
  const model = path === "embeddings" ? "vl-embedding-2b" : "coder-next";
  expect((await api.post(`/v1/${path}`, { model, ...body })).status).toBe(200);
  expect(api.nodes.sent.map(({ request }) => request.tokensMax)).toEqual([tokensMax]);
});

const nodesAsked = () => api.nodes.sent.map(({ node, request }) => `${node}/${request.attempt}`);

test("a stream's bytes pass unchanged under the router's headers", async () => {
  const events = ['data: {"choices":[]}\n\n', ": comment\n\n", "data: [DONE]\n\n"];
  api.nodes.script = () => ({ kind: "events", chunks: events });
  const answer = await api.post(chatPath, chat({ stream: true }));
  expect(answer.text).toBe(events.join(""));
  expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(answer.headers.get("cache-control")).toBe("no-cache");
  expect(answer.headers.get("x-accel-buffering")).toBe("no");
});

test("a node receives the billed account, the remaining time and the client's unchanged bytes [S20.2]", async () => {
  const body = '{ "model":"general-4-31b" , "messages":[{"role":"user","content":"\\u00e9"}],"unknown":1e2 }';
  const answer = await api.post(chatPath, body);
  const { node, request } = api.nodes.sent[0]!;
  expect(node).toBe("n1");
  expect(request).toMatchObject({
    path: chatPath,
    requestId: answer.headers.get("x-request-id"),
    attempt: 1,
    model: "general-4-31b",
    slot: "a",
    billing: { accountId: "account-1", userId: "user-1", keyId: "key-1", factor: 1500n },
  });
  expect(request.remainingMs).toBeGreaterThan(590_000);
  expect(request.remainingMs).toBeLessThanOrEqual(600_000);
  expect(request.body.toString()).toBe(body);
});

test("the factor valid when a request is accepted applies, however long its body takes", async () => {
  const startMs = Date.parse("2026-11-30T23:59:59Z");
  let nowMs = startMs;
  const id = asId<ModelId>("general-4-31b");
  const factors = [
    { validFromMs: 0, factor: millicredits(1_000n) },
    { validFromMs: startMs + 500, factor: millicredits(9_000n) },
  ];
  await using slow = await startApi({
    clock: {
      now: () => nowMs,
      monotonicMs: () => systemClock.monotonicMs(),
      after: (ms, run) => systemClock.after(ms, run),
    },
    catalogue: () => new Map([[id, { ...catalogue.get(id)!, factors }]]),
  });
  const request = rawPost(chatPath, JSON.stringify(chat()));
  const client = new RawClient(slow.port).send(request.slice(0, -10));
  await until(() => slow.limiter.use(asId("account-1")).parallel === 1);
  nowMs += 1_000;
  client.send(request.slice(-10));
  await until(() => slow.nodes.sent.length === 1);
  expect(slow.nodes.sent[0]!.request.billing.factor).toBe(1_000n);
  client.socket.destroy();
});

test("conversations of one account and model with the same beginning share an affinity", async () => {
  const key = async (more: object, account = "account-1") => {
    api.keys.set("sk-other", caller({ accountId: asId<AccountId>(account) }));
    await api.post(chatPath, chat(more as never), { authorization: "Bearer sk-other" });
    return api.placement.asked.at(-1)!.affinityKey;
  };
  const [system, user, more] = [
    { role: "system", content: "s" },
    { role: "user", content: "u" },
    { role: "user", content: "x" },
  ];
  const first = await key({ messages: [system, user] });
  expect(await key({ messages: [system, user, { role: "assistant", content: "a" }, more], temperature: 1 })).toBe(
    first,
  );
  const others = [
    await key({ messages: [system, more] }),
    await key({ messages: [system, user] }, "account-2"),
    await key({ messages: [system, user], model: "coder-next" }),
  ];
  expect(new Set([first, ...others]).size).toBe(4);
  await api.post("/v1/embeddings", { model: "vl-embedding-2b", input: "x" });
  expect(api.placement.asked.at(-1)!.affinityKey).toBeUndefined();
});

test("another node answers if the first is lost before the head of its answer [C2]", async () => {
  api.nodes.script = (_request, node) => (node === "n1" ? { lost: true } : { chunks: ["{}"] });
  expect((await ask()).status).toBe(200);
  expect(nodesAsked()).toEqual(["n1/1", "n2/2"]);
});

test("another node answers if the first is lost after the head and before the first byte [C2]", async () => {
  for (const broken of [{ ending: "broken" } as const, { failing: true } as const]) {
    api.nodes.sent.length = 0;
    api.nodes.script = (_request, node) =>
      node === "n1" ? { kind: "events", ...broken } : { kind: "events", chunks: ["data: 1\n\n"] };
    expect((await ask()).text).toBe("data: 1\n\n");
    expect(nodesAsked()).toEqual(["n1/1", "n2/2"]);
  }
});

test("a request is not sent to a third node after two nodes were lost [C2]", async () => {
  api.placement.names = ["n1", "n2", "n3"];
  api.nodes.script = () => ({ lost: true });
  const { status, json: body, headers } = await ask();
  expect([status, body.error.code, headers.get("retry-after")]).toEqual([503, "no_node_available", "1"]);
  expect(nodesAsked()).toEqual(["n1/1", "n2/2"]);
});

test("after a 503 of a node the request is sent to one other node", async () => {
  api.nodes.script = (_request, node) => (node === "n1" ? nodeError(503, "model_switching", 4) : { chunks: ["{}"] });
  expect((await ask()).status).toBe(200);
  expect(nodesAsked()).toEqual(["n1/1", "n2/2"]);
});

test.each([[["n1"]], [["n1", "n2"]], [["n1", "n2", "n3"]]])(
  "the client receives a 503 with retry-after if all nodes answer 503 (%s)",
  async (names) => {
    api.placement.names = names;
    api.nodes.script = () => nodeError(503, "model_switching", 4);
    const { status, json: body, headers } = await ask();
    expect([status, body.error.code, body.error.message, headers.get("retry-after")]).toEqual([
      503,
      "model_switching",
      "says model_switching",
      "4",
    ]);
    expect(nodesAsked().length).toBe(Math.min(2, names.length));
  },
);

test("the client receives the 503 of the first node if the second node is lost", async () => {
  api.nodes.script = (_request, node) => (node === "n1" ? nodeError(503, "overloaded", 7) : { lost: true });
  const { json: body, headers } = await ask();
  expect([body.error.code, headers.get("retry-after")]).toEqual(["overloaded", "7"]);
});

test.each([
  [400, "400"],
  [500, "500"],
  [504, "timeout"],
])("after a %i of a node no other node is asked", async (status, code) => {
  api.nodes.script = () => nodeError(status, code);
  const answer = await ask();
  expect([answer.status, answer.json.error.code, nodesAsked()]).toEqual([status, code, ["n1/1"]]);
});

test.each([
  ["no error object", { status: 500, chunks: ["<html>engine</html>"] }],
  ["a status that agents never send", { status: 302, chunks: ["{}"] }],
  ["an endless error", { status: 500, chunks: [Buffer.alloc(1 << 20, 65)] }],
])("a node's answer with %s counts as a lost node", async (_name, answer) => {
  api.nodes.script = () => answer;
  const { status, text } = await ask();
  expect(status).toBe(503);
  expect(text).not.toMatch(/engine|AAAA/);
  await until(() => api.nodes.open === 0);
});

test.each([
  ["no_node_available", "1", 0],
  ["no_node_available", "7", 6_400],
  ["no_node_available", "30", 3_600_000],
  ["maintenance", "5", 0],
] as const)("without a node: 503 %s with retry-after: %s [S18.8]", async (refused, retryAfter, awayMs) => {
  Object.assign(api.placement, { refused, awayMs });
  const { status, json: body, headers } = await ask();
  expect([status, body.error.code, headers.get("retry-after")]).toEqual([503, refused, retryAfter]);
  expect(api.nodes.sent).toEqual([]);
});

test("a JSON answer that breaks off before its first byte was sent becomes a 500 without a second attempt", async () => {
  api.nodes.script = () => ({ chunks: ['{"choices":[]}'], ending: "broken" });
  const { status, json: body } = await ask();
  expect([status, body.error.code, nodesAsked()]).toEqual([500, "500", ["n1/1"]]);
});
