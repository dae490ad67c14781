/** Tests the API on real data connections: registry, placement and frames, with simulated nodes at the other end. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { FrameConnection } from "@weiche/shared/frames/frame-connection.ts";
import { ends } from "@weiche/shared/frames/frame.ts";
import type { Gone } from "@weiche/shared/frames/frame-stream.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import { identityPath, readRecord } from "@weiche/shared/node-protocol.ts";
import { SimStream } from "@weiche/shared/testing/sim-stream.ts";
import { DataConnections } from "../../src/nodes/data-connections.ts";
import { place } from "../../src/nodes/placement.ts";
import { NodeRegistry } from "../../src/nodes/registry.ts";
import { SlotState } from "../../src/nodes/node-view.ts";
import { grants } from "../usage/usage-records.ts";
import { catalogue, chat, startApi, type Harness } from "./api-harness.ts";
import { RawClient, rawPost, settledCount, until } from "../edge/raw-client.ts";

const path = "/v1/chat/completions";
type Script = (stream: SimStream, node: string, socket: Socket) => void;

let data: DataConnections;
let registry: NodeRegistry;
let api: Harness;
let script: Script;
/** The streams that nodes received: node, attempt and why the stream was lost. */
const seen: { node: string; attempt: unknown; lostBy?: Gone | undefined }[] = [];

const refusedSessions: string[] = [];

beforeAll(async () => {
  registry = new NodeRegistry();
  const events = {
    ...{ dataConnectionUp() {}, dataConnectionDown() {} },
    dataConnectionRefused: (reason: string) => void refusedSessions.push(reason),
  };
  const listen = { host: "127.0.0.1", port: 0 };
  data = await DataConnections.open({ listen, grants, routerId: "r", clock: systemClock, counts: registry, events });
  api = await startApi({
    upstream: data,
    place: (request, exclude) =>
      place(request, registry.view(systemClock.monotonicMs()), systemClock.monotonicMs(), () => 0, exclude),
  });
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  await data.close(0);
});
beforeEach(async () => {
  seen.length = 0;
  for (const name of ["n1", "n2"]) await openNode(name);
});

/** Opens a node that is linked, reports the model as active and dials one data connection. */
async function openNode(name: string): Promise<void> {
  if (registry.view(systemClock.monotonicMs()).some(({ node, reachable }) => node === name && reachable)) return;
  const node = asId<NodeId>(name);
  const models = [...catalogue.keys()];
  const link = registry.linkUp({ node, bootId: "b", agentVersion: "0", slots: [{ name: asId("a"), models }] }, 0);
  const slot = {
    name: asId<never>("a"),
    state: SlotState.ACTIVE,
    activeModel: models[2]!,
    running: 0,
    runningOfRouter: 0,
    stateAgeMs: 0,
  } as const;
  const report = () =>
    link.report({ slots: [{ ...slot, waiters: [] }], maintenance: false, admitting: true }, systemClock.monotonicMs());
  report();
  setInterval(report, 500).unref();
  const socket = connect(data.address.port, data.address.host);
  await once(socket, "connect");
  openAgent(socket, { node, bootId: "b" }, (stream, record) => {
    const entry: (typeof seen)[number] = { node: name, attempt: record[2] };
    seen.push(entry);
    stream.once("over", () => (entry.lostBy = stream.lostBy));
    stream.frames.resume();
    script(stream, name, socket);
  });
  await until(() => registry.view(systemClock.monotonicMs()).some((view) => view.node === node && view.reachable));
}

/** Opens the agent's end of a connection. Sends the identity and passes streams to `handle`. */
function openAgent(socket: Socket, identity: object, handle: (stream: SimStream, record: readonly unknown[]) => void) {
  new FrameConnection(socket, {
    clock: systemClock,
    take: (frames, text) => {
      const stream = SimStream.taken(frames);
      const record = readRecord(text);
      if (record[0] === identityPath) stream.answer(JSON.stringify(identity));
      else handle(stream, record);
      return stream;
    },
    closed() {},
  });
}

const ask = () => api.post(path, chat({ stream: true }));

