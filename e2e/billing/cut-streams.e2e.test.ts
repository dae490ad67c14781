/** Tests answers that are cut at every byte, between engine and agent or between agent and router. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { model, Rig } from "@weiche/node-agent/test/exchange/ingress-rig.ts";
import { respond, respondEvents, type EngineSaw } from "@weiche/node-agent/test/exchange/scripted-engine.ts";
import { readRecording } from "@weiche/node-agent/test/exchange/recordings.ts";
import { startApi, type Harness } from "@weiche/router/test/api/api-harness.ts";
import { parseCatalogue } from "@weiche/shared/catalogue.ts";
import { linked, node, openAgentEnd, openRouterEnd, sessionsOf, slot, type RouterEnd } from "../links/link-ends.ts";
import { RawClient, rawPost } from "@weiche/router/test/edge/raw-client.ts";

const nightly = process.env["WEICHE_NIGHTLY"] !== undefined;
const factors = `[{ validFrom: "2026-01-01T00:00:00Z", factor: 1 }]`;
const { catalogue } = parseCatalogue(
  `- { id: ${model}, category: language, status: Beta, contextTokens: 1024, factors: ${factors} }`,
);

let router: RouterEnd;
let api: Harness;
let agent: Rig;
/** The answers by the seed of their request. */
const answers: Buffer[] = [];

beforeAll(async () => {
  router = await openRouterEnd();
  api = await startApi({
    upstream: router.data,
    catalogue: () => catalogue!,
    place: (_request, exclude) => (exclude.has(node) ? { refused: "no_node_available" } : { node, slot }),
  });
  const script = (socket: Socket, { body }: EngineSaw) => {
    const said = answers[body["seed"] as number];
    // The agent restarts an engine that fails repeatedly.
    if (said) respondEvents(socket, said);
    else respond(socket, 404, "{}");
  };
  agent = await Rig.open(script, { dialect: "llama-server", newsMsMax: 1 }); // no engine dies here
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  await agent[Symbol.asyncDispose]();
  await router[Symbol.asyncDispose]();
});

interface Seen {
  readonly status: number;
  readonly text: string;
  /** Whether the answer itself marked its end. */
  readonly ended: boolean;
}

async function ask(path: string, request: object, answer: Buffer): Promise<Seen> {
  const body = JSON.stringify({ ...request, model, stream: true, seed: answers.push(answer) - 1 });
  const received = await new RawClient(api.port).send(rawPost(path, body, ["connection: close"])).all(20_000);
  const [head = "", ...rest] = received.split("\r\n\r\n");
  const bytes = Buffer.from(rest.join("\r\n\r\n"), "latin1").toString();
  return {
    status: Number(head.slice(9, 12)),
    text: bytes,
    ended: bytes.endsWith("0\r\n\r\n") || !/chunked/i.test(head),
  };
}

const errorEvent = /data: \{"error":\{[^\n]*"code":"500"\}\}\n\n\r\n$/;

/**
 * Classifies an honest answer: whole, refused with a status, or cut (with an error event and without its end). `late`
 * means that the whole answer arrived, but not the proof of its end.
 */
function kindOf({ status, text, ended }: Seen): "whole" | "refused" | "cut" | "late" | "dishonest" {
  const saysWhole = text.includes("[DONE]");
  if (status >= 500) return ended && !saysWhole && text.endsWith("}}") ? "refused" : "dishonest";
  if (saysWhole && !/"finish_reason":"\w+"\}\]\}\n\n[^]*\[DONE\]/.test(text)) return "dishonest";
  if (ended) return saysWhole ? "whole" : "dishonest";
  if (!errorEvent.test(text)) return "dishonest";
  return saysWhole ? "late" : "cut";
}

async function nothingLeft(): Promise<void> {
  await agent.quiet();
  await expect.poll(() => [router.inFlight(), api.left.length - api.finished.length]).toEqual([0, 0]);
  expect([agent.bugs, api.failures]).toEqual([[], []]);
  const billed = agent.outbox.records.filter(({ completionTokens }) => completionTokens > 0);
  expect(billed.filter(({ outcome }) => outcome !== "finished")).toEqual([]);
}

test("a recorded stream cut at any byte between engine and agent never looks whole and leaves nothing behind [C2 S6.7]", async () => {
  await using _link = openAgentEnd(router.data.address.port, agent.ingress.handle);
  await linked(router);
  for (const [name, step] of [
    ["51-completions-stream", nightly ? 1 : 9],
    ["91-tool-stream", nightly ? 1 : 97],
  ] as const) {
    const { path, request, body } = readRecording(name);
    const bytes = Buffer.from(body);
    // The event with the finish reason ends an answer, even without its empty line and the terminator.
    const whole = bytes.indexOf("\n\n", bytes.lastIndexOf('"finish_reason":"'));
    const cuts = Array.from({ length: Math.floor(bytes.length / step) + 1 }, (_, index) => index * step);
    await inTurns([...cuts, whole - 1, whole], async (cut) => {
      const kind = kindOf(await ask(path, request, bytes.subarray(0, cut)));
      expect([name, cut, cut >= whole ? ["whole"] : ["refused", "cut"]]).toEqual([
        ...[name, cut, expect.arrayContaining([kind])],
      ]);
    });
  }
  await nothingLeft();
}, 120_000);

test("an answer cut at any byte between agent and router never looks whole and leaves nothing behind [C2]", async () => {
  const { path, request, body } = readRecording("51-completions-stream");
  using proxy = await openCuttingProxy(router.data.address.port);
  const seen = new Set<string>();
  for (let cut = 0; !seen.has("whole") && cut < 10_000; cut += nightly ? 1 : 7) {
    await expect.poll(() => sessionsOf(router)).toBe(0);
    proxy.cutAfter(Infinity);
    await using _link = openAgentEnd(proxy.port, agent.ingress.handle);
    await linked(router);
    proxy.cutAfter(cut);
    seen.add(kindOf(await ask(path, request, Buffer.from(body))));
  }
  expect([...seen]).toEqual(["refused", "cut", "late", "whole"]);
  await nothingLeft();
}, 120_000);

/** Forwards all bytes of the router and only the first bytes of the agent. */
async function openCuttingProxy(toPort: number) {
  let left = Infinity;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(toPort, "127.0.0.1");
    far.pipe(near);
    near.on("data", (chunk: Buffer) => {
      const part = chunk.subarray(0, Math.min(left, chunk.length));
      left -= part.length;
      far.write(part, () => left <= 0 && far.destroy());
    });
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => (near.destroy(), far.destroy()));
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    cutAfter: (bytes: number) => (left = bytes),
    [Symbol.dispose]: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Runs a task for each item, eight at a time. */
async function inTurns<T>(items: readonly T[], task: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let item = queue.shift(); item !== undefined; item = queue.shift()) await task(item);
    }),
  );
}
