/** The playground, with the real portal, the public API's real pipeline and simulated nodes. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { contract } from "../../src/surface/contract/contract.ts";
import { SlotState, type NodeView, type SlotView } from "../../src/nodes/node-view.ts";
import { startApi, type Harness, type SimAnswer } from "../api/api-harness.ts";
import { startPortal, type Person, type PortalRig } from "./portal-rig.ts";
import { until } from "../edge/raw-client.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import { makeRecord } from "../usage/usage-records.ts";
import { bodyBytesMax } from "../../src/api/body/body-receiver.ts";

let api: Harness;
let portal: PortalRig;
let ada: Person;
let slot: Pick<SlotView, "state" | "activeModel">;
let usualMs: number | undefined;
let count = 0;
beforeAll(async () => {
  api = await startApi();
  portal = await startPortal({
    parts: () => ({
      chat: (chat) => api.server.chat(chat),
      nodes: () => [nodeWith(slot)],
      usualWaitMs: () => usualMs,
      limiter: api.limiter,
    }),
  });
});
afterAll(async () => {
  await portal[Symbol.asyncDispose]();
  await api[Symbol.asyncDispose]();
});
beforeEach(async () => {
  ada = await portal.newAccount(`ACME ${++count}`, { package: "Starter" });
  api.nodes.sent.length = 0;
  api.refused.length = 0;
  usualMs = undefined;
  slot = { state: SlotState.ACTIVE, activeModel: asId("general-4-31b") };
  api.nodes.script = () => answering();
});
afterEach(async () => {
  await until(() => api.nodes.open === 0);
  await until(() => api.limiter.use(ada.accountId).parallel === 0);
  if (api.failures.length > 0) throw api.failures[0];
});

const nodeWith = (shown: typeof slot): NodeView => ({
  node: asId("n1"),
  reachable: true,
  reportedAtMs: 0,
  admitting: true,
  maintenance: false,
  slots: [
    {
      name: asId("a"),
      models: [asId("general-4-31b")],
      ...shown,
      running: 0,
      runningOfRouter: 0,
      inFlight: 0,
      unread: 0,
      waiting: 0,
      waiters: [],
      stateAgeMs: 0,
    },
  ],
});

const piece = (delta: object, more: object = {}) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta }], ...more })}\n\n`;
const usage = {
  prompt_tokens: 12,
  completion_tokens: 30,
  total_tokens: 42,
  completion_tokens_details: { reasoning_tokens: 20 },
};
const pieces = [
  piece({ role: "assistant" }),
  piece({ reasoning_content: 'she wrote "usage":{} once' }),
  piece({ content: "Grüße" }),
  `data: ${JSON.stringify({ choices: [], usage })}\n\n`,
  "data: [DONE]\n\n",
];

function answering(more: Partial<SimAnswer> = {}): SimAnswer {
  return { kind: "events", chunks: pieces, ...more };
}

const question = {
  ...{ model: "general-4-31b", messages: [{ role: "user", content: "Hello" }] },
  ...{ stream: true, stream_options: { include_usage: true } },
};
const picture = (url: string) => ({ role: "user", content: [{ type: "image_url", image_url: { url } }] });
const ask = (who = ada, more: object = {}) => portal.send("POST", "/chat", { ...question, ...more }, who);

/** Reads the portal's events by their names, and chunks as `message`. */
function eventsOf(text: string): { readonly event: string; readonly data: any }[] {
  return text.split("\n\n").flatMap((block) => {
    const data = /^data: (.*)$/m.exec(block)?.[1];
    if (data === undefined) return [];
    const event = /^event: (.*)$/m.exec(block)?.[1] ?? "message";
    return [{ event, data: data === "[DONE]" ? data : JSON.parse(data) }];
  });
}