test.each(["", "gpu 1", "gpu-1\n", "x".repeat(64), 7])(
  "a data connection is refused if its node is %j, which names no node",
  async (node) => {
    const before = refusedSessions.length;
    const socket = connect(data.address.port, data.address.host).on("error", () => {});
    await once(socket, "connect");
    openAgent(socket, { node, bootId: "b" }, () => {});
    await once(socket, "close");
    expect(refusedSessions.slice(before)).toEqual(["identity"]);
  },
);

test("a stream with its end reaches the client as a complete answer [S6.2]", async () => {
  script = (stream) => {
    stream.begin();
    for (let n = 0; n < 500; n++) stream.frames.write(`data: ${n} ${"x".repeat(1_000)}\n\n`);
    stream.frames.write("data: [DONE]\n\n");
    stream.frames.end(ends.complete);
  };
  const answer = await ask();
  expect(answer.text.split("\n\n").length).toBe(502);
  expect(answer.text.endsWith("data: [DONE]\n\n")).toBe(true);
});

test.each<[name: string, end: (stream: SimStream, socket: Socket) => void]>([
  ["is cancelled", (stream) => stream.cancel()],
  ["is refused after its head", (stream) => stream.frames.cancel("refused")],
  ["is lost with its node", (_stream, socket) => socket.destroy()],
])("a stream that %s ends in an error event and without its end", async (_name, end) => {
  script = (stream, _node, socket) => {
    stream.begin();
    stream.frames.write("data: 1\n\n");
    setTimeout(() => end(stream, socket), 20);
  };
  const client = new RawClient(api.port).send(rawPost(path, JSON.stringify(chat({ stream: true }))));
  const received = await client.all();
  expect(received).toMatch(/data: 1\n\n.*data: \{"error":\{.*"code":"500"\}\}\n\n\r\n$/s);
  expect(seen.length).toBe(1);
});

test("another node answers if the first is lost before the head of its answer", async () => {
  script = (stream, node, socket) => {
    if (seen.length === 1) socket.destroy();
    else stream.answer(JSON.stringify({ node }));
  };
  const answer = await ask();
  expect(answer.json).toEqual({ node: seen[1]!.node });
  expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2]);
  expect(seen[0]!.node).not.toBe(seen[1]!.node);
});

test("a client that leaves cancels its held or running stream at the node, and its record is billed", async () => {
  const scripts: Script[] = [
    () => {},
    (stream) => {
      stream.begin();
      stream.frames.write("data: 1\n\n");
    },
  ];
  for (script of scripts) {
    seen.length = api.verdicts.length = 0;
    const client = new RawClient(api.port).send(rawPost(path, JSON.stringify(chat({ stream: true }))));
    await until(() => seen.length === 1 && (script === scripts[0] || client.received.includes("data: 1")));
    client.socket.resetAndDestroy();
    await until(() => seen[0]!.lostBy === "unwanted", 1_000);
    await until(() => api.verdicts.length > 0);
    expect(api.verdicts).toEqual([`settled ${seen[0]!.node} 1`]);
  }
  await until(() => api.left.length === api.finished.length);
  expect(api.failures).toEqual([]);
});

test("a client that does not read delays only its own stream [D3]", async () => {
  let written = 0;
  script = (stream) => {
    if (seen.length > 1) return stream.answer("data: [DONE]\n\n", "events");
    stream.begin();
    const event = `data: ${"x".repeat(8_000)}\n\n`;
    const pump = () => {
      do written += event.length;
      while (!stream.isOver && stream.frames.write(event));
    };
    stream.on("drain", pump);
    pump();
  };
  const client = new RawClient(api.port);
  client.socket.pause();
  client.send(rawPost(path, JSON.stringify(chat({ stream: true }))));
  await until(() => written > 0);
  for (let n = 0; n < 20; n++) expect((await ask()).text).toBe("data: [DONE]\n\n");
  expect(await settledCount(() => written)).toBeLessThan(32 << 20);
  client.socket.destroy();
  await until(() => seen[0]!.lostBy === "unwanted");
});
