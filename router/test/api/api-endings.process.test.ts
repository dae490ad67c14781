/** Tests that a request's place is given back exactly once and its node is informed, however the request ends. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { caller, chat, startApi, type Harness, type SimAnswer } from "./api-harness.ts";
import { RawClient, rawPost, until } from "../edge/raw-client.ts";

const path = "/v1/chat/completions";
const key = "authorization: Bearer sk-one";
let api: Harness;
let latest: IncomingMessage;
const onRequest = (message: unknown) => ({ request: latest } = message as { request: IncomingMessage });
beforeAll(async () => {
  const times = { bodyMsMax: 200, stallMsMax: 200, discardMs: 200, graceMs: 100 };
  api = await startApi({ requestMsMax: 900, times });
  api.keys.set("sk-one", caller({ accountId: asId<AccountId>("one"), parallelRequests: 1 }));
  subscribe("http.server.request.start", onRequest);
});
afterAll(async () => {
  unsubscribe("http.server.request.start", onRequest);
  await api[Symbol.asyncDispose]();
});

const never = new Promise<never>(() => {});
const event = `data: ${"x".repeat(100)}\n\n`;
function* endless(): Generator<string | Promise<unknown>> {
  for (;;) {
    yield event;
    yield new Promise((resolve) => setImmediate(resolve));
  }
}
function* flood(): Generator<string> {
  for (;;) yield event.repeat(100);
}
const held: SimAnswer = { held: never };
const streaming = (): SimAnswer => ({ kind: "events", chunks: endless() });

function post(body: string, headers: readonly string[] = []): string {
  return rawPost(path, body, headers).replace("authorization: Bearer sk-good", key);
}
const request = post(JSON.stringify(chat({ stream: true })));
const head = (more: string) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\n${key}\r\ncontent-type: application/json\r\n${more}\r\n\r\n`;
const send = (...parts: (string | Buffer)[]) => new RawClient(api.port).send(...parts);
const atNode = () => until(() => api.nodes.open === 1);
const firstByte = (client: RawClient) => until(() => client.received.includes("data: x"));

type Leave = (client: RawClient) => void;
const fin: Leave = ({ socket }) => socket.end();
const rst: Leave = ({ socket }) => socket.resetAndDestroy();

function leaving(phase: (client: RawClient) => Promise<void>, leave: Leave, parts: readonly (string | Buffer)[]) {
  return async () => {
    const client = send(...parts);
    await phase(client);
    leave(client);
  };
}
const inBody = [head("content-length: 1000"), '{"model":'];
const counted = () => until(() => api.limiter.use(asId<AccountId>("one")).parallel === 1);
/** Resolves when the router has read the last byte of the request. */
const whole = async () => {
  await counted();
  await until(() => latest.complete);
};
const large = Buffer.from(post(JSON.stringify(chat({ user: "u".repeat(3 << 20) }))));
const answered = (client: RawClient) => client.all().then(() => undefined);

