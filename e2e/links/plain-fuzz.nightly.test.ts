/**
 * Sends frames of any kind, cut anywhere: agents in plain buffers to a real router, and routers in plain buffers to a
 * real agent. Both survive, keep no memory of them, report the broken rules, and serve others meanwhile. `WEICHE_CASES`
 * sets the number of connections. Each is generated from its number.
 */
import { parseCatalogue } from "@weiche/shared/catalogue.ts";
import { uuidv7 } from "@weiche/shared/ids.ts";
import { sleep, systemClock } from "@weiche/shared/time/clock.ts";
import { createRandom, type Random } from "@weiche/shared/random.ts";
import { expect, test } from "vitest";
import { stringify } from "yaml";
import { askStream, type Answer } from "../cluster/api-client.ts";
import { Cluster, until } from "../cluster/cluster.ts";
import { inspected, keptBytes } from "../cluster/kept-memory.ts";
import { readSamples, seriesOf } from "../cluster/metrics-text.ts";
import { openNodeEnd } from "../cluster/node-end.ts";
import { catalogueOf, simEngine } from "../cluster/sim-node.ts";
import { randomBytes } from "../engines/hostile-bytes.ts";
import { answering } from "./link-ends.ts";
import { frameTypes, PlainPeer, plainFrame, u32 } from "./plain-peer.ts";
import { PlainRouter } from "./plain-router.ts";
import { openWholeAgent } from "./whole-links.ts";

const { cancel, data, end, head, ping, pong, windowed } = frameTypes;
const cases = Math.ceil(Number(process.env["WEICHE_CASES"] ?? 2_000) / 40);
/**
 * The most by which a program's heap may grow during the second half of its peers: 16 KB each. Resident memory is not a
 * measure here, because V8 collects late: it is 80 to 180 MB above the heap for any number of peers.
 */
const grownBytesMax = 4 << 20;
/** The model of a good node, and the model of a node with evil agents. */
const [good, bad] = ["model-a", "m"];

/** Returns a frame that the other end may receive here. In one of twelve cases the frame breaks a rule. */
function anyFrame(random: Random, stream: number, record: () => unknown): Buffer {
  if (random.chance(0.08)) {
    const type = random.pick([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, random.below(256)]);
    const payload = randomBytes(random, random.pick([0, 1, 4, 8, 300]));
    const length = random.pick([payload.length, payload.length, 0, 65_537, 0xffff_ffff]);
    return plainFrame(type, random.pick([0, stream, stream - 1, stream + 7, 0xffff_ffff]), payload, length);
  }
  const frames = [
    () => plainFrame(head, stream, JSON.stringify(record())),
    () => plainFrame(data, stream, randomBytes(random, 1 + random.below(3_000))),
    () => plainFrame(data, stream, 'data: {"choices":[]}\n\n'),
    () => plainFrame(end, stream, Buffer.from([random.pick([0, 0, 1, 2, 3, 9])])),
    () => plainFrame(cancel, stream, Buffer.from([random.below(4)])),
    () => plainFrame(windowed, stream, u32(random.pick([1, 1_000, 131_072]))),
    () => plainFrame(ping, 0, randomBytes(random, 8)),
    () => plainFrame(pong, 0, randomBytes(random, 8)),
  ];
  return random.pick(frames)();
}

