/** Tests data connections from beginning to end between a real router's end and an agent in plain buffers. */
import { expect, test } from "vitest";
import { NodeLost } from "@weiche/router/src/nodes/upstream.ts";
import { textOf } from "../cluster/read-answer.ts";
import { linked, openRouterEnd, sessionsOf } from "./link-ends.ts";
import { openPlainAgent } from "./plain-agent.ts";
import { frameTypes, PlainPeer, plainFrame } from "./plain-peer.ts";

const { goaway } = frameTypes;

test("an agent that sends GOAWAY gets no new requests, and running ones end", async () => {
  await using both = await openPlainAgent((stream) => both.agent.begin(stream));
  const answer = await both.router.send();
  both.agent.pour(plainFrame(goaway, 0, ""));
  await both.agent.settled();
  await expect(both.router.send()).rejects.toThrow(NodeLost);
  both.agent.write(both.agent.opened, "whole");
  both.agent.end(both.agent.opened);
  both.agent.fin();
  expect([await textOf(answer), answer.body.ending]).toEqual(["whole", "complete"]);
  await both.agent.closed();
  expect(both.agent.farewell).toBeUndefined();
});

test("a closing router sends GOAWAY, lets running streams end, and then sends FIN", async () => {
  await using both = await openPlainAgent((stream) => both.agent.begin(stream));
  const answer = await both.router.send();
  const closed = both.router.data.close(60_000);
  await both.agent.until("the GOAWAY", () => both.agent.farewell !== undefined);
  expect([both.agent.farewell, both.agent.hasFin]).toEqual(["", false]);
  both.agent.write(both.agent.opened, "whole");
  both.agent.end(both.agent.opened);
  expect([await textOf(answer), answer.body.ending]).toEqual(["whole", "complete"]);
  await both.agent.closed();
  expect(both.agent.hasFin).toBe(true);
  await closed;
});

test("the connection of an agent without a valid identity is closed and never used", async () => {
  await using router = await openRouterEnd();
  for (const identity of [
    {},
    { node: 7, bootId: "b" },
    { node: "", bootId: "b" },
    { node: "x".repeat(5_000), bootId: "b" },
  ]) {
    const agent = await PlainPeer.dial(router.data.address.port);
    agent.identity = identity;
    await agent.closed();
  }
  expect(sessionsOf(router)).toBe(0);
  expect(router.told.filter(([event, why]) => event === "dataConnectionRefused" && why === "identity")).toHaveLength(4);
});

test.each<[what: string, record: readonly unknown[]]>([
  ["another status", [503, "json"]],
  ["no record", [{ valueOf: 0, toString: 0 }]],
])("the connection of an agent whose identity has %s is closed", async (_what, record) => {
  await using router = await openRouterEnd();
  const agent = await PlainPeer.dial(router.data.address.port);
  agent.identityRecord = record;
  await agent.closed();
  expect(router.told.map(([event, why]) => [event, why])).toEqual([["dataConnectionRefused", "identity"]]);
});

test("the connection of an agent that sends GOAWAY before its identity is closed", async () => {
  await using router = await openRouterEnd();
  const agent = await PlainPeer.dial(router.data.address.port);
  agent.pour(plainFrame(goaway, 0, ""));
  await agent.closed();
  expect(router.told).toEqual([]);
});

test("a node that sends GOAWAY on its connections and closes none may hold 16", async () => {
  await using router = await openRouterEnd();
  const agents: PlainPeer[] = [];
  for (let n = 0; n < 16; n++) {
    const agent = await PlainPeer.dial(router.data.address.port);
    agents.push(agent);
    await linked(router);
    agent.pour(plainFrame(goaway, 0, ""));
    await linked(router, 0);
  }
  const onceMore = await PlainPeer.dial(router.data.address.port);
  await onceMore.closed();
  expect(router.told.filter(([event]) => event === "dataConnectionRefused")).toEqual([
    ["dataConnectionRefused", "too-many", "gpu-1", "127.0.0.1"],
  ]);
  expect(agents.filter(({ isClosed }) => isClosed)).toEqual([]);
  agents[0]!.destroy();
  await PlainPeer.dial(router.data.address.port);
  await linked(router);
  for (const agent of agents) agent.destroy();
});

test("an agent that is silent for 3 s is lost with its answers", async () => {
  await using both = await openPlainAgent((stream) => both.agent.begin(stream));
  const answer = await both.router.send();
  const fromMs = performance.now();
  both.agent.answers = false;
  expect([await textOf(answer), answer.body.ending]).toEqual(["", "broken"]);
  expect(performance.now() - fromMs).toBeGreaterThan(1_900); // the last PONG was up to a second before
  await both.agent.closed();
});
