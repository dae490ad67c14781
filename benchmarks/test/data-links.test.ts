/** The data connections with both ends real: what the router's API and the agent's ingress rely on. */
import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { ServerHttp2Stream } from "node:http2";
import { join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { DataSession } from "@weiche/node-agent/src/report/data-link.ts";
import { NodeLost } from "@weiche/router/src/nodes/upstream.ts";
import { answering, node, openAgentEnd, openRouterEnd, slot, type RouterEnd } from "./link-ends.ts";
import { openTcpProxy } from "./tcp-proxy.ts";

const sessionsOf = (router: RouterEnd) => router.registry.details(0)[0]!.dataSessions;
async function linked(router: RouterEnd, sessions = 1): Promise<void> {
  await expect.poll(() => sessionsOf(router), { timeout: 5_000, interval: 5 }).toBe(sessions);
}

/** Takes streams, answers with a head and one chunk, and leaves the rest to the test. */
function holding() {
  const streams: ServerHttp2Stream[] = [];
  const closed: { readonly rstCode: number; readonly routerLost: boolean }[] = [];
  const handle = (stream: ServerHttp2Stream, _headers: unknown, session: DataSession) => {
    streams.push(stream);
    stream.once("close", () => closed.push({ rstCode: stream.rstCode, routerLost: session.routerLost() }));
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.write("begun ");
  };
  return { streams, closed, handle };
}

test("a request arrives with its headers and body, and the answer with its end", async () => {
  await using router = await openRouterEnd();
  const seen: { headers?: Record<string, unknown>; body?: string } = {};
  await using _agent = openAgentEnd(router.data.address.port, (stream, headers, session) => {
    seen.headers = { ...headers, routerId: session.routerId };
    void text(stream).then((body) => {
      seen.body = body;
      answering("hello ", "world")(stream, headers, session);
    });
  });
  await linked(router);
  const answer = await router.send({ body: Buffer.from('{"a":"ä"}'), remainingMs: 1234.5 });
  expect(answer.status).toBe(200);
  expect(answer.ending()).toBe("broken");
  expect(router.inFlight()).toBe(1);
  expect(await text(answer.body)).toBe("hello world");
  expect(answer.ending()).toBe("complete");
  await expect.poll(() => router.inFlight()).toBe(0);
  expect(seen).toMatchObject({
    body: '{"a":"ä"}',
    headers: {
      ":path": "/v1/chat/completions",
      "x-weiche-attempt": "1",
      "x-weiche-account": "a",
      "x-weiche-factor": "1500",
      "x-weiche-model": "m",
      "x-weiche-slot": slot,
      "x-weiche-remaining-ms": "1234",
      "x-weiche-router": "router-1",
      routerId: "router-1",
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
    await text(answer.body);
    expect(answer.ending()).toBe(ending);
  }
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
  byDestroy.body.destroy();
  await expect.poll(() => closed).toEqual([{ rstCode: 8, routerLost: false }]);
  abort.abort(new Error("the client left"));
  await expect(text(bySignal.body)).rejects.toThrow("the client left");
  await expect.poll(() => closed.length).toBe(2);
  expect(closed[1]).toEqual({ rstCode: 8, routerLost: false });
  expect(router.inFlight()).toBe(2);
  await router.data.close(0);
  await expect.poll(() => closed.length).toBe(4);
  expect(closed.slice(2).map(({ routerLost }) => routerLost)).toEqual([true, true]);
  expect(streams.every((stream) => stream.destroyed)).toBe(true);
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
  expect(await text(answer.body)).toBe("begun and whole");
  expect(answer.ending()).toBe("complete");
  await closed;
});

test("an agent that closes cuts what runs beyond the deadline", async () => {
  await using router = await openRouterEnd();
  const { closed, handle } = holding();
  const agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  const answer = await router.send();
  await agent.link.close(50);
  await text(answer.body);
  expect(answer.ending()).toBe("broken");
  expect(closed).toEqual([{ rstCode: expect.any(Number) as number, routerLost: true }]);
});

test("an agent killed in mid-answer leaves an answer that is not whole, however clean its end looks", async () => {
  await using router = await openRouterEnd();
  const agent = fork(join(import.meta.dirname, "data-agent.ts"), [String(router.data.address.port)]);
  const gone = once(agent, "exit");
  await linked(router);
  const answer = await router.send();
  const [first] = (await once(answer.body, "data")) as [Buffer];
  expect(first.toString()).toContain("begun");
  agent.kill("SIGKILL");
  await gone;
  await text(answer.body);
  expect(answer.ending()).toBe("broken");
  await linked(router, 0);
  expect(router.inFlight()).toBe(0);
});

test("3,000 quick cancels do not end a session", async () => {
  await using router = await openRouterEnd();
  const { closed, handle } = holding();
  await using agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  for (let i = 0; i < 30; i++) {
    const answers = await Promise.all(Array.from({ length: 100 }, () => router.send()));
    for (const answer of answers) answer.body.destroy();
  }
  await expect.poll(() => closed.length, { timeout: 10_000 }).toBe(3_000);
  expect(closed.every(({ routerLost }) => !routerLost)).toBe(true);
  expect(agent.told.filter(([event]) => event === "dataSessionDown")).toEqual([]);
  expect((await router.send()).status).toBe(200);
});

test("1,200 open streams use several sessions, evenly, and all of them end whole", async () => {
  await using router = await openRouterEnd();
  const { streams, handle } = holding();
  await using agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  const answers = [];
  for (let i = 0; i < 60; i++) {
    answers.push(...(await Promise.all(Array.from({ length: 20 }, () => router.send()))));
    await turn();
  }
  await linked(router, 5);
  expect(agent.link.sessions).toBe(5);
  const perSession = new Map<unknown, number>();
  for (const stream of streams) perSession.set(stream.session, (perSession.get(stream.session) ?? 0) + 1);
  expect(perSession.size).toBe(5);
  expect(router.inFlight()).toBe(1_200);
  for (const stream of streams) {
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-weiche-end": "complete" }));
    stream.end("done");
  }
  for (const answer of answers) {
    expect(await text(answer.body)).toBe("begun done");
    expect(answer.ending()).toBe("complete");
  }
  await expect.poll(() => router.inFlight()).toBe(0);
});

test("streams that nobody reads hold up no other stream and hold only their window", async () => {
  await using router = await openRouterEnd();
  const written: number[] = [];
  const chunk = randomBytes(16 << 10);
  await using _agent = openAgentEnd(router.data.address.port, (stream) => {
    const index = written.push(0) - 1;
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-weiche-end": "complete" }));
    const more = () => {
      while (written[index]! < 4 << 20) {
        written[index]! += chunk.length;
        if (!stream.write(chunk)) return;
      }
      stream.end();
    };
    stream.on("drain", more);
    more();
  });
  await linked(router);
  const unread = await Promise.all(Array.from({ length: 20 }, () => router.send()));
  const read = await router.send();
  expect((await buffer(read.body)).length).toBe(4 << 20);
  expect(read.ending()).toBe("complete");
  for (const bytes of written.slice(0, 20)) expect(bytes).toBeLessThanOrEqual(512 << 10);
  for (const answer of unread) expect((await buffer(answer.body)).length).toBe(4 << 20);
});

test("large bodies that the agent does not read yet hold up no other request", async () => {
  await using router = await openRouterEnd();
  const waiting: ServerHttp2Stream[] = [];
  await using _agent = openAgentEnd(router.data.address.port, (stream, headers, session) => {
    if (headers["content-length"] === "2") answering("small")(stream, headers, session);
    else waiting.push(stream);
  });
  await linked(router);
  const body = randomBytes(20 << 20);
  const large = Array.from({ length: 5 }, () => router.send({ body }));
  await expect.poll(() => waiting.length).toBe(5);
  expect(await text((await router.send()).body)).toBe("small");
  for (const stream of waiting) {
    expect((await buffer(stream)).equals(body)).toBe(true);
    answering("large")(stream, {}, undefined as never);
  }
  for (const answer of large) expect(await text((await answer).body)).toBe("large");
});

test("large answers, written at once, that nobody reads yet hold up no other answer", async () => {
  await using router = await openRouterEnd();
  const large = randomBytes(8 << 20);
  let chunk: string | Buffer = large;
  await using _agent = openAgentEnd(router.data.address.port, (...given) => answering(chunk)(...given));
  await linked(router);
  const unread = await Promise.all(Array.from({ length: 5 }, () => router.send()));
  chunk = "small";
  expect(await text((await router.send()).body)).toBe("small");
  for (const answer of unread) expect((await buffer(answer.body)).equals(large)).toBe(true);
});

test("a connection that falls silent is noticed at both ends within 5 s, and replaced once it can be", async () => {
  await using router = await openRouterEnd();
  using proxy = await openTcpProxy(router.data.address.port);
  const { closed, handle } = holding();
  await using agent = openAgentEnd(proxy.port, handle);
  await linked(router);
  const answer = await router.send();
  await once(answer.body, "data");
  proxy.silence();
  const ended = text(answer.body);
  const bound = { timeout: 5_000, interval: 20 };
  const deadline = performance.now() + 5_000;
  await expect.poll(() => sessionsOf(router), bound).toBe(0);
  await expect.poll(() => closed.map(({ routerLost }) => routerLost), bound).toEqual([true]);
  expect(performance.now()).toBeLessThan(deadline);
  await ended;
  expect(answer.ending()).toBe("broken");
  expect(agent.link.sessions).toBe(0);
  proxy.speak();
  await linked(router);
});

test("agents are back within 5 s after a restart of the router", async () => {
  const before = await openRouterEnd();
  const { port } = before.data.address;
  await using _agent = openAgentEnd(port, answering("x"));
  await linked(before);
  await before.data.close(0);
  await using after = await openRouterEnd({ port });
  await linked(after);
  expect(await text((await after.send()).body)).toBe("x");
});

test("sessions of an earlier start of the agent are not used", async () => {
  await using router = await openRouterEnd();
  const { closed, handle } = holding();
  await using _agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  for (let i = 0; i < 5; i++) await router.send();
  router.data.dropEarlierBoots(node, "boot");
  expect(sessionsOf(router)).toBe(1);
  router.data.dropEarlierBoots(node, "later boot");
  await expect.poll(() => closed.length).toBe(5);
  expect(closed.every(({ routerLost }) => routerLost)).toBe(true);
});