/** Writes the bytes in pieces of any length. */
async function pourCut(peer: PlainPeer, random: Random, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length && !peer.isClosed;) {
    const next = random.chance(0.7) ? bytes.length : at + 1 + random.below(bytes.length - at);
    peer.pour(bytes.subarray(at, next));
    at = next;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Sends anything for a while, and disconnects. */
async function rave(peer: PlainPeer, random: Random, say: () => Buffer): Promise<void> {
  for (let turns = random.below(20); turns > 0 && !peer.isClosed; turns--) {
    await pourCut(peer, random, say());
    if (random.chance(0.2)) await sleep(systemClock, random.below(50));
  }
  if (random.chance(0.3)) peer.fin();
  await Promise.race([peer.closed(), sleep(systemClock, 100)]);
  peer.destroy();
}

/** An agent that may send its identity, and answers requests with anything. */
async function evilAgent(random: Random, port: number, bootId: string): Promise<void> {
  const peer = await PlainPeer.dial(port).catch(() => undefined);
  if (!peer) return;
  peer.identity = random.pick([...Array<object>(8).fill({ node: "evil", bootId }), {}, undefined]);
  const record = () => random.pick([[200, "events", 0, ""], [200, "json"], [503, "json", 7], [-1], {}, "x", [200, 7]]);
  let stream = 2;
  peer.onOpened = (opened) => {
    stream = opened;
    void pourCut(peer, random, Buffer.concat([1, 2, 3].map(() => anyFrame(random, opened, record))));
  };
  await rave(peer, random, () => anyFrame(random, stream, record));
}

/** A router that sends requests of any kind. */
async function evilRouter(random: Random, peer: PlainPeer): Promise<void> {
  let stream = random.below(100) + 1;
  if (random.chance(0.8)) peer.open(["/weiche/identity"], "", stream++);
  const body = JSON.stringify({ model: good, messages: [{ role: "user", content: "sim:tokens=40 hi" }] });
  const record = () => {
    const path = random.pick([
      "/v1/chat/completions",
      "/v1/chat/completions",
      "/weiche/metrics",
      "/weiche/requests",
      "/",
    ]);
    const fields = [path, uuidv7(systemClock), 1, good, "a", "a", "u", "k", 1_000, 1_000_000, "q83vEjRWeJCrze8SNFZ4kA"];
    const whole: unknown[] = [...fields, random.pick([600_000, 1, 50]), "evil", body.length];
    if (random.chance(0.2)) whole[random.below(whole.length)] = random.pick<unknown>([null, -1, "", "x", {}, 1e12]);
    return random.chance(0.1) ? random.pick([{}, [], null, whole.slice(0, random.below(13))]) : whole;
  };
  await rave(peer, random, () => {
    if (random.chance(0.5)) return anyFrame(random, stream, record);
    const asked = [plainFrame(head, ++stream, JSON.stringify(record())), plainFrame(data, stream, body)];
    return Buffer.concat([...asked, plainFrame(end, stream, "\0")].slice(0, random.pick([1, 2, 3, 3, 3])));
  });
}

test("router and agent survive any frames and serve others meanwhile", { timeout: 600_000 }, async () => {
  await using opened = new AsyncDisposableStack();
  const catalogued = { catalogue: catalogueOf(good!, bad!), environment: inspected };
  const cluster = opened.use(await Cluster.start({ ...catalogued, agents: {} }));
  const { catalogue } = parseCatalogue(stringify(catalogueOf(good!)));
  const evil = opened.use(await PlainRouter.listen());
  const links = await Promise.all(
    Array.from({ length: 12 }, () => openNodeEnd(catalogue!, undefined, `127.0.0.1:${evil.port}`)),
  );
  for (const link of links) opened.use(link);
  const slots = [{ name: "a", engines: [simEngine(good!, { "ttft-ms": 1, "itl-ms": 2 })] }];
  const routers = [cluster.router.listen["nodes"]!, ...links.map(({ address }) => address)];
  await cluster.startAgent("node-1", { routers, slots });
  await cluster.linked();
  const bootId = uuidv7(systemClock);
  const routerAddress = cluster.router.listen["nodes"]!;
  opened.use(openWholeAgent([routerAddress], { node: "evil", bootId, handle: answering("{}") }));
  const agent = cluster.agents.get("node-1")!;
  const [ours, theirs] = [await cluster.account("Ours"), await cluster.account("Theirs")];

  // Two clients send requests all the time, one to the good node and one to the evil node.
  let isOver = false;
  const answers: Answer[] = [];
  const asking = async (model: string, { apiKey }: typeof ours, keep: (answer: Answer) => void) => {
    const question = { baseUrl: cluster.baseUrl, apiKey, model, text: "sim:tokens=300 hi", toTheEnd: true };
    while (!isOver) keep(await askStream(question));
  };
  const all = [asking(good!, ours, (answer) => answers.push(answer)), asking(bad!, theirs, () => {})];

  let met = 0;
  let called = 0;
  evil.onPeer = (peer) => void evilRouter(createRandom(1_000_000 + called++), peer);
  const dataPort = Number(cluster.router.listen["data"]!.split(":").at(-1));
  const meet = async (most: number) => {
    const some = async () => {
      while (met < most) await evilAgent(createRandom(met++), dataPort, bootId);
    };
    await Promise.all(Array.from({ length: 4 }, some));
    await until("the agent to dial", () => called >= most, 300_000);
  };
  const programs = [cluster.router, agent];
  await meet(20 + (cases >> 1));
  const before = await Promise.all(programs.map(keptBytes));
  await meet(20 + cases);
  const grown = (await Promise.all(programs.map(keptBytes))).map((bytes, n) => bytes - before[n]!);
  isOver = true;
  await Promise.all(all);

  expect(answers.length).toBeGreaterThan(10);
  const notWhole = answers.filter(({ ending }) => ending !== "whole");
  expect(Object.groupBy(notWhole, ({ status, error, ending }) => `${ending} ${status} ${error?.message}`)).toEqual({});
  expect(Math.max(...grown), `router and agent: ${grown.join(", ")} bytes`).toBeLessThan(grownBytesMax);
  const [ofRouter, ofAgent] = await Promise.all(programs.map(readSamples));
  expect(ofRouter!.get(seriesOf("weiche_router_nodes_refused_total", { reason: "protocol" }))).toBeGreaterThan(0);
  const rules = ["type", "length", "stream"].map((rule) => seriesOf("weiche_agent_data_rules_broken_total", { rule }));
  for (const rule of rules) expect([rule, ofAgent!.get(rule)]).toEqual([rule, expect.toSatisfy((n: number) => n > 0)]);
  const bugs = programs
    .flatMap(({ output }) => output)
    .filter((line) => /TypeError|RangeError|uncaught|unhandled/i.test(line));
  expect(bugs).toEqual([]);
});
