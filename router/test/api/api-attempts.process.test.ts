/** Tests after which failures a second node is asked, and which outcome placement records for each attempt. */
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { errorBody, ApiError, type ApiErrorKind } from "@weiche/shared/errors.ts";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { chat, startApi, type SimAnswer } from "./api-harness.ts";
import { RawClient, rawPost, until } from "../edge/raw-client.ts";

const api = await forThisFile(startApi());
const path = "/v1/chat/completions";
beforeEach(() => {
  api.placement.names = ["n1", "n2", "n3"];
  for (const list of [api.nodes.sent, api.ends, api.verdicts]) list.length = 0;
});

const whole: SimAnswer = { chunks: ["{}"] };
const error = (kind: ApiErrorKind, more: Partial<SimAnswer> = {}): SimAnswer => {
  const told = new ApiError(kind, "says no");
  return { status: told.status, chunks: [JSON.stringify(errorBody(told))], ...more };
};
const failed = error("internal", { nodeFault: "node-failed" });
const first = (answer: SimAnswer) => (api.nodes.script = (_request, node) => (node === "n1" ? answer : whole));
const nodesAsked = () => api.nodes.sent.map(({ node, request }) => `${node}/${request.attempt}`);

async function ask(): Promise<readonly [number, string | undefined]> {
  const { status, json: body } = await api.post(path, chat());
  return [status, body?.error?.code];
}

test("after a 500 by a fault of a node or its engine one other node is asked, and the first attempt costs nothing [C8]", async () => {
  first(failed);
  expect(await ask()).toEqual([200, undefined]);
  expect(nodesAsked()).toEqual(["n1/1", "n2/2"]);
  await until(() => api.ends.length === 2);
  expect(api.ends).toEqual(["n1 failed", "n2 served"]);
  expect(api.verdicts).toEqual(["void n1 1", "settled n2 2"]);
});

test("after two such failures the client receives the error, and no third node is asked", async () => {
  api.nodes.script = () => failed;
  expect(await ask()).toEqual([500, "500"]);
  expect(nodesAsked()).toEqual(["n1/1", "n2/2"]);
  expect(api.ends).toEqual(["n1 failed", "n2 failed"]);
});

const refused = error("invalid_request", { nodeFault: "engine-refused" });

test("a request that the engine of one node refuses is served by another, and the refusal counts as a failure [C8]", async () => {
  first(refused);
  expect(await ask()).toEqual([200, undefined]);
  await until(() => api.ends.length === 2);
  expect(nodesAsked()).toEqual(["n1/1", "n2/2"]);
  expect(api.ends.toSorted()).toEqual(["n1 failed", "n2 served"]);
});

const away = error("model_unavailable", { nodeFault: "engine-away" });

test("if the only node's engine does not listen, the node is asked again, because it holds the request for the restart [C6]", async () => {
  api.placement.names = ["n1"];
  api.nodes.script = (request) => (request.attempt === 1 ? away : whole);
  expect(await ask()).toEqual([200, undefined]);
  expect(nodesAsked()).toEqual(["n1/1", "n1/2"]);
  await until(() => api.ends.length === 2);
  expect(api.ends).toEqual(["n1 failed", "n1 served"]);
  expect(api.verdicts).toEqual(["refused n1 1", "settled n1 2"]);
});

test("if a node's engine does not listen, another node is asked rather than the same one", async () => {
  first(away);
  expect(await ask()).toEqual([200, undefined]);
  expect(nodesAsked()).toEqual(["n1/1", "n2/2"]);
});

test("a node that refuses for another reason is not asked again", async () => {
  api.placement.names = ["n1"];
  api.nodes.script = () => error("model_unavailable");
  expect(await ask()).toEqual([503, "model_unavailable"]);
  expect(nodesAsked()).toEqual(["n1/1"]);
});

test.each([2, 1])(
  "a request that the engines of %i nodes refuse, and no other serves, counts against no node [C8]",
  async (nodes) => {
    api.placement.names = ["n1", "n2", "n3"].slice(0, nodes);
    api.nodes.script = () => refused;
    expect(await ask()).toEqual([400, "400"]);
    await until(() => api.ends.length === nodes);
    expect(api.ends).not.toContainEqual(expect.stringContaining("failed"));
  },
);

