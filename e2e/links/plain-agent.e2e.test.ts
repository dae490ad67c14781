/** Tests requests and answers between a real router's end of a data connection and an agent in plain buffers. */
import { expect, test } from "vitest";
import { readNodeRefusal } from "@weiche/router/src/api/node-refusal.ts";
import { NodeLost } from "@weiche/router/src/nodes/upstream.ts";
import { readAnswer, textOf } from "../cluster/read-answer.ts";
import { grants, node, requestOf, sessionsOf, slot } from "./link-ends.ts";
import { openPlainAgent } from "./plain-agent.ts";
import { frameTypes, plainFrame, u32, window } from "./plain-peer.ts";

const { cancel, data, end, head, ping, pong, windowed } = frameTypes;

test("the router first asks for the agent's identity and sends a PING", async () => {
  await using both = await openPlainAgent();
  const [first] =
    both.agent.of(1).length > 0 ? both.agent.of(1) : both.agent.frames.filter(({ type }) => type === head);
  expect(JSON.parse(String(first!.payload))).toMatchObject(["/weiche/identity"]);
  expect(both.agent.of(first!.stream).map(({ type }) => type)).toEqual([head, end]);
  await both.agent.until("a PING", () => both.agent.of(0, ping).length > 0);
  await both.agent.settled();
});

test("a request has its fields in order, its body and its END, and the answer is passed on as it arrives", async () => {
  await using both = await openPlainAgent((stream) => {
    both.agent.begin(stream, [200, "events", 0, "switch 5200", "of a later version", { more: [] }]);
    both.agent.write(stream, "hello ");
    both.agent.write(stream, "world");
    both.agent.end(stream);
  });
  const request = requestOf({ body: Buffer.from('{"a":"ä"}'), remainingMs: 1234.5 });
  const answer = await both.router.send(request);
  expect([answer.status, answer.kind, answer.waited, answer.retryAfterSeconds]).toEqual([
    200,
    "events",
    "switch 5200",
    0,
  ]);
  expect(await textOf(answer)).toBe("hello world");
  expect(answer.body.ending).toBe("complete");
  const [stream] = both.agent.frames
    .filter(({ type }) => type === head)
    .map((frame) => frame.stream)
    .slice(-1);
  const { requestId } = request;
  const billed = [1500, 1_000_000, grants.sign(node, { ...request, ...request.billing })];
  expect(both.agent.recordOf(stream!)).toEqual([
    ...["/v1/chat/completions", requestId, 1, "m", slot, "a", "u", "k", ...billed, 1234, "router-1"],
    ...[request.body.length, 1],
  ]);
  expect(both.agent.bodyOf(stream!).equals(request.body)).toBe(true);
  expect(both.agent.of(stream!, end).map(({ payload }) => payload[0])).toEqual([0]);
});

test.each<[how: number, ending: string, death: string | undefined]>([
  [0, "complete", undefined],
  [1, "error", undefined],
  [2, "error", "alone"],
  [3, "error", "with-others"],
  [77, "error", undefined],
])("an END of %d: the answer is %s", async (how, ending) => {
  await using both = await openPlainAgent((stream) => {
    both.agent.begin(stream);
    both.agent.write(stream, "x");
    both.agent.end(stream, how);
  });
  const answer = await both.router.send();
  expect(await textOf(answer)).toBe("x");
  expect(answer.body.ending).toBe(ending);
  expect(answer.body.engineDeath !== undefined).toBe(how === 2 || how === 3);
});

test("a cancelled answer is broken, and before its HEAD the node is lost for this request only", async () => {
  let act = (_stream: number): void => {};
  await using both = await openPlainAgent((stream) => act(stream));
  for (const reason of [0, 1, 2, 200]) {
    act = (stream) => both.agent.cancel(stream, reason);
    await expect(both.router.send()).rejects.toThrow(NodeLost);
  }
  act = (stream) => {
    both.agent.begin(stream);
    both.agent.write(stream, "x");
    both.agent.cancel(stream);
  };
  const answer = await both.router.send();
  expect([await textOf(answer), answer.body.ending]).toEqual(["x", "broken"]);
  expect(both.router.inFlight()).toBe(0);
  expect(sessionsOf(both.router)).toBe(1);
});

const noStatus = ["{}", "[]", '["200"]', "[200,", "[-1]", "[1e300]", "null", "\xff", '[199,"json"]', '[600,"json"]'];
const noKind = ["[200]", '[200,""]', '[200,"text"]', '[200,"later"]', "[200,7]", '[503,{"toString":0}]'];
test.each([...noStatus, ...noKind, '[200,"events",0,7]', '[200,"events","7"]'])(
  "an answer whose HEAD is %s is cancelled with 2, and the node is lost for the request",
  async (text) => {
    await using both = await openPlainAgent((stream) =>
      both.agent.pour(plainFrame(head, stream, Buffer.from(text, "latin1"))),
    );
    await expect(both.router.send()).rejects.toThrow(NodeLost);
    await both.agent.settled();
    const [last] = both.agent.frames.filter(({ type }) => type === cancel);
    expect(last?.payload[0]).toBe(2);
  },
);

const error = (message: string) => ({ error: { message, type: "server_error", param: null, code: "x" } });
const never = new AbortController().signal;

