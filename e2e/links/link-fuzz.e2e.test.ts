/**
 * Tests that router and agent survive everything that a peer sends on links and data connections, serve other peers
 * meanwhile, and release its memory. `WEICHE_CASES` sets the number of peers per test. Each peer is generated from its number.
 */
import { once } from "node:events";
import { join } from "node:path";
import { connect as connectHttp2, createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { loadSync, type MethodDefinition, type ServiceDefinition } from "@grpc/proto-loader";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sleep, systemClock } from "@weiche/shared/time/clock.ts";
import { uuidv7 } from "@weiche/shared/ids.ts";
import { frames } from "@weiche/shared/frames/frame.ts";
import { identityPath, metricsPath, nodePaths } from "@weiche/shared/node-protocol.ts";
import { rawFrame } from "@weiche/shared/testing/raw-frames.ts";
import { createRandom, type Random } from "@weiche/shared/random.ts";
import { textOf } from "../cluster/read-answer.ts";
import {
  grpcFrame,
  hostileDataFrame,
  http2Frame,
  http2Preface,
  http2Settings,
  mangle,
  randomBytes,
} from "../engines/hostile-bytes.ts";
import { node, requestOf } from "./link-ends.ts";
import { addressOf, openWholeAgent, openWholeRouter, type WholeAgent, type WholeRouter } from "./whole-links.ts";

const cases = Math.ceil(Number(process.env["WEICHE_CASES"] ?? 2_000) / 20);
/** The most memory that a test may leave behind. A leak of every peer's bytes exceeds it several times. */
const keptBytesMax = 48 << 20;

let router: WholeRouter;
let agent: WholeAgent;
beforeEach(async () => {
  router = await openWholeRouter();
});
afterEach(async () => {
  await agent[Symbol.asyncDispose]();
  await router[Symbol.asyncDispose]();
});

async function expectServed(): Promise<void> {
  const answer = await router.data.send(node, requestOf(), new AbortController().signal);
  expect(await textOf(answer)).toBe("hello");
}

/** Runs all peers, some at a time, and sends good requests meanwhile. */
async function meet(peer: (random: Random) => Promise<void>): Promise<void> {
  await expect.poll(() => router.isReachable()).toBe(true);
  await Promise.all(Array.from({ length: 20 }, (_, n) => peer(createRandom(1_000_000 + n)))); // warm
  const before = heapBytes();
  for (let first = 0; first < cases; first += 20) {
    const peers = Array.from({ length: Math.min(20, cases - first) }, (_, n) => peer(createRandom(first + n)));
    await expectServed();
    await Promise.all(peers);
  }
  await expectServed();
  expect(heapBytes() - before).toBeLessThan(keptBytesMax);
}