const endings: [name: string, answer: () => SimAnswer, act: () => Promise<void>, outcome: RegExp][] = [
  [
    "a JSON answer",
    () => ({ chunks: ["{}"] }),
    leaving((c) => until(() => c.received.endsWith("{}")), fin, [request]),
    /answered 200/,
  ],
  [
    "a stream",
    () => ({ kind: "events", chunks: [event] }),
    leaving((c) => until(() => c.received.endsWith("0\r\n\r\n")), fin, [request]),
    /answered 200/,
  ],
  ["FIN in the body", () => held, leaving(counted, fin, inBody), /client-gone 0|refused 400/],
  ["RST in the body", () => held, leaving(counted, rst, inBody), /client-gone 0/],
  ["FIN while the answer is held", () => held, leaving(atNode, fin, [request]), /client-gone 0/],
  ["RST while the answer is held", () => held, leaving(atNode, rst, [request]), /client-gone 0/],
  ["FIN in the stream", streaming, leaving(firstByte, fin, [request]), /client-gone 200/],
  ["RST in the stream", streaming, leaving(firstByte, rst, [request]), /client-gone 200/],
  ["RST while a thread reads the body", () => held, leaving(whole, rst, [large]), /client-gone 0/],
  ["600 s before the first byte [S19.9]", () => held, () => answered(send(closing)), /refused 504 timeout/],
  ["600 s in the stream [S19.9]", streaming, () => answered(send(request)), /timeout 200/],
  [
    "a body that is too large",
    () => held,
    () =>
      answered(
        send(
          head("transfer-encoding: chunked\r\nconnection: close"),
          "1400001\r\n",
          Buffer.alloc(0x1400001),
          "\r\n0\r\n\r\n",
        ),
      ),
    /refused 413/,
  ],
  ["a body that stops", () => held, () => answered(send(...inBody)), /refused 400/],
  ["a body that is no JSON", () => held, () => answered(send(post("{", ["connection: close"]))), /refused 400/],
  [
    "an unknown model",
    () => held,
    () => answered(send(post('{"model":"x","messages":[]}', ["connection: close"]))),
    /refused 400/,
  ],
  [
    "a malformed chunk",
    () => held,
    () => answered(send(head("transfer-encoding: chunked"), "zz\r\n")),
    /client-gone 0/,
  ],
  [
    "a wait for 100-continue",
    () => held,
    leaving(counted, rst, [head("content-length: 5\r\nexpect: 100-continue")]),
    /client-gone 0/,
  ],
  [
    "a client that does not read",
    () => ({ kind: "events", chunks: flood() }),
    leaving(
      async (c) => void c.socket.pause(),
      () => {},
      [request],
    ),
    /stalled 200/,
  ],
  ["an error of the node", () => nodeError(400), () => answered(send(closing)), /refused 400/],
  ["503 of every node", () => nodeError(503), () => answered(send(closing)), /refused 503/],
  ["lost nodes", () => ({ lost: true }), () => answered(send(closing)), /refused 503 no_node/],
  [
    "a stream that ends early",
    () => ({ kind: "events", chunks: [event], ending: "broken" }),
    () => answered(send(request)),
    /broken 200/,
  ],
  [
    "a stream that fails",
    () => ({ kind: "events", chunks: [event], failing: true }),
    () => answered(send(request)),
    /broken 200/,
  ],
  [
    "a stream that ends in an error event",
    () => ({ kind: "events", chunks: [event], ending: "error" }),
    () => answered(send(request)),
    /broken 200/,
  ],
  [
    "a JSON answer that ends early",
    () => ({ chunks: ["{}"], ending: "broken" }),
    () => answered(send(closing)),
    /refused 500/,
  ],
];
const closing = request.replace("host: x", "host: x\r\nconnection: close");
function nodeError(status: number): SimAnswer {
  return { status, chunks: ['{"error":{"message":"m","type":"t","param":null,"code":"c"}}'] };
}

test.each(endings)("the place is given back once after %s [S6.6]", async (_name, answer, act, outcome) => {
  const before = api.finished.length;
  api.nodes.script = answer;
  await act();
  await until(() => api.finished.length === before + 1 && api.nodes.open === 0, 3_000);
  const { outcome: was, status, errorCode = "" } = api.finished.at(-1)!;
  expect(`${was} ${status} ${errorCode}`).toMatch(outcome);
  expect(api.left).toEqual(api.finished.map(({ requestId }) => requestId));
  // With one parallel place, a leak would refuse this one.
  api.nodes.script = () => ({ chunks: ["{}"] });
  expect((await api.post(path, chat(), { authorization: "Bearer sk-one" })).status).toBe(200);
  await until(() => api.finished.length === before + 2);
  expect(api.failures).toEqual([]);
});

test("nothing of a held stream is sent, so that it can still end with a status [S6.8]", async () => {
  api.nodes.script = () => held;
  expect(await send(closing).all()).toMatch(/^HTTP\/1\.1 504 /);
});

