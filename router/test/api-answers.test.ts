/** What of a node's answer reaches a client, and what of a request never does. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { isUuidv7 } from "@weiche/shared/ids.ts";
import { chat, json, sse, startApi, type Harness } from "./api-harness.ts";

let api: Harness;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api[Symbol.asyncDispose]());

const chatPath = "/v1/chat/completions";

test("a request id of the client is ignored", async () => {
  const answer = await api.post(chatPath, chat(), { "x-request-id": "mine" });
  expect(isUuidv7(answer.headers.get("x-request-id")!)).toBe(true);
  expect(api.nodes.sent.at(-1)!.request.requestId).toBe(answer.headers.get("x-request-id"));
});

test("only our own headers reach a client, of an answer, a stream and an error", async () => {
  const foreign = {
    server: "engine",
    "x-powered-by": "engine",
    "set-cookie": "a=b",
    via: "x",
    "x-request-id": "theirs",
  };
  const error = '{"error":{"message":"m","type":"t","param":null,"code":"c","stack":"secret"},"more":1}';
  for (const head of [
    { status: 200, headers: { ...json, ...foreign }, chunks: ["{}"] },
    { status: 200, headers: { ...sse, ...foreign }, chunks: ["data: 1\n\n"] },
    { status: 500, headers: { ...json, ...foreign }, chunks: [error] },
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
    expect(answer.headers.get("x-request-id")).not.toBe("theirs");
    expect(answer.text).not.toContain("secret");
  }
  api.nodes.script = () => ({ chunks: ['{"ok":true}'] });
});

test("no page and no error repeats anything of the request", async () => {
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