function heapBytes(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Writes all bytes without reading. Resolves when the connection ends or after a timeout. */
async function pour(socket: Socket, pieces: readonly Buffer[]): Promise<void> {
  socket.on("error", () => {}).resume();
  for (const piece of pieces) socket.write(piece);
  await Promise.race([once(socket, "close").catch(() => {}), sleep(systemClock, 50)]);
  socket.destroy();
}

/** With these numbers `grpcFrame` damages nothing. */
function intact(): Random {
  return createRandom(2);
}

function many(random: Random, frame: (random: Random) => Buffer): Buffer[] {
  return Array.from({ length: 1 + random.below(30) }, () => frame(random));
}

const protocol = loadSync(join(import.meta.dirname, "../../proto/weiche/node/v1/node_control.proto"), {
  keepCase: true,
});
const service = protocol["weiche.node.v1.NodeControlService"] as ServiceDefinition;
const link = service["Link"] as MethodDefinition<object, object>;

/** Valid messages of an agent, and nearly valid ones. */
function uplink(random: Random): Buffer {
  const hello = {
    node: random.pick(["gpu-2", "gpu-3", "", "x".repeat(100), "\u0000"]),
    boot_id: random.pick([uuidv7(systemClock), "boot", ""]),
    agent_version: "0".repeat(random.below(2_000)),
    slots: [{ name: "s", models: ["m"] }],
  };
  const slots = [{ name: "s", state: random.below(12), running: 4_294_967_295, waiters: [{ model: "m", waiting: 7 }] }];
  const record = {
    request_id: random.pick([uuidv7(systemClock), "r"]),
    attempt: random.below(5),
    account_id: "a",
    prompt_tokens: 4_294_967_295,
    source: random.below(4),
    outcome: random.below(8),
  };
  return link.requestSerialize(
    random.pick<object>([
      { hello },
      { load_report: { sequence: 7, slots, host: { cpu_use: NaN, gpus: [{}] } } },
      { usage_batch: { batch_id: 1, records: [record, record] } },
    ]),
  );
}

/** Valid messages of a router, and nearly valid ones. */
function downlink(random: Random, dataPort: number): Buffer {
  const models = [
    { id: "m", category: random.below(6), context_tokens: 4_294_967_295, reasoning: { mode: random.below(9) } },
  ];
  const welcome = {
    router_id: random.pick(["evil", "", "x".repeat(3_000)]),
    // Usually the right address, because links live too briefly for most of their data connections.
    data_address: random.chance(0.7) ? `127.0.0.1:${dataPort}` : random.pick(["nonsense", "0.0.0.0:0", "[::]:70000"]),
    models,
  };
  return link.responseSerialize(
    random.pick<object>([
      ...[{ welcome }, { welcome }, { welcome }],
      { usage_ack: { batch_id: random.below(100) } },
      { model_rules_changed: { models } },
      { desired_state: { generation: 7, prewarm_models: ["m", "\u2028"] } },
      { settled: { attempts: [{ request_id: "r", attempt: 4_294_967_295 }] } },
      { goodbye: {} },
    ]),
  );
}

test("a router survives everything that nodes send on links and data connections [D9]", async () => {
  agent = openWholeAgent([addressOf(router)]);
  await meet(async (random) => {
    if (random.chance(0.5)) return sayOnLink(random);
    // Also sends the protocol of one port to the other.
    const socket = connect(random.pick([router.link.address.port, router.data.address.port]), "127.0.0.1");
    if (random.chance(0.5)) {
      const more = random.chance(0.5) ? [] : many(random, hostileDataFrame);
      return pour(socket, [...identity(random), ...more]);
    }
    return pour(socket, [
      random.pick([Buffer.alloc(0), http2Preface]),
      random.pick([randomBytes(random, random.below(3_000)), http2Settings]),
      ...many(random, http2Frame),
    ]);
  });
  const heard = new Set(router.told.map(([event, about]) => `${String(event)} ${String(about)}`));
  expect([...heard]).toEqual(
    expect.arrayContaining([
      "nodeLinked gpu-2",
      "nodeRefused invalid",
      "dataConnectionUp gpu-2",
      "dataConnectionRefused identity",
      "dataConnectionRefused protocol",
    ]),
  );
});

/** Frames that answer the router's question for the identity, a damaged answer, or none. */
function identity(random: Random): Buffer[] {
  const text = random.pick([
    ...Array<string>(4).fill(JSON.stringify({ node: "gpu-2", bootId: "b" })),
    "{}",
    "null",
    "x".repeat(5_000),
  ]);
  const head = rawFrame(frames.head, 1, random.pick(['[200,"text",0,""]', "[200]", "[200]", "\u0000"]));
  return random.chance(0.3)
    ? []
    : [head, rawFrame(frames.data, 1, text), rawFrame(frames.end, 1, [random.pick([0, 0, 0, 1])])];
}

/** Opens a link with mangled messages. In every second case a valid hello comes first. */
async function sayOnLink(random: Random): Promise<void> {
  const session = connectHttp2(`http://127.0.0.1:${router.link.address.port}`).on("error", () => {});
  const stream = session.request({
    ":method": random.pick(["POST", "POST", "POST", "GET"]),
    ":path": random.pick(["/weiche.node.v1.NodeControlService/Link", "/weiche.node.v1.NodeControlService/Other"]),
    "content-type": random.pick(["application/grpc", "application/grpc", "application/grpc+json"]),
    te: "trailers",
  });
  const hello = { node: "gpu-2", boot_id: uuidv7(systemClock), agent_version: "0", slots: [] };
  if (random.chance(0.5)) stream.write(grpcFrame(intact(), link.requestSerialize({ hello })));
  stream.on("error", () => {}).resume();
  for (let messages = random.below(12); messages > 0; messages--)
    stream.write(grpcFrame(random, mangle(random, uplink(random))));
  if (random.chance(0.5)) stream.end();
  await Promise.race([once(stream, "close").catch(() => {}), sleep(systemClock, 50)]);
  session.destroy();
}

test("an agent survives everything that a router sends and serves the other router [D9]", async () => {
  let met = 0;
  let random = createRandom(0);
  const data = createServer((socket) => void callAgent(socket, random)).listen(0, "127.0.0.1");
  await once(data, "listening");
  const dataPort = (data.address() as AddressInfo).port;
  const grpc = createHttp2Server((request) => request.on("error", () => {}));
  grpc.on("sessionError", () => {});
  grpc.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => {}).resume();
    stream.respond({ ":status": 200, "content-type": "application/grpc" });
    stream.write(grpcFrame(intact(), downlink(createRandom(random.below(1_000)), dataPort)));
    for (let messages = random.below(12); messages > 0; messages--)
      stream.write(grpcFrame(random, mangle(random, downlink(random, dataPort))));
    if (random.chance(0.5)) stream.end();
    void sleep(systemClock, 50).then(() => stream.session?.destroy());
  });
  // The agent dials this server. The fuzzer changes its behaviour with each dial.
  const evil = createServer((socket) => {
    random = createRandom(met++);
    if (random.chance(0.5)) return grpc.emit("connection", socket);
    const said = random.chance(0.5) ? [randomBytes(random, 3_000)] : [http2Settings, ...many(random, http2Frame)];
    return void pour(socket, said);
  }).listen(0, "127.0.0.1");
  await once(evil, "listening");
  const agents = Array.from({ length: 40 }, (_, n) =>
    openWholeAgent([`127.0.0.1:${(evil.address() as AddressInfo).port}`], { node: `gpu-${n + 2}` }),
  );
  agent = openWholeAgent([addressOf(router), `127.0.0.1:${(evil.address() as AddressInfo).port}`]);
  await expect.poll(() => router.isReachable()).toBe(true);
  await expectServed();
  const bound = Math.min(cases, 1_000);
  const heard = () => new Set(agents.flatMap(({ told }) => told.map(([event]) => String(event))));
  const reached = ["routerLinkUp", "routerLinkFailed", "dataConnectionUp", "rulesUnreadable"];
  while (met < bound || !reached.every((event) => heard().has(event))) {
    await expectServed();
    await sleep(systemClock, 10);
  }
  await expectServed();
  for (const other of agents) await other[Symbol.asyncDispose]();
  for (const server of [evil, data]) server.close();
});

/** Valid and nearly valid requests of a router on a data connection, and frames of any kind. */
function callAgent(socket: Socket, random: Random): Promise<void> {
  const said = random.chance(0.3) ? [] : [rawFrame(frames.head, 1, JSON.stringify([identityPath]))];
  for (let stream = 2; stream < 2 + random.below(6); stream++) {
    const path = random.pick<string>([nodePaths.chat, nodePaths.embeddings, "/", metricsPath, "/\u00ff"]);
    const attempt = random.pick<unknown>([1, -1, 1e9, "1"]);
    const record = [path, random.pick([uuidv7(systemClock), "x"]), attempt, "m", "", "a", "u", "k", 1_500, 1_000, "g"];
    said.push(rawFrame(frames.head, stream, JSON.stringify([...record, 1_000, "router-1", random.below(5_000)])));
    said.push(rawFrame(frames.data, stream, randomBytes(random, 1 + random.below(5_000))));
    if (random.chance(0.7)) said.push(rawFrame(frames.end, stream, [0]));
  }
  return pour(socket, random.chance(0.5) ? said : [...said, ...many(random, hostileDataFrame)]);
}