test.each([0, 1, 2, 3, 77])(
  "an error whose body ends with %d is read, and 2 and 3 report the engine's death",
  async (how) => {
    await using both = await openPlainAgent((stream) => {
      both.agent.begin(stream, [503, "json", 7]);
      both.agent.write(stream, JSON.stringify(error("no")));
      both.agent.end(stream, how);
    });
    const answer = await both.router.send();
    const { status, body, headers } = await readNodeRefusal(answer, never);
    expect([status, body, headers]).toEqual([503, error("no"), { "retry-after": "7" }]);
    expect(answer.body.engineDeath).toBe({ 2: "alone", 3: "shared" }[how]);
  },
);

test.each<[what: string, status: number, body: string]>([
  ["without a body", 503, ""],
  ["with a body in another format", 503, '{"error":"no"}'],
  ["of more than 64 KiB", 503, JSON.stringify(error("x".repeat(65_536)))],
  ["that is followed by more than 64 KiB of space", 503, JSON.stringify(error("no")) + " ".repeat(65_536)],
  ["with the status 302", 302, JSON.stringify(error("no"))],
  ["with the status 201", 201, JSON.stringify(error("no"))],
])("an error %s counts as a lost node for the request", async (_what, status, body) => {
  await using both = await openPlainAgent((stream) => {
    both.agent.begin(stream, [status, "json"]);
    both.agent.write(stream, body);
    both.agent.end(stream);
  });
  await expect(readNodeRefusal(await both.router.send(), never)).rejects.toThrow(NodeLost);
});

test("a body is sent within its credit in frames of at most 64 KiB, and continues with each WINDOW", async () => {
  await using both = await openPlainAgent();
  const body = Buffer.alloc(1 << 20, "0123456789abcdef-");
  const sent = both.router.send({ body });
  await both.agent.until("the first window", () => both.agent.bodyOf(both.agent.opened).length >= window);
  await both.agent.settled();
  expect(both.agent.bodyOf(both.agent.opened).length).toBe(window);
  both.agent.giveCredit(both.agent.opened, 1_000);
  await both.agent.until("1,000 more", () => both.agent.bodyOf(both.agent.opened).length === window + 1_000);
  for (let left = body.length - window - 1_000; left > 0; left -= window) {
    await both.agent.settled();
    both.agent.giveCredit(both.agent.opened, Math.min(left, window));
  }
  await both.agent.until("the END", () => both.agent.of(both.agent.opened, end).length === 1);
  expect(both.agent.bodyOf(both.agent.opened).equals(body)).toBe(true);
  both.agent.begin(both.agent.opened);
  both.agent.end(both.agent.opened);
  expect(await textOf(await sent)).toBe("");
});

test("the router returns credit with WINDOWs only as its client reads", async () => {
  await using both = await openPlainAgent((stream) => {
    both.agent.begin(stream);
    both.agent.write(stream, Buffer.alloc(window, "x"));
  });
  const answer = await both.router.send();
  await both.agent.settled();
  expect(both.agent.credit(both.agent.opened), "nobody has read").toBe(0);
  const { whole } = readAnswer(answer);
  await both.agent.until("the window back", () => both.agent.credit(both.agent.opened) === window);
  both.agent.write(both.agent.opened, "end");
  both.agent.end(both.agent.opened);
  expect((await whole).length).toBe(window + 3);
});

test("a client that leaves causes a CANCEL, and frames that arrive later are dropped", async () => {
  await using both = await openPlainAgent((stream) => both.agent.begin(stream));
  const answer = await both.router.send();
  answer.body.cancel();
  expect(await both.agent.ending(both.agent.opened)).toMatch("cancel 0");
  both.agent.pour(
    plainFrame(head, both.agent.opened, "[200]"),
    plainFrame(data, both.agent.opened, Buffer.alloc(65_536)),
    ...Array.from({ length: 8 }, () => plainFrame(data, both.agent.opened, Buffer.alloc(65_536))),
    plainFrame(windowed, both.agent.opened, u32(0)),
    plainFrame(windowed, both.agent.opened, u32(0xffff_ffff)),
    plainFrame(end, both.agent.opened, Buffer.from([0])),
    plainFrame(end, both.agent.opened, Buffer.from([1])),
    plainFrame(cancel, both.agent.opened, Buffer.from([9])),
  );
  await both.agent.settled();
  expect(sessionsOf(both.router)).toBe(1);
});

test("frames may be cut anywhere, and several may arrive at once", async () => {
  await using both = await openPlainAgent((stream) => {
    const bytes = Buffer.concat([
      plainFrame(head, stream, '[200,"events",0,""]'),
      plainFrame(data, stream, "a"),
      plainFrame(ping, 0, "12345678"),
      plainFrame(data, stream, "b"),
      plainFrame(end, stream, Buffer.from([0])),
    ]);
    let at = 0;
    const next = () => {
      both.agent.pour(bytes.subarray(at, ++at));
      if (at < bytes.length) setImmediate(next);
    };
    next();
  });
  const answer = await both.router.send();
  expect([await textOf(answer), answer.body.ending]).toEqual(["ab", "complete"]);
  await both.agent.until("the PONG", () =>
    both.agent.of(0, pong).some(({ payload }) => String(payload) === "12345678"),
  );
});
