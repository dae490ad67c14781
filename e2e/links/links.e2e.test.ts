/** Tests links and data connections together with two real ends: when a node is reachable, and when the router notices. */
import { expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { usageRecord } from "@weiche/node-agent/test/outbox/usage-records.ts";
import { textOf } from "../cluster/read-answer.ts";
import { holding, node, requestOf, slot } from "./link-ends.ts";
import { openTcpProxy } from "./tcp-proxy.ts";
import { addressOf, model, openWholeAgent, openWholeRouter, type WholeRouter } from "./whole-links.ts";

async function reachable(router: WholeRouter): Promise<void> {
  await expect.poll(() => router.isReachable(), { timeout: 5_000, interval: 10 }).toBe(true);
}

test("a started agent gets requests within seconds, answers them, and its usage is committed once", async () => {
  await using router = await openWholeRouter();
  await using agent = openWholeAgent([addressOf(router)]);
  await reachable(router);
  expect(router.place()).toEqual({ node, slot });
  const answer = await router.data.send(node, requestOf(), new AbortController().signal);
  expect(await textOf(answer)).toBe("hello");
  const record = usageRecord(4, { model, reasoningTokens: 2, firstTokenMs: 5 });
  agent.channels.get("router-1")!.send(9n, [record]);
  await expect.poll(() => agent.acknowledged).toEqual([9n]);
  expect(router.recorded).toEqual([record]);
});

test("an agent serves every router, and a gone router affects no other", async () => {
  await using first = await openWholeRouter();
  const second = await openWholeRouter({ id: "router-2" });
  await using agent = openWholeAgent([addressOf(first), addressOf(second)]);
  await reachable(first);
  await reachable(second);
  expect([...agent.channels.keys()].toSorted((a, b) => a.localeCompare(b))).toEqual(["router-1", "router-2"]);
  await second[Symbol.asyncDispose]();
  await expect.poll(() => [...agent.channels.keys()]).toEqual(["router-1"]);
  expect(first.isReachable()).toBe(true);
});

test("a restarted router reaches its nodes within 5 s [C3]", async () => {
  const before = await openWholeRouter();
  const ports = { link: before.link.address.port, data: before.data.address.port };
  await using _agent = openWholeAgent([addressOf(before)]);
  await reachable(before);
  await before[Symbol.asyncDispose]();
  await using after = await openWholeRouter({ id: "router-1 again", ports });
  await reachable(after);
  const answer = await after.data.send(node, requestOf(), new AbortController().signal);
  expect(await textOf(answer)).toBe("hello");
});

test("a restarted agent is reached within 5 s, and never through connections of its earlier start [C3]", async () => {
  await using router = await openWholeRouter();
  const before = openWholeAgent([addressOf(router)], { bootId: "00000000-0000-7000-8000-000000000001" });
  await reachable(router);
  // Its connections stay open, as after a power failure of its host.
  await using _after = openWholeAgent([addressOf(router)], { bootId: "00000000-0000-7000-8000-000000000002" });
  await expect
    .poll(() => router.registry.details(0)[0]!.hello.bootId, { timeout: 5_000 })
    .toBe("00000000-0000-7000-8000-000000000002");
  await reachable(router);
  await expect.poll(() => router.registry.details(0)[0]!.dataConnections, { timeout: 5_000 }).toBe(1);
  const answer = await router.data.send(node, requestOf(), new AbortController().signal);
  expect(await textOf(answer)).toBe("hello");
  await expect
    .poll(() =>
      before.told.some(([event, , reason]) => event === "routerLinkFailed" && /again since/.test(String(reason))),
    )
    .toBe(true);
  await before[Symbol.asyncDispose]();
});

test("a node that closes its connections gets no request from that moment [C1]", async () => {
  await using router = await openWholeRouter();
  const agent = openWholeAgent([addressOf(router)]);
  await reachable(router);
  await agent[Symbol.asyncDispose]();
  await expect.poll(() => router.place(), { timeout: 1_000 }).toMatchObject({ refused: "no_node_available" });
});

test("a draining agent accepts no requests, lets running ones end, and delivers their usage", async () => {
  await using router = await openWholeRouter();
  const { streams, handle } = holding();
  await using agent = openWholeAgent([addressOf(router)], { handle });
  await reachable(router);
  const answer = await router.data.send(node, requestOf(), new AbortController().signal);
  const drained = agent.links.drain(60_000);
  await expect.poll(() => router.place(), { timeout: 1_000 }).toMatchObject({ refused: "no_node_available" });
  streams[0]!.finish("done");
  expect(await textOf(answer)).toBe("begun done");
  expect(answer.body.ending).toBe("complete");
  await drained;
  agent.channels.get("router-1")!.send(1n, []);
  await expect.poll(() => agent.acknowledged).toEqual([1n]);
});

test("both ends notice silence in both directions within 5 s and reconnect when it ends [C1]", async () => {
  using linkProxy = await openTcpProxy();
  using dataProxy = await openTcpProxy();
  await using router = await openWholeRouter({ dataAddress: `127.0.0.1:${dataProxy.port}` });
  linkProxy.to(router.link.address.port);
  dataProxy.to(router.data.address.port);
  await using agent = openWholeAgent([`127.0.0.1:${linkProxy.port}`]);
  await reachable(router);
  linkProxy.silence();
  dataProxy.silence();
  const bound = { timeout: 5_000, interval: 20 };
  const deadline = performance.now() + 5_000;
  await expect.poll(() => router.place(), bound).toMatchObject({ refused: "no_node_available" });
  await expect.poll(() => router.told.some(([event]) => event === "nodeUnlinked"), bound).toBe(true);
  await expect.poll(() => router.told.some(([event]) => event === "dataConnectionDown"), bound).toBe(true);
  await expect.poll(() => agent.channels.size, bound).toBe(0);
  await expect.poll(() => agent.told.some(([event]) => event === "dataConnectionDown"), bound).toBe(true);
  expect(performance.now()).toBeLessThan(deadline);
  linkProxy.speak();
  dataProxy.speak();
  await expect.poll(() => router.isReachable(), { timeout: 10_000 }).toBe(true);
});

test("a hundred opened and closed links leave nothing behind", async () => {
  await using router = await openWholeRouter();
  for (let round = 0; round < 10; round++) {
    const agents = Array.from({ length: 10 }, (_, i) => openWholeAgent([addressOf(router)], { node: `gpu-${i}` }));
    const states = () => router.registry.view(systemClock.monotonicMs()).filter(({ reachable: is }) => is).length;
    await expect.poll(states, { timeout: 10_000 }).toBe(10);
    await Promise.all(agents.map((agent) => agent[Symbol.asyncDispose]()));
    await expect.poll(states).toBe(0);
  }
  expect(router.registry.details(systemClock.monotonicMs()).map(({ dataConnections }) => dataConnections)).toEqual(
    Array.from({ length: 10 }, () => 0),
  );
});