describe("a chat in the playground", () => {
  test("sends the model's state, streams the API's chunks and ends with the cost", async () => {
    const answer = await ask();
    expect(answer).toMatchObject({ status: 200 });
    expect(answer.headers.get("content-type")).toContain("text/event-stream");
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const events = eventsOf(answer.text);
    expect(events.map(({ event }) => event)).toEqual(["state", ...pieces.map(() => "message"), "done"]);
    expect(events[0]!.data).toEqual({ state: "active" });
    expect(answer.text).toContain(pieces.join(""));
    expect(events.at(-1)!.data).toMatchObject({
      promptTokens: 12,
      completionTokens: 30,
      reasoningTokens: 20,
      credits: "63.000",
      firstTokenMs: expect.any(Number),
    });
  });

  test("is sent like a request with a key, and billed to the account as the user's own playground", async () => {
    const more = {
      ...{ reasoning_effort: "low", max_tokens: 50, temperature: 0, stop: ["x"] },
      tools: [{ type: "function", function: { name: "f", parameters: { type: "object", "2": 1, "1": 2 } } }],
      response_format: { type: "json_schema", json_schema: { name: "answer", schema: {}, strict: true } },
    };
    await ask(ada, more);
    const { request } = api.nodes.sent[0]!;
    expect(request.billing).toEqual({ accountId: ada.accountId, userId: ada.id, keyId: ada.id, factor: 1500n });
    expect(String(request.body)).toBe(JSON.stringify({ ...question, ...more }));
  });

  test("sends that the model is being activated before the node answers", async () => {
    slot = { state: SlotState.EMPTY };
    const { promise, resolve } = Promise.withResolvers<void>();
    api.nodes.script = () => answering({ held: promise });
    const response = await open();
    const reader = response.body!.getReader();
    const first = await reader.read();
    expect(eventsOf(String(Buffer.from(first.value!)))).toEqual([{ event: "state", data: { state: "activating" } }]);
    resolve();
    while (!(await reader.read()).done);
  });

  test("sends the recent waiting time for a model that is being activated, and none for an active model", async () => {
    usualMs = 7_000;
    expect(eventsOf((await ask()).text)[0]).toEqual({ event: "state", data: { state: "active" } });
    slot = { state: SlotState.EMPTY };
    expect(eventsOf((await ask()).text)[0]).toEqual({ event: "state", data: { state: "activating", usualMs } });
  });

  test("stops its request at the node when the client closes it", async () => {
    api.nodes.script = () => answering({ chunks: [pieces[0]!, new Promise(() => {})] });
    const stop = new AbortController();
    const response = await open(stop.signal);
    const reader = response.body!.getReader();
    for (let text = ""; !text.includes("assistant");) text += String(Buffer.from((await reader.read()).value!));
    stop.abort();
    await until(() => api.nodes.open === 0);
    await expect.poll(() => api.finished.at(-1)?.outcome).toBe("client-gone");
  });

  test("tells the caller alone what a stopped answer cost, once its record is committed", async () => {
    api.nodes.script = () => answering({ chunks: [pieces[0]!, new Promise(() => {})] });
    const stop = new AbortController();
    const requestId = (await open(stop.signal)).headers.get("x-request-id")!;
    expect(requestId).toBe(api.nodes.sent[0]!.request.requestId);
    stop.abort();
    const costFor = async (who: Person) => (await portal.get(`/chat/${requestId}`, who)).json.usage;
    expect(await costFor(ada)).toBe(null);
    const attempt = (number: number, outcome: "broken" | "client-ended", tokens: number) =>
      makeRecord(createRandom(1), Date.now(), {
        ...{ requestId: asId(requestId), attempt: number, outcome, promptTokens: tokens, completionTokens: tokens },
        ...{ accountId: ada.accountId, userId: ada.id, keyId: asId(ada.id), factor: millicredits(1_500n) },
        estimatedTokens: 0,
      });
    const { pool } = portal.database;
    await makeUsageDays(pool, [Date.now()]);
    await commitUsage(pool, [{ node: asId("n1"), record: attempt(1, "broken", 0) }]);
    expect(await costFor(ada)).toBe(null); // the second attempt answers
    await commitUsage(pool, [{ node: asId("n2"), record: attempt(2, "client-ended", 7) }]);
    expect(await costFor(ada)).toEqual({ promptTokens: 7, completionTokens: 7, credits: "21.000" });
    expect(await costFor(await portal.newUser(ada, "admin"))).toBe(null);
  });

  test("ends with an error event if a node refuses it after the state event", async () => {
    slot = { state: SlotState.EMPTY };
    const error = { message: "switching", type: "service_unavailable", param: null, code: "model_switching" };
    api.nodes.script = () => ({ status: 503, retryAfterSeconds: 3, chunks: [JSON.stringify({ error })] });
    const { status, text } = await ask();
    expect(status).toBe(200);
    expect(eventsOf(text)).toEqual([
      { event: "state", data: { state: "activating" } },
      { event: "error", data: { error, status: 503, retryAfterSeconds: 3 } },
    ]);
    expect(api.refused).toEqual(["model_switching"]);
  });

  test("has no end event if it breaks off", async () => {
    api.nodes.script = () => answering({ chunks: pieces.slice(0, 3), ending: "broken" });
    const response = await open();
    const reader = response.body!.getReader();
    let text = "";
    await expect(
      (async () => {
        for (let read = await reader.read(); !read.done; read = await reader.read())
          text += String(Buffer.from(read.value));
      })(),
    ).rejects.toThrow("terminated");
    expect(text).toContain('data: {"error"');
    expect(text).not.toContain("event: done");
  });

  function open(signal?: AbortSignal): Promise<Response> {
    return fetch(`${portal.origin}/api/chat`, {
      method: "POST",
      headers: { origin: portal.origin, "content-type": "application/json", cookie: ada.cookie },
      body: JSON.stringify(question),
      ...(signal ? { signal } : {}),
    });
  }
});

