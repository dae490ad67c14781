/** Tests that breaking any rule of a data connection leads to a GOAWAY that names the rule and closes the connection. */
import { expect, test } from "vitest";
import { textOf } from "../cluster/read-answer.ts";
import { byHand, holding, linked, openAgentEnd, openRouterEnd, sessionsOf } from "./link-ends.ts";
import { frameTypes, PlainPeer, plainFrame, u32, window } from "./plain-peer.ts";
import { PlainRouter } from "./plain-router.ts";

const { cancel, data, done, end, goaway, head, ping, pong, windowed } = frameTypes;

const bytes = (length: number) => Buffer.alloc(length, "x");
const record = '["/v1/chat/completions"]';

/** Violations that either end can commit. `running`: an open stream whose answer has begun. */
const common: [rule: string, what: string, pieces: (running: number) => readonly Buffer[]][] = [
  ...[0, 10, 0x7f, 255].map((type): (typeof common)[number] => [
    "type",
    `type ${type}`,
    () => [plainFrame(type, 0, "")],
  ]),
  ...(
    [
      [head, 1, 0],
      [head, 1, 16_385],
      [data, 1, 0],
      [data, 1, 65_537],
      [end, 1, 0],
      [end, 1, 2],
      [cancel, 1, 0],
      [cancel, 1, 2],
      [windowed, 1, 3],
      [windowed, 1, 5],
      [ping, 0, 7],
      [ping, 0, 9],
      [pong, 0, 0],
      [goaway, 0, 1_025],
      [done, 1, 1],
      [data, 1, 0xffff_ffff],
    ] as const
  ).map(([type, isOnStream, length]): (typeof common)[number] => [
    "length",
    `type ${type} of ${length} bytes, before any of them has come`,
    (running) => [plainFrame(type, isOnStream * running, "", length)],
  ]),
  ...[head, data, end, cancel].map((type): (typeof common)[number] => [
    "stream",
    `type ${type} on stream 0`,
    () => [plainFrame(type, 0, "x")],
  ]),
  ["stream", "WINDOW on stream 0", () => [plainFrame(windowed, 0, u32(1))]],
  ["stream", "DONE on stream 0", () => [plainFrame(done, 0, "")]],
  ...[ping, pong].map((type): (typeof common)[number] => [
    "stream",
    `type ${type} on a stream`,
    (running) => [plainFrame(type, running, bytes(8))],
  ]),
  ["stream", "GOAWAY on a stream", (running) => [plainFrame(goaway, running, "")]],
  ...[data, end, cancel].map((type): (typeof common)[number] => [
    "stream",
    `type ${type} for a stream that was never opened`,
    (running) => [plainFrame(type, running + 1_000, "x")],
  ]),
  ["credit", "a WINDOW of 0", (running) => [plainFrame(windowed, running, u32(0))]],
  ["credit", "a WINDOW above the window", (running) => [plainFrame(windowed, running, u32(window + 1))]],
  ["credit", "the largest WINDOW", (running) => [plainFrame(windowed, running, u32(0xffff_ffff))]],
  [
    "credit",
    "DATA longer than the credit",
    (running) => Array.from({ length: 5 }, () => plainFrame(data, running, bytes(65_536))),
  ],
];

const ofAgents: typeof common = [
  ["stream", "a HEAD of an agent for a stream of its own", (running) => [plainFrame(head, running + 1_000, "[200]")]],
  ["state", "a second HEAD", (running) => [plainFrame(head, running, '[200,"events"]')]],
];

const ofRouters: typeof common = [
  ["stream", "a HEAD whose number is not higher", (running) => [plainFrame(head, running, record)]],
  ["stream", "a HEAD whose number is lower", (running) => [plainFrame(head, running - 1, record)]],
  ["state", "DATA after the END", (running) => [plainFrame(end, running, "\0"), plainFrame(data, running, "x")]],
  ["state", "a DONE", (running) => [plainFrame(done, running, "")]],
  ["state", "two ENDs", (running) => [plainFrame(end, running, "\0"), plainFrame(end, running, "\0")]],
];

test.each([...common, ...ofAgents])("broken by an agent: %s: %s", async (rule, _what, pieces) => {
  await using router = await openRouterEnd();
  const agent = await PlainPeer.dial(router.data.address.port);
  let running = 0;
  agent.onOpened = (stream) => {
    running = stream;
    agent.begin(stream);
  };
  await linked(router);
  const answer = await router.send();
  agent.pour(...pieces(running));
  await agent.closed();
  expect(agent.farewell).toMatch(new RegExp(`\\b${rule}\\b`));
  expect([await textOf(answer).catch(String), answer.body.ending]).toContain("broken");
  await expect.poll(() => sessionsOf(router)).toBe(0);
  const told = router.told.filter(([event]) => event === "dataConnectionRefused");
  expect(told).toEqual([["dataConnectionRefused", "protocol", expect.stringContaining(rule), expect.any(String)]]);
  expect(agent.broken).toEqual([]);
});

