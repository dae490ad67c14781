/** Tests how an answer over a data connection with two real ends begins and ends. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ends } from "@weiche/shared/frames/frame.ts";
import type { SimStream } from "@weiche/shared/testing/sim-stream.ts";
import { NodeLost } from "@weiche/router/src/nodes/upstream.ts";
import { readAnswer, textOf } from "../cluster/read-answer.ts";
import {
  answering,
  byHand,
  grants,
  holding,
  linked,
  node,
  openAgentEnd,
  openRouterEnd,
  requestOf,
  slot,
} from "./link-ends.ts";

test("a request arrives with its record and body, and the answer with its end", async () => {
  await using router = await openRouterEnd();
  const seen: { record?: readonly unknown[]; body?: string } = {};
  await using _agent = openAgentEnd(
    router.data.address.port,
    byHand((stream, record) => {
      seen.record = record;
      void stream.read().then((body) => {
        seen.body = String(body);
        stream.answer("hello world");
      });
    }),
  );
  await linked(router);
  const request = requestOf({ body: Buffer.from('{"a":"ä"}'), remainingMs: 1234.5 });
  const answer = await router.send(request);
  expect(answer.status).toBe(200);
  expect(answer.body.ending).toBe("broken");
  expect(router.inFlight()).toBe(1);
  expect(await textOf(answer)).toBe("hello world");
  expect(answer.body.ending).toBe("complete");
  await expect.poll(() => router.inFlight()).toBe(0);
  const grant = grants.sign(node, { ...request, ...request.billing });
  expect(seen).toEqual({
    body: '{"a":"ä"}',
    record: [
      ...["/v1/chat/completions", request.requestId, 1, "m", slot, "a", "u", "k", 1_500],
      ...[1_000_000, grant, 1_234, "router-1", 10, 1],
    ],
  });
});

test("further fields of an answer's head arrive, and a malformed head counts as a lost node", async () => {
  await using router = await openRouterEnd();
  let record = "";
  await using _agent = openAgentEnd(
    router.data.address.port,
    byHand((stream) => {
      stream.frames.head(record);
      stream.finish();
    }),
  );
  await linked(router);
  const head = async (text: string) => {
    record = text;
    const { status, kind, retryAfterSeconds, waited, body } = await router.send();
    body.cancel();
    return [status, kind, retryAfterSeconds, waited];
  };
  expect(await head('[503,"json",7,"switch 5200","later"]')).toEqual([503, "json", 7, "switch 5200"]);
  expect(await head('[200,"json"]')).toEqual([200, "json", 0, undefined]);
  expect(await head('[200,"events",0,"a while"]')).toEqual([200, "events", 0, undefined]);
  for (const none of [
    "no JSON",
    "{}",
    '["200"]',
    "200",
    "[99]",
    "[200]",
    "[600]",
    '[200,"events","soon"]',
    "[200,7,0,5]",
  ]) {
    await expect(head(none)).rejects.toThrow(NodeLost);
    expect(router.inFlight()).toBe(0);
  }
});

test("a failed answer and an answer without an end differ from a whole one", async () => {
  await using router = await openRouterEnd();
  let end: number | undefined;
  await using _agent = openAgentEnd(
    router.data.address.port,
    byHand((stream) => {
      stream.begin();
      stream.frames.write("x");
      if (end === undefined) stream.cancel();
      else stream.finish("", end);
    }),
  );
  await linked(router);
  for (const [code, ending, cause] of [
    [ends.complete, "complete", undefined],
    [ends.failed, "error", undefined],
    [ends.engineDiedAlone, "error", "alone"],
    [ends.engineDiedShared, "error", "shared"],
    [ends.nodeFailed, "error", "node-failed"],
    [ends.engineLost, "error", "engine-lost"],
    [ends.nodeBusy, "error", "node-busy"],
    [ends.engineRefused, "error", "engine-refused"],
    [ends.engineAway, "error", "engine-away"],
    [200, "error", undefined],
    [undefined, "broken", undefined],
  ] as const) {
    end = code;
    const { body, ...answer } = await router.send();
    await textOf({ ...answer, body });
    expect([body.ending, body.engineDeath ?? body.nodeFault]).toEqual([ending, cause]);
  }
});

test("the agent distinguishes a client that left from a lost router", async () => {
  const router = await openRouterEnd();
  const { streams, closed, handle } = holding();
  await using _agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  const left = await router.send();
  await router.send();
  await router.send();
  left.body.cancel();
  await textOf(left);
  expect(left.body.ending).toBe("broken");
  await expect.poll(() => closed).toEqual(["unwanted"]);
  expect(router.inFlight()).toBe(2);
  await router.data.close(0);
  await expect.poll(() => closed.length).toBe(3);
  expect(closed.slice(1)).toEqual(["lost", "lost"]);
  expect(streams.every(({ isOver }) => isOver)).toBe(true);
});

test("a completely received answer holds no place while it is read, and ends when its reader gives up", async () => {
  await using router = await openRouterEnd();
  await using agent = openAgentEnd(router.data.address.port, answering("x".repeat(100_000)));
  await linked(router);
  const { body } = await router.send();
  body.readInto({ take: () => body.pause(), end() {} });
  await expect.poll(() => agent.link.streams).toBe(0);
  expect((await textOf(await router.send())).length).toBe(100_000); // on the same connection, so after it
  await expect.poll(() => router.inFlight()).toBe(1);
  expect(router.places()).toBe(0);
  body.cancel();
  await expect.poll(() => router.inFlight()).toBe(0);
});

test("an unfinished answer holds no place once its agent reports that the engine is done", async () => {
  await using router = await openRouterEnd();
  const { streams, handle } = holding();
  await using _agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  const { body } = await router.send({ answers: 2 });
  body.readInto({ take: () => body.pause(), end() {} });
  streams[0]!.finish("x".repeat(600_000));
  await router.send(); // on the same connection, so after the bytes that fit into the window
  expect(router.places()).toBe(3);
  streams[0]!.frames.done();
  await expect.poll(() => router.places()).toBe(1);
  expect(router.inFlight()).toBe(3);
});

test("a completely received answer survives its node, however slowly it is read", async () => {
  await using router = await openRouterEnd();
  const agent = openAgentEnd(router.data.address.port, answering("x".repeat(100_000)));
  await linked(router);
  const { body } = await router.send();
  let bytes = 0;
  let isSlow = true;
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const take = (piece: Buffer) => {
    bytes += piece.length;
    if (isSlow) body.pause();
  };
  body.readInto({ take, end });
  await expect.poll(() => agent.link.streams).toBe(0);
  await textOf(await router.send()); // on the same connection, so after it
  await agent.link.close(0);
  await linked(router, 0);
  expect(bytes).toBeLessThan(100_000);
  isSlow = false;
  body.resume();
  await ended;
  expect([bytes, body.ending]).toEqual([100_000, "complete"]);
});

test("a client that leaves before the head is answered with its own reason, and the agent sees it leave", async () => {
  await using router = await openRouterEnd();
  const closed: unknown[] = [];
  const handle = byHand((stream) => stream.once("over", () => closed.push(stream.lostBy)));
  await using agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  const abort = new AbortController();
  const answer = router.send({}, abort.signal);
  await expect.poll(() => agent.link.streams).toBe(1);
  abort.abort(new Error("the client left"));
  await expect(answer).rejects.toThrow("the client left");
  await expect.poll(() => closed).toEqual(["unwanted"]);
  await expect(router.send({}, abort.signal)).rejects.toThrow("the client left");
  expect(router.inFlight()).toBe(0);
});

test("without a data connection, or if it ends before the head, the node counts as lost and another may be tried", async () => {
  await using router = await openRouterEnd();
  await expect(router.send()).rejects.toThrow(NodeLost);
  let go = (_stream: SimStream): void => {};
  const handle = byHand((stream) => go(stream));
  const agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  for (const why of ["unwanted", "refused", "internal"] as const) {
    go = (stream) => stream.frames.cancel(why);
    await expect(router.send()).rejects.toThrow(NodeLost);
  }
  go = () => void agent.link.close(0);
  await expect(router.send()).rejects.toThrow(NodeLost);
  expect(router.inFlight()).toBe(0);
});

test("a request refused by an ending connection is sent on the next connection", async () => {
  await using router = await openRouterEnd();
  let refused = 0;
  const ending = byHand((stream) => {
    void first.link.close(1_000);
    stream.frames.cancel("refused");
    refused++;
  });
  const first = openAgentEnd(router.data.address.port, ending);
  await linked(router);
  await using _second = openAgentEnd(router.data.address.port, answering("here"));
  await linked(router, 2);
  expect(await textOf(await router.send())).toBe("here");
  expect([refused, router.inFlight()]).toEqual([1, 0]);
});

test("a closing agent accepts no new streams and lets running streams end", async () => {
  await using router = await openRouterEnd();
  const { streams, handle } = holding();
  const agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  const answer = await router.send();
  const racing = Array.from({ length: 20 }, () =>
    router.send().then(
      (late) => late.status,
      (error: unknown) => error,
    ),
  );
  const closed = agent.link.close(60_000);
  for (const outcome of await Promise.all(racing)) expect(outcome === 200 || outcome instanceof NodeLost).toBe(true);
  await linked(router, 0);
  await expect(router.send()).rejects.toThrow(NodeLost);
  for (const stream of streams) stream.finish("and whole");
  expect(await textOf(answer)).toBe("begun and whole");
  expect(answer.body.ending).toBe("complete");
  await closed;
});

test("a closing agent cuts streams that run past the deadline", async () => {
  await using router = await openRouterEnd();
  const { closed, handle } = holding();
  const agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  const answer = await router.send();
  await agent.link.close(50);
  await textOf(answer);
  expect(answer.body.ending).toBe("broken");
  expect(closed).toEqual(["lost"]);
});

test("an answer is not whole if its agent is killed, even if the connection ends cleanly", async () => {
  await using router = await openRouterEnd();
  const agent = fork(join(import.meta.dirname, "data-agent.ts"), [String(router.data.address.port)]);
  const gone = once(agent, "exit");
  await linked(router);
  const answer = await router.send();
  const { first, whole } = readAnswer(answer);
  expect(String(await first)).toContain("begun");
  agent.kill("SIGKILL");
  await gone;
  await whole;
  expect(answer.body.ending).toBe("broken");
  await linked(router, 0);
  expect(router.inFlight()).toBe(0);
});