describe("a chat in the playground is refused like a request with a key", () => {
  test("above the account's requests per minute", async () => {
    for (let n = 0; n < 30; n++) await ask();
    expect(await ask()).toMatchObject({ status: 429, json: { error: { code: "rate_limit_exceeded" } } });
    expect(api.refused).toEqual(["rate_limit_minute"]);
  });

  test("at the user's credit limit, but with 429, because 401 would mean that the session has ended", async () => {
    await portal.database.pool.query("update users set limit_reached_until = 'infinity' where id = $1", [ada.id]);
    const answer = await ask();
    expect(answer).toMatchObject({ status: 429, json: { error: { code: "insufficient_quota", param: null } } });
    expect(answer.headers.get("x-should-retry")).toBe("false");
    expect(answer.json.error.message).toContain("Your credit limit");
    expect((await portal.get("/session", ada)).status).toBe(200);
    expect(contract.chat.summary).toContain("429 insufficient_quota");
    expect(api.refused).toEqual(["key_blocked_by_limit"]);
  });

  test("for a forbidden model, without a package, and with an exhausted quota", async () => {
    const { pool } = portal.database;
    await pool.query("update users set allowed_models = '{small-24b}' where id = $1", [ada.id]);
    expect(await ask()).toMatchObject({ status: 403, json: { error: { type: "key_model_access_denied" } } });
    await pool.query("update users set allowed_models = null where id = $1", [ada.id]);
    await pool.query("update accounts set exhausted_until = now() + interval '1 day' where id = $1", [ada.accountId]);
    expect(await ask()).toMatchObject({ status: 429, json: { error: { code: "insufficient_quota" } } });
    await pool.query("delete from subscriptions where account_id = $1", [ada.accountId]);
    expect(await ask()).toMatchObject({ status: 403, json: { error: { code: "no_package" } } });
    expect(api.nodes.sent).toEqual([]);
    expect(api.refused).toEqual(["key_model_access_denied", "insufficient_quota", "no_package"]);
  });

  test("for values that the API or the model does not accept, and without a stream", async () => {
    for (const [param, more] of [
      ["reasoning_effort", { model: "general-3.8-27b", reasoning_effort: "high" }],
      ["temperature", { temperature: 3 }],
      ["tools[0].function.name", { tools: [{ type: "function", function: {} }] }],
      ["response_format.json_schema", { response_format: { type: "json_schema" } }],
      ["messages[0].content[0].image_url.url", { messages: [picture("https://example.com/x.png")] }],
      ["stream", { stream: false }],
    ] as const)
      expect(await ask(ada, more)).toMatchObject({ status: 400, json: { error: { param } } });
    expect(api.nodes.sent).toEqual([]);
  });

  test("for a body that is no JSON or larger than any body of the API", async () => {
    const send = (body: string) =>
      fetch(`${portal.origin}/api/chat`, {
        method: "POST",
        headers: { origin: portal.origin, "content-type": "application/json", cookie: ada.cookie },
        body,
      });
    const broken = await send("{");
    expect([broken.status, ((await broken.json()) as { error: object }).error]).toMatchObject([400, { code: "400" }]);
    expect((await send("")).status).toBe(400);
    const large = await send(JSON.stringify({ ...question, more: "x".repeat(bodyBytesMax) }));
    expect(large.status).toBe(413);
    const allowed = JSON.stringify({ ...question, more: "x".repeat(bodyBytesMax - 1_000) });
    expect((await send(allowed)).status).toBe(200);
    expect(String(api.nodes.sent[0]!.request.body)).toBe(allowed);
  }, 30_000);

  test("without a session", async () => {
    expect(await portal.send("POST", "/chat", question)).toMatchObject({ status: 401 });
  });
});