test.each([...common, ...ofRouters])("broken by a router: %s: %s", async (rule, _what, pieces) => {
  await using router = await PlainRouter.listen();
  const { handle, closed } = holding();
  await using agent = openAgentEnd(router.port, handle);
  const peer = await router.next();
  const running = peer.open([...Array<string>(14).keys()]);
  await peer.until("the answer's HEAD", () => peer.of(running, head).length === 1);
  peer.pour(...pieces(running));
  await peer.closed();
  expect(peer.farewell).toMatch(new RegExp(`\\b${rule}\\b`));
  await expect.poll(() => closed.length).toBe(1);
  const told = agent.told.filter(([event]) => event === "dataConnectionBroken");
  expect(told).toEqual([["dataConnectionBroken", "router-1", rule, expect.any(String)]]);
  expect(peer.broken).toEqual([]);
});

test("an agent whose connection was closed for a broken rule dials another connection", async () => {
  await using router = await PlainRouter.listen();
  await using _agent = openAgentEnd(router.port, holding().handle);
  (await router.next()).pour(plainFrame(0, 0, ""));
  const again = await router.next();
  expect(again.isClosed).toBe(false);
});

/** For a stream that is over, only type and length are checked. */
const late = (stream: number): readonly Buffer[] => [
  plainFrame(data, stream, bytes(65_536)),
  ...Array.from({ length: 8 }, () => plainFrame(data, stream, bytes(65_536))),
  plainFrame(windowed, stream, u32(0)),
  plainFrame(windowed, stream, u32(0xffff_ffff)),
  plainFrame(end, stream, Buffer.from([9])),
  plainFrame(cancel, stream, Buffer.from([9])),
];

test("an agent drops frames of ended streams but still counts their lengths", async () => {
  await using router = await PlainRouter.listen();
  const { handle, streams } = holding();
  await using agent = openAgentEnd(router.port, handle);
  const peer = await router.next();
  const record = [...Array<string>(14).keys()];
  const [answered, left] = [peer.open(record), peer.open(record)];
  await peer.until("both HEADs", () => peer.of(left, head).length === 1);
  streams[0]!.finish();
  expect(await peer.ending(answered)).toBe("end 0");
  peer.cancel(left);
  peer.pour(...late(answered), ...late(left));
  await peer.settled();
  expect(agent.told.filter(([event]) => event === "dataConnectionBroken")).toEqual([]);
  peer.pour(plainFrame(data, answered, "", 65_537));
  await peer.closed();
  expect(peer.farewell).toMatch(/length/);
});

test("a HEAD beyond 2,000 open streams is refused with CANCEL 1, and the 2,000 streams continue", async () => {
  await using router = await PlainRouter.listen();
  const { handle, streams } = holding();
  await using _agent = openAgentEnd(router.port, handle);
  const peer = await router.next();
  const record = [...Array<string>(14).keys()];
  const opened = Array.from({ length: 2_001 }, () => peer.open(record));
  expect(await peer.ending(opened.at(-1)!)).toBe("cancel 1");
  await peer.until("the other HEADs", () => opened.slice(0, -1).every((stream) => peer.of(stream, head).length === 1));
  streams[0]!.finish();
  expect(await peer.ending(opened[0]!)).toBe("end 0");
  const next = peer.open(record);
  await peer.until("the next HEAD", () => peer.of(next, head).length === 1);
  expect(peer.broken).toEqual([]);
});

test("a router that opens more than 2,000 streams and reads nothing is closed", async () => {
  await using router = await PlainRouter.listen();
  let taken = 0;
  const answer = bytes(window);
  const handle = byHand((stream) => {
    taken++;
    stream.begin();
    stream.frames.write(answer);
  });
  await using agent = openAgentEnd(router.port, handle);
  const peer = await router.next();
  peer.reads(false);
  const record = [...Array<string>(14).keys()];
  for (let n = 0; n < 2_000; n++) peer.open(record);
  await expect.poll(() => taken).toBe(2_000);
  const told = () => agent.told.find(([event]) => event === "dataConnectionBroken");
  const more = () => {
    peer.open(record);
    return told();
  };
  await expect.poll(more, { interval: 5 }).toEqual(["dataConnectionBroken", "router-1", "stream", expect.any(String)]);
  peer.reads(true);
  await peer.closed();
  expect([taken, peer.farewell]).toEqual([2_000, expect.stringMatching(/\bstream\b/)]);
});

test("an agent dials at most 16 connections to a router that sends GOAWAY on each and closes none", async () => {
  await using router = await PlainRouter.listen();
  await using agent = openAgentEnd(router.port, holding().handle);
  for (let n = 0; n < 16; n++) {
    const peer = await router.next();
    peer.pour(plainFrame(goaway, 0, ""));
    await peer.settled();
  }
  await router.peers.at(-1)!.settled();
  expect([agent.link.connections, router.peers.length]).toEqual([16, 16]);
  router.peers[0]!.destroy();
  await router.next();
  expect(agent.link.connections).toBe(16);
});