test.each<[string, SimAnswer, number, string]>([
  ["has no room", error("overloaded"), 400, "n2 overloaded"],
  ["switches", error("model_switching"), 400, "n2 untold"],
  ["fails", failed, 400, "n2 failed"],
  ["is lost", { lost: true }, 400, "n2 failed"],
  ["loses its engine", error("engine_died", { engineDeath: "alone" }), 400, "n2 failed"],
  ["times out", error("timeout"), 400, "n2 untold"],
  ["finds the prompt too long", error("context_window_exceeded"), 400, "n2 untold"],
])("the client receives the first engine's refusal if the second node %s [C8]", async (what, answer, status, end) => {
  api.nodes.script = (_request, node) => (node === "n1" ? refused : answer);
  const { status: given, json } = await api.post(path, chat({ messages: [{ role: "user", content: what }] }));
  const code = what === "finds the prompt too long" ? "context_length_exceeded" : "400";
  expect([given, json?.error?.code]).toEqual([status, code]);
  await until(() => api.ends.length === 2);
  expect(api.ends.toSorted()).toEqual(["n1 untold", end]);
});

test("the client receives such a failure at once if there is no other node", async () => {
  api.placement.names = ["n1"];
  api.nodes.script = () => failed;
  expect(await ask()).toEqual([500, "500"]);
});

test.each<[string, SimAnswer, readonly [number, string], string]>([
  ["an engine that died", error("engine_died", { engineDeath: "alone" }), [500, "engine_died"], "failed"],
  ["an engine that hung", error("internal", { nodeFault: "engine-lost" }), [500, "500"], "failed"],
  ["the request's own mistake", error("invalid_request"), [400, "400"], "untold"],
  ["a prompt that is too long", error("context_window_exceeded"), [400, "context_length_exceeded"], "untold"],
  ["the time limit", error("timeout"), [504, "timeout"], "untold"],
  ["a 500 without a reason", error("internal"), [500, "500"], "untold"],
])("no other node is asked after %s [C8]", async (_what, answer, seen, end) => {
  first(answer);
  expect(await ask()).toEqual(seen);
  expect([nodesAsked(), api.ends]).toEqual([["n1/1"], [`n1 ${end}`]]);
});

test.each<[string, SimAnswer, string]>([
  ["an engine that does not answer or start", error("model_unavailable"), "failed"],
  ["a node that is lost", { lost: true }, "failed"],
  ["a node that is lost after its head", { kind: "events", ending: "broken" }, "failed"],
  ["an answer that is not an error object", { status: 500, chunks: ["<html>"] }, "failed"],
  ["a status that no agent sends", error("rate_limit_exceeded"), "failed"],
  ["another status that no agent sends", error("invalid_api_key"), "failed"],
  ["a slot without room", error("overloaded"), "overloaded"],
  ["a node without room", error("overloaded", { nodeFault: "node-busy" }), "untold"],
  ["a slot that switches", error("model_switching"), "untold"],
  ["a node in maintenance", error("maintenance"), "untold"],
])("another node is asked after %s", async (_what, answer, end) => {
  first(answer);
  expect(await ask()).toEqual([200, undefined]);
  await until(() => api.ends.length === 2);
  expect(api.ends).toEqual([`n1 ${end}`, "n2 served"]);
});

describe("an answer that has begun", () => {
  const events = (more: Partial<SimAnswer>): SimAnswer => ({ kind: "events", chunks: ["data: 1\n\n"], ...more });

  test.each<[string, SimAnswer, string]>([
    ["its engine fails", events({ ending: "error", nodeFault: "node-failed" }), "failed"],
    ["its engine hangs", events({ ending: "error", nodeFault: "engine-lost" }), "failed"],
    ["its engine dies", events({ ending: "error", engineDeath: "shared" }), "failed"],
    ["its node is lost", events({ failing: true }), "failed"],
    ["it ends with an error for another reason", events({ ending: "error" }), "untold"],
  ])("is not tried again when %s", async (_what, answer, end) => {
    api.nodes.script = () => answer;
    await ask().catch(() => {});
    await until(() => api.ends.length === 1);
    expect([nodesAsked(), api.ends]).toEqual([["n1/1"], [`n1 ${end}`]]);
  });

  test("does not count against its node when the client leaves", async () => {
    api.nodes.script = () => events({ chunks: ["data: 1\n\n", new Promise(() => {})] });
    const client = new RawClient(api.port).send(rawPost(path, JSON.stringify(chat({ stream: true }))));
    await until(() => client.received.includes("data: 1"));
    client.socket.destroy();
    await until(() => api.ends.length === 1);
    expect(api.ends).toEqual(["n1 untold"]);
  });
});

test("a client that leaves before the answer does not count against the node", async () => {
  api.nodes.script = () => ({ held: sleep(60_000, undefined, { ref: false }), chunks: [] });
  const client = new RawClient(api.port).send(rawPost(path, JSON.stringify(chat())));
  await until(() => api.nodes.sent.length === 1);
  client.socket.destroy();
  await until(() => api.ends.length === 1);
  expect(api.ends).toEqual(["n1 untold"]);
});
