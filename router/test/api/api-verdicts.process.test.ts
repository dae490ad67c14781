/** Tests that only the attempt whose answer the client received or ended costs something. */
import { beforeEach, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import type { NodeId } from "@weiche/shared/ids.ts";
import type { UpstreamRequest } from "../../src/nodes/upstream.ts";
import { chat, startApi, type SimAnswer } from "./api-harness.ts";
import { RawClient, rawPost, settledCount, until } from "../edge/raw-client.ts";

const path = "/v1/chat/completions";
const api = await forThisFile(startApi({ requestMsMax: 300, times: { stallMsMax: 200, graceMs: 100 } }));
beforeEach(() => void (api.verdicts.length = 0));

const event = `data: ${"x".repeat(100)}\n\n`;
const never = new Promise<never>(() => {});
const busy = JSON.stringify({ error: { message: "m", type: "t", param: null, code: "overloaded" } });
const refuse = (status: number, code = "overloaded"): SimAnswer => ({
  status,
  chunks: [busy.replace("overloaded", code)],
});
function* flood(): Generator<string> {
  for (;;) yield event.repeat(100);
}

type Act = (client: RawClient) => unknown;
const toItsEnd: Act = (client) => client.all();
const leave: Act = async (client) => {
  await until(() => api.nodes.open === 1);
  client.socket.destroy();
};
const leaveInStream: Act = async (client) => {
  await until(() => client.received.includes("data: x"));
  client.socket.destroy();
};
const readNothing: Act = async (client) => {
  client.socket.pause();
  await until(() => api.verdicts.length > 0);
  client.socket.destroy();
};

const cases: readonly [name: string, first: SimAnswer, second: SimAnswer, act: Act, verdicts: readonly string[]][] = [
  ["a whole JSON answer", { chunks: ['{"ok":true}'] }, {}, toItsEnd, ["settled n1 1"]],
  ["a whole stream", { kind: "events", chunks: [event] }, {}, toItsEnd, ["settled n1 1"]],
  ["a node lost before the head, then an answer", { lost: true }, {}, toItsEnd, ["void n1 1", "settled n2 2"]],
  [
    "a node lost after the head of a JSON answer, then an answer",
    { ending: "broken" },
    {},
    toItsEnd,
    ["void n1 1", "settled n2 2"],
  ],
  ["both nodes lost", { lost: true }, { lost: true }, toItsEnd, ["void n1 1", "void n2 2"]],
  [
    "a node lost, then a refusal of the other node",
    { lost: true },
    refuse(503),
    toItsEnd,
    ["void n1 1", "refused n2 2"],
  ],
  ["a JSON answer cut after some bytes", { chunks: ['{"ok"'], ending: "broken" }, {}, toItsEnd, ["void n1 1"]],
  ["a stream cut after some events", { kind: "events", chunks: [event], failing: true }, {}, toItsEnd, ["void n1 1"]],
  [
    "a stream that the node itself ended and recorded with an error event",
    { kind: "events", chunks: [event], ending: "error" },
    {},
    toItsEnd,
    ["settled n1 1"],
  ],
  [
    "a stream that the node itself ended because its client did not read",
    { kind: "events", chunks: [event], ending: "unread" },
    {},
    toItsEnd,
    ["settled n1 1"],
  ],
  ["both nodes refuse with a status", refuse(503), refuse(503), toItsEnd, ["refused n1 1", "refused n2 2"]],
  ["a temporary refusal of a node, then an answer", refuse(503), {}, toItsEnd, ["refused n1 1", "settled n2 2"]],
  ["a request that the node refuses", refuse(400), {}, toItsEnd, ["refused n1 1"]],
  ["a node that fails with a status", refuse(500), {}, toItsEnd, ["void n1 1"]],
  ["a node that reaches the time limit", refuse(504), {}, toItsEnd, ["void n1 1"]],
  ["a node that is stopping", refuse(503, "maintenance"), {}, toItsEnd, ["void n1 1", "settled n2 2"]],
  [
    "a client that leaves while its refusal is read",
    { status: 400, chunks: [busy.slice(0, 10), never] },
    {},
    leave,
    ["void n1 1"],
  ],
  ["a client that leaves before the answer", { held: never }, {}, leave, ["settled n1 1"]],
  ["a client that leaves in the stream", { kind: "events", chunks: flood() }, {}, leaveInStream, ["settled n1 1"]],
  ["a client that does not read", { kind: "events", chunks: flood() }, {}, readNothing, ["settled n1 1"]],
  ["the time limit before the first byte", { held: never }, {}, toItsEnd, ["settled n1 1"]],
  ["the time limit in the stream", { kind: "events", chunks: [event, never] }, {}, toItsEnd, ["settled n1 1"]],
];

test.each(cases)(
  "the right attempts are settled or void after %s [A1 A8]",
  async (_name, first, second, act, verdicts) => {
    api.nodes.script = (_request: UpstreamRequest, node: NodeId) => (node === "n1" ? first : second);
    const client = new RawClient(api.port).send(
      rawPost(path, JSON.stringify(chat({ stream: true })), ["connection: close"]),
    );
    await act(client);
    await until(() => api.verdicts.length >= verdicts.length);
    await settledCount(() => api.verdicts.length);
    expect(api.verdicts).toEqual(verdicts);
  },
);

test("a request that still waits when a stopping router's time is over gets 503 with retry-after, and costs nothing [B6]", async () => {
  const stopping = await startApi();
  stopping.nodes.script = () => ({ held: never });
  const waiting = new RawClient(stopping.port).send(rawPost(path, JSON.stringify(chat({ stream: true }))));
  await until(() => stopping.nodes.open === 1);
  const [answer] = await Promise.all([waiting.all(), stopping.server.close(0)]);
  expect(answer).toMatch(/^HTTP\/1\.1 503 [^]*retry-after: 1\r\n[^]*"maintenance"/);
  expect(stopping.verdicts).toEqual(["void n1 1"]);
});

test("answers that a stopping router cuts cost nothing, although the clients seem to leave [A1]", async () => {
  const stopping = await startApi();
  stopping.nodes.script = () => ({ kind: "events", chunks: [event, never] });
  const streams = [1, 2].map(() =>
    new RawClient(stopping.port).send(rawPost(path, JSON.stringify(chat({ stream: true })))),
  );
  await until(() => streams.every(({ received }) => received.includes("data: x")));
  await stopping.server.close(0);
  expect(stopping.verdicts).toEqual(["void n1 1", "void n1 1"]);
});
