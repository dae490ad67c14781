/** One answer over a data connection, both ends real: how it begins and how it may end. */
import { fork } from "node:child_process";
import { once } from "node:events";
import type { ServerHttp2Stream } from "node:http2";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { NodeLost } from "@weiche/router/src/nodes/upstream.ts";
import { readAnswer, textOf } from "../../cluster/read-answer.ts";
import { answering, grants, holding, linked, node, openAgentEnd, openRouterEnd, requestOf, slot } from "./link-ends.ts";

test("a request arrives with its headers and body, and the answer with its end", async () => {
  await using router = await openRouterEnd();
  const seen: { headers?: Record<string, unknown>; body?: string } = {};
  await using _agent = openAgentEnd(router.data.address.port, (stream, headers, session) => {
    seen.headers = headers;
    void text(stream).then((body) => {
      seen.body = body;
      answering("hello ", "world")(stream, headers, session);
    });
  });
  await linked(router);
  const request = requestOf({ body: Buffer.from('{"a":"ä"}'), remainingMs: 1234.5 });
  const answer = await router.send(request);
  expect(answer.status).toBe(200);
  expect(answer.body.ending).toBe("broken");
  expect(router.inFlight()).toBe(1);
  expect(await textOf(answer)).toBe("hello world");
  expect(answer.body.ending).toBe("complete");
  await expect.poll(() => router.inFlight()).toBe(0);
  expect(seen).toMatchObject({
    body: '{"a":"ä"}',
    headers: {
      ":path": "/v1/chat/completions",
      "x-weiche-attempt": "1",
      "x-weiche-account": "a",
      "x-weiche-factor": "1500",
      "x-weiche-tokens-max": "1000000",
      "x-weiche-grant": grants.sign(node, { ...request, ...request.billing }),
      "x-weiche-model": "m",
      "x-weiche-slot": slot,
      "x-weiche-remaining-ms": "1234",
      "x-weiche-router": "router-1",
    },
  });
});

test("an answer that ended with an error event, or without the trailer, is told apart from a whole one", async () => {
  await using router = await openRouterEnd();
  let end = "";
  await using _agent = openAgentEnd(router.data.address.port, (stream) => {
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.on("wantTrailers", () => (end === "" ? stream.close() : stream.sendTrailers({ "x-weiche-end": end })));
    stream.end("x");
  });
  await linked(router);
  for (const [trailer, ending] of [
    ["error", "error"],
    ["", "broken"],
    ["else", "broken"],
  ] as const) {
    end = trailer;
    const answer = await router.send();
    await textOf(answer);
    expect(answer.body.ending).toBe(ending);
  }
});

test("an answer whose head says how long it is needs no trailer, and is broken without its last byte", async () => {
  await using router = await openRouterEnd();
  let cut = false;
  await using _agent = openAgentEnd(router.data.address.port, (stream) => {
    stream.respond({ ":status": 200, "content-length": 11, "x-weiche-end": "complete" });
    stream.write("hello ", () => (cut ? stream.session!.socket.destroy() : stream.end("world")));
  });
  await linked(router);
  const whole = await router.send();
  expect(await textOf(whole)).toBe("hello world");
  expect(whole.body.ending).toBe("complete");
  cut = true;
  const broken = await router.send();
  expect(await textOf(broken)).toBe("hello ");
  expect(broken.body.ending).toBe("broken");
});

test("the agent tells a client that left from a router that went", async () => {
  const router = await openRouterEnd();
  const { streams, closed, handle } = holding();
  await using _agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  const byDestroy = await router.send();
  const abort = new AbortController();
  const bySignal = await router.send({}, abort.signal);
  await router.send();
  await router.send();
  byDestroy.body.cancel();
  await expect.poll(() => closed).toEqual([{ rstCode: 8, routerLost: false }]);
  abort.abort(new Error("the client left"));
  await textOf(bySignal);
  expect(bySignal.body.ending).toBe("broken");
  await expect.poll(() => closed.length).toBe(2);
  expect(closed[1]).toEqual({ rstCode: 8, routerLost: false });
  expect(router.inFlight()).toBe(2);
  await router.data.close(0);
  await expect.poll(() => closed.length).toBe(4);
  expect(closed.slice(2).map(({ routerLost }) => routerLost)).toEqual([true, true]);
  expect(streams.every((stream) => stream.destroyed)).toBe(true);
});

test("an answer that has come as a whole and is given up before it was read gives its place back", async () => {
  await using router = await openRouterEnd();
  await using agent = openAgentEnd(router.data.address.port, answering("x".repeat(100_000)));
  await linked(router);
  const { body } = await router.send();
  body.readInto({ take: () => body.pause(), end() {} });
  await expect.poll(() => agent.link.streams).toBe(0);
  expect((await textOf(await router.send())).length).toBe(100_000); // on the same connection, so behind it
  await expect.poll(() => router.inFlight()).toBe(1);
  body.cancel();
  await expect.poll(() => router.inFlight()).toBe(0);
});

test("an answer that has come as a whole is not lost with its node, however slowly it is read", async () => {
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
  await textOf(await router.send()); // on the same connection, so behind it
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
  const closed: boolean[] = [];
  await using agent = openAgentEnd(router.data.address.port, (stream, _headers, session) => {
    stream.once("close", () => closed.push(session.routerLost()));
  });
  await linked(router);
  const abort = new AbortController();
  const answer = router.send({}, abort.signal);
  await expect.poll(() => agent.link.streams).toBe(1);
  abort.abort(new Error("the client left"));
  await expect(answer).rejects.toThrow("the client left");
  await expect.poll(() => closed).toEqual([false]);
  await expect(router.send({}, abort.signal)).rejects.toThrow("the client left");
  expect(router.inFlight()).toBe(0);
});

test("without a session, or when it goes before the head, the node is lost and another may be tried", async () => {
  await using router = await openRouterEnd();
  await expect(router.send()).rejects.toThrow(NodeLost);
  let go = (_stream: ServerHttp2Stream): void => {};
  const agent = openAgentEnd(router.data.address.port, (stream) => go(stream));
  await linked(router);
  go = (stream) => stream.close(2);
  await expect(router.send()).rejects.toThrow(NodeLost);
  go = (stream) => stream.session!.destroy();
  await expect(router.send()).rejects.toThrow(NodeLost);
  expect(router.inFlight()).toBe(0);
  await agent.link.close(0);
});

test("an agent that closes takes no new streams and lets those that run end", async () => {
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
  for (const stream of streams) {
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-weiche-end": "complete" }));
    stream.end("and whole");
  }
  expect(await textOf(answer)).toBe("begun and whole");
  expect(answer.body.ending).toBe("complete");
  await closed;
});

test("an agent that closes cuts what runs beyond the deadline", async () => {
  await using router = await openRouterEnd();
  const { closed, handle } = holding();
  const agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  const answer = await router.send();
  await agent.link.close(50);
  await textOf(answer);
  expect(answer.body.ending).toBe("broken");
  expect(closed).toEqual([{ rstCode: expect.any(Number) as number, routerLost: true }]);
});

test("an agent killed in mid-answer leaves an answer that is not whole, however clean its end looks", async () => {
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