test("a node stops within a second after its client leaves, even before the first byte [B5]", async () => {
  for (const [answer, phase] of [
    [() => held, atNode],
    [streaming, firstByte],
  ] as const) {
    for (const leave of [fin, rst]) {
      api.nodes.script = answer;
      const client = send(request);
      await phase(client);
      leave(client);
      await until(() => api.nodes.open === 0, 1_000);
      expect(api.finished.at(-1)).toMatchObject({ outcome: "client-gone" });
    }
  }
});

test("pipelined requests do not begin before the first ends, and the router notices a client that leaves", async () => {
  api.keys.set("sk-three", caller({ accountId: asId<AccountId>("three"), parallelRequests: 3 }));
  api.nodes.script = () => held;
  for (const leave of [fin, rst]) {
    const [finished, sent] = [api.finished.length, api.nodes.sent.length];
    const client = send(...Array.from({ length: 3 }, () => request.replace("sk-one", "sk-three")));
    await until(() => api.nodes.open === 1);
    leave(client);
    await until(() => api.nodes.open === 0);
    expect(api.finished.length).toBe(finished + 1);
    expect(api.nodes.sent.length).toBe(sent + 1);
  }
  expect(new Set(api.left).size).toBe(api.left.length);
});

test("a parallel limit of 10 admits exactly 10 of 500 simultaneous requests, and later 10 again [B4 S19.3]", async () => {
  await using ten = await startApi();
  ten.keys.set("sk-ten", caller({ parallelRequests: 10 }));
  for (let round = 1; round <= 2; round++) {
    const { promise, resolve } = Promise.withResolvers<void>();
    ten.nodes.script = () => ({ held: promise, chunks: ["{}"] });
    const answers = Array.from({ length: 500 }, () => ten.post(path, chat(), { authorization: "Bearer sk-ten" }));
    await until(() => ten.finished.length === 500 * round - 10, 20_000);
    resolve();
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200).length).toBe(10);
    expect(statuses.filter((status) => status === 429).length).toBe(490);
    await until(() => ten.finished.length === 500 * round);
  }
});

test("an accepted request runs to its end even if its key is revoked or blocked meanwhile [S15.3]", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const whole = [event, "data: [DONE]\n\n"];
  for (const change of [
    { refused: "insufficient_quota", caller: caller() },
    { refused: "invalid_api_key", why: "revoked" },
    { refused: "no_package" },
  ] as const) {
    api.keys.set("sk-two", caller({ accountId: asId<AccountId>("two") }));
    api.nodes.script = () => ({ kind: "events", chunks: [whole[0]!, promise, whole[1]!] });
    const client = send(request.replace("sk-one", "sk-two"));
    await firstByte(client);
    api.keys.set("sk-two", change);
    expect((await api.post(path, chat(), { authorization: "Bearer sk-two" })).status).toBeGreaterThanOrEqual(401);
    resolve();
    await until(() => client.received.endsWith("0\r\n\r\n"));
    expect(client.received).toContain("data: [DONE]");
    client.socket.destroy();
  }
});

test("all keys of an account share its limits [S19.11]", async () => {
  await using two = await startApi();
  const limits = { parallelRequests: 3, requestsPerMinute: 4 };
  for (const key of ["sk-first", "sk-second"]) two.keys.set(key, caller(limits));
  const { promise, resolve } = Promise.withResolvers<void>();
  two.nodes.script = () => ({ held: promise, chunks: ["{}"] });
  const ask = (key: string) => two.post(path, chat(), { authorization: `Bearer ${key}` });
  const running = [ask("sk-first"), ask("sk-second"), ask("sk-first")];
  await until(() => two.nodes.open === 3);
  expect((await ask("sk-second")).json.error.message).toMatch(/parallel requests/);
  resolve();
  await Promise.all(running);
  expect((await ask("sk-second")).status).toBe(200);
  expect((await ask("sk-first")).json.error.message).toMatch(/per minute/);
});
