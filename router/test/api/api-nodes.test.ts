/** The API on real data connections: registry, placement and HTTP/2, with simulated nodes at the other end. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { performServerHandshake, type Http2Session, type ServerHttp2Stream } from "node:http2";
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import { endComplete, endTrailer, identityPath, nodeHeaders } from "@weiche/shared/node-protocol.ts";
import { DataConnections } from "../../src/nodes/data-connections.ts";
import { place } from "../../src/nodes/placement.ts";
import { NodeRegistry } from "../../src/nodes/registry.ts";
import { SlotState } from "../../src/nodes/node-view.ts";
import { grants } from "../usage/usage-records.ts";
import { catalogue, chat, rawPost, RawClient, settledCount, startApi, until, type Harness } from "./api-harness.ts";

const path = "/v1/chat/completions";
type Script = (stream: ServerHttp2Stream, node: string, session: Http2Session) => void;

let data: DataConnections;
let registry: NodeRegistry;
let api: Harness;
let script: Script;
/** Node, attempt and code with which the stream was closed. */
const seen: { node: string; attempt: string; closedWith?: number }[] = [];

const refusedSessions: string[] = [];

beforeAll(async () => {
  registry = new NodeRegistry();
  const events = {
    ...{ dataSessionUp() {}, dataSessionDown() {} },
    dataSessionRefused: (reason: string) => void refusedSessions.push(reason),
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

/** A node that is linked, reports that the model is active, and dials one data connection. */
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
  const session = performServerHandshake(socket);
  session.on("error", () => {});
  session.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    if (headers[":path"] === identityPath)
      return (stream.respond({ ":status": 200 }), stream.end(JSON.stringify({ node, bootId: "b" })));
    const entry: (typeof seen)[number] = { node: name, attempt: String(headers[nodeHeaders.attempt]) };
    seen.push(entry);
    stream.once("close", () => (entry.closedWith = stream.rstCode));
    stream.resume();
    script(stream, name, session);
  });
  await until(() => registry.view(systemClock.monotonicMs()).some((view) => view.node === node && view.reachable));
}

function respond(stream: ServerHttp2Stream, type: string, end = endComplete): void {
  stream.respond({ ":status": 200, "content-type": type }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ [endTrailer]: end }));
}
const kill = (session: Http2Session) => session.socket.destroy();
const ask = () => api.post(path, chat({ stream: true }));

test.each(["", "gpu 1", "gpu-1\n", "x".repeat(64), 7])(
  "a data session is none of %j, which names no node",
  async (node) => {
    const before = refusedSessions.length;
    const socket = connect(data.address.port, data.address.host).on("error", () => {});
    await once(socket, "connect");
    const session = performServerHandshake(socket).on("error", () => {});
    session.on("stream", (stream) => {
      stream.respond({ ":status": 200 });
      stream.end(JSON.stringify({ node, bootId: "b" }));
    });
    await once(socket, "close");
    expect(refusedSessions.slice(before)).toEqual(["identity"]);
  },
);

test("a stream with its trailer is whole", async () => {
  script = (stream) => {
    respond(stream, "text/event-stream");
    for (let n = 0; n < 500; n++) stream.write(`data: ${n} ${"x".repeat(1_000)}\n\n`);
    stream.end("data: [DONE]\n\n");
  };
  const answer = await ask();
  expect(answer.text.split("\n\n").length).toBe(502);
  expect(answer.text.endsWith("data: [DONE]\n\n")).toBe(true);
});

test.each<[name: string, end: (stream: ServerHttp2Stream, session: Http2Session) => void]>([
  ["ends without a trailer", (stream) => stream.destroy()],
  ["is reset", (stream) => stream.close(2)],
  ["is cancelled", (stream) => stream.close(8)],
  ["goes with its node", (_stream, session) => kill(session)],
])("a stream that %s ends in an error event and without its end", async (_name, end) => {
  script = (stream, _node, session) => {
    stream.respond({ ":status": 200, "content-type": "text/event-stream" }, { waitForTrailers: true });
    stream.write("data: 1\n\n", () => setTimeout(() => end(stream, session), 20));
  };
  const client = new RawClient(api.port).send(rawPost(path, JSON.stringify(chat({ stream: true }))));
  const received = await client.all();
  expect(received).toMatch(/data: 1\n\n.*data: \{"error":\{.*"code":"500"\}\}\n\n\r\n$/s);
  expect(seen.length).toBe(1);
});

test("a stream to a node has no timeout of HTTP/2, of its session or of its socket", async () => {
  const timeouts: unknown[] = [];
  const onStart = (message: unknown) => {
    const { stream } = message as { stream: Timed & { session: Timed & { socket: Timed } } };
    timeouts.push(...[stream, stream.session, stream.session.socket].map(({ timeout }) => timeout ?? 0));
  };
  subscribe("http2.client.stream.start", onStart);
  script = (stream) => {
    respond(stream, "application/json");
    stream.end("{}");
  };
  expect((await ask()).status).toBe(200);
  unsubscribe("http2.client.stream.start", onStart);
  expect(timeouts).toEqual([0, 0, 0]);
});
/** As `setTimeout` leaves them; undefined where it was never called. */
interface Timed {
  readonly timeout: number | undefined;
}

test("a node that goes before the head of its answer is replaced, and nobody notices", async () => {
  script = (stream, node, session) => {
    if (seen.length === 1) return kill(session);
    respond(stream, "application/json");
    stream.end(JSON.stringify({ node }));
  };
  const answer = await ask();
  expect(answer.json).toEqual({ node: seen[1]!.node });
  expect(seen.map(({ attempt }) => attempt)).toEqual(["1", "2"]);
  expect(seen[0]!.node).not.toBe(seen[1]!.node);
});

test("a client that leaves resets its stream at the node, held or streaming", async () => {
  const scripts: Script[] = [
    () => {},
    (stream) => {
      respond(stream, "text/event-stream");
      stream.write("data: 1\n\n");
    },
  ];
  for (script of scripts) {
    seen.length = 0;
    const client = new RawClient(api.port).send(rawPost(path, JSON.stringify(chat({ stream: true }))));
    await until(() => seen.length === 1 && (script === scripts[0] || client.received.includes("data: 1")));
    client.socket.resetAndDestroy();
    await until(() => seen[0]!.closedWith === 8, 1_000);
  }
  await until(() => api.left.length === api.finished.length);
  expect(api.failures).toEqual([]);
});

test("a client that does not read holds up its own stream and no other", async () => {
  let written = 0;
  script = (stream) => {
    respond(stream, "text/event-stream");
    if (seen.length > 1) return stream.end("data: [DONE]\n\n");
    const event = `data: ${"x".repeat(8_000)}\n\n`;
    const pump = () => {
      while (!stream.destroyed && stream.write(event)) written += event.length;
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
  await until(() => seen[0]!.closedWith === 8);
});
