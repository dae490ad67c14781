/** Tests data connections with two real ends: many streams, unread streams, silence and restarts. */
import { randomBytes } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { windowBytes } from "@weiche/shared/frames/frame.ts";
import type { SimStream } from "@weiche/shared/testing/sim-stream.ts";
import { readAnswer, textOf } from "../cluster/read-answer.ts";
import { answering, byHand, holding, linked, node, openAgentEnd, openRouterEnd, sessionsOf } from "./link-ends.ts";
import { openTcpProxy } from "./tcp-proxy.ts";

test("3,000 quick cancels do not end a connection", async () => {
  await using router = await openRouterEnd();
  const { closed, handle } = holding();
  await using agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  for (let i = 0; i < 30; i++) {
    const answers = await Promise.all(Array.from({ length: 100 }, () => router.send()));
    for (const answer of answers) answer.body.cancel();
  }
  await expect.poll(() => closed.length, { timeout: 10_000 }).toBe(3_000);
  expect(new Set(closed)).toEqual(new Set(["unwanted"]));
  expect(agent.told.filter(([event]) => event === "dataConnectionDown")).toEqual([]);
  expect((await router.send()).status).toBe(200);
});

test("1,200 open streams are spread evenly over several connections and are all completed", async () => {
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
  expect(agent.link.connections).toBe(5);
  expect(streams.filter(({ frames }) => frames.id === 2).length).toBe(5); // the first request of each connection
  expect(router.inFlight()).toBe(1_200);
  for (const stream of streams) stream.finish("done");
  for (const answer of answers) {
    expect(await textOf(answer)).toBe("begun done");
    expect(answer.body.ending).toBe("complete");
  }
  await expect.poll(() => router.inFlight()).toBe(0);
});

test("unread streams delay no other stream and hold only their window [D3]", async () => {
  await using router = await openRouterEnd();
  const written: number[] = [];
  const chunk = randomBytes(16 << 10);
  const handle = byHand((stream) => {
    const index = written.push(0) - 1;
    stream.begin();
    const more = () => {
      while (written[index]! < 4 << 20) {
        written[index]! += chunk.length;
        if (!stream.frames.write(chunk)) return;
      }
      stream.finish();
    };
    stream.on("drain", more);
    more();
  });
  await using _agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  const unread = await Promise.all(Array.from({ length: 20 }, () => router.send()));
  const read = await router.send();
  expect((await readAnswer(read).whole).length).toBe(4 << 20);
  expect(read.body.ending).toBe("complete");
  for (const bytes of written.slice(0, 20)) expect(bytes).toBeLessThanOrEqual(windowBytes + chunk.length);
  for (const answer of unread) expect((await readAnswer(answer).whole).length).toBe(4 << 20);
});

test("large bodies that the agent does not read delay no other request", async () => {
  await using router = await openRouterEnd();
  const waiting: SimStream[] = [];
  const handle = byHand((stream, record) => {
    if (record[13] === 2) stream.answer("small");
    else waiting.push(stream);
  });
  await using _agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  const body = randomBytes(20 << 20);
  const large = Array.from({ length: 5 }, () => router.send({ body }));
  await expect.poll(() => waiting.length).toBe(5);
  expect(await textOf(await router.send())).toBe("small");
  for (const stream of waiting) {
    expect((await stream.read()).equals(body)).toBe(true);
    stream.answer("large");
  }
  for (const answer of large) expect(await textOf(await answer)).toBe("large");
});

test("large unread answers delay no other answer", async () => {
  await using router = await openRouterEnd();
  const large = randomBytes(8 << 20);
  let chunk: string | Buffer = large;
  await using _agent = openAgentEnd(router.data.address.port, (...given) => answering(chunk)(...given));
  await linked(router);
  const unread = await Promise.all(Array.from({ length: 5 }, () => router.send()));
  chunk = "small";
  expect(await textOf(await router.send())).toBe("small");
  for (const answer of unread) expect((await readAnswer(answer).whole).equals(large)).toBe(true);
});

test("both ends notice a silent connection within 5 s and replace it as soon as possible [C1]", async () => {
  await using router = await openRouterEnd();
  using proxy = await openTcpProxy(router.data.address.port);
  const { closed, handle } = holding();
  await using agent = openAgentEnd(proxy.port, handle);
  await linked(router);
  const answer = await router.send();
  const { first, whole } = readAnswer(answer);
  await first;
  proxy.silence();
  const bound = { timeout: 5_000, interval: 20 };
  const deadline = performance.now() + 5_000;
  await expect.poll(() => sessionsOf(router), bound).toBe(0);
  await expect.poll(() => closed, bound).toEqual(["lost"]);
  expect(performance.now()).toBeLessThan(deadline);
  await whole;
  expect(answer.body.ending).toBe("broken");
  expect(agent.link.connections).toBe(0);
  proxy.speak();
  await linked(router);
});

test("agents connect again within 5 s after a restart of the router", async () => {
  const before = await openRouterEnd();
  const { port } = before.data.address;
  await using _agent = openAgentEnd(port, answering("x"));
  await linked(before);
  await before.data.close(0);
  await using after = await openRouterEnd({ port });
  await linked(after);
  expect(await textOf(await after.send())).toBe("x");
});

test("connections of an earlier process of the agent are not used", async () => {
  await using router = await openRouterEnd();
  const { closed, handle } = holding();
  await using _agent = openAgentEnd(router.data.address.port, handle);
  await linked(router);
  for (let i = 0; i < 5; i++) await router.send();
  router.data.dropEarlierBoots(node, "boot");
  expect(sessionsOf(router)).toBe(1);
  router.data.dropEarlierBoots(node, "later boot");
  await expect.poll(() => closed.length).toBe(5);
  expect(new Set(closed)).toEqual(new Set(["lost"]));
});
