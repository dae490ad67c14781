/** Defines the ways in which a request can end, and runs many such clients at once. Each client has its own socket. */
import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "@weiche/shared/random.ts";
import { chatModel, embeddingModel, type KillCluster } from "./kill-cluster.ts";
import { RawClient, rawPost, until } from "@weiche/router/test/edge/raw-client.ts";

export const turningModels = ["turn-a", "turn-b"] as const;
const answerMsMax = 30_000;

interface Asked {
  readonly system: KillCluster;
  readonly apiKey: string;
}
type End = (asked: Asked) => Promise<unknown>;

const text = (model: string, steering: string, more: object = {}) =>
  JSON.stringify({ model, messages: [{ role: "user", content: `sim:${steering} go on` }], ...more });
const streamed = { stream: true, stream_options: { include_usage: true } };
const json = (steering = "itl=1,ttft=1") => text(chatModel, steering);
export const stream = (steering = "itl=2,ttft=1") => text(chatModel, steering, streamed);
/** An answer larger than all buffers between engine and client. */
const flood = stream("tokens=30000,itl=0,ttft=1");

function send({ system, apiKey }: Asked, body: string, ...headers: readonly string[]): RawClient {
  const port = Number(new URL(system.cluster.baseUrl).port);
  return new RawClient(port).send(post(apiKey, body, ...headers));
}

export function post(apiKey: string, body: string, ...headers: readonly string[]): string {
  const path = body.includes('"input"') ? "/v1/embeddings" : "/v1/chat/completions";
  return rawPost(path, body, headers).replace("sk-good", apiKey);
}

/** Reads until the server ends the connection. */
function read(body: string): End {
  return (asked) => send(asked, body, "connection: close").all(answerMsMax);
}

type Leaving = "FIN" | "RST";

async function leave(client: RawClient, how: Leaving): Promise<void> {
  if (how === "FIN") client.socket.destroySoon();
  else client.socket.resetAndDestroy();
  await until(() => client.isClosed);
}

function leaveBefore(body: string, how: Leaving): End {
  return async (asked) => {
    const client = send(asked, body);
    await sleep(20);
    await leave(client, how);
  };
}

function leaveWithin(how: Leaving): End {
  return async (asked) => {
    const client = send(asked, stream("itl=10,ttft=1"), "connection: close");
    await until(() => /data: /.test(client.received) || client.isEnded || client.socket.destroyed, answerMsMax);
    await leave(client, how);
  };
}

/** Sends only the head of a request and then these bytes. */
function torn(head: readonly string[], rest: string, ends: (client: RawClient) => Promise<unknown>): End {
  return async ({ system, apiKey }) => {
    const lines = ["POST /v1/chat/completions HTTP/1.1", "host: x", `authorization: Bearer ${apiKey}`, ...head];
    const client = new RawClient(Number(new URL(system.cluster.baseUrl).port));
    await ends(client.send(`${lines.join("\r\n")}\r\n\r\n${rest}`));
  };
}

/** Sends some of the body byte by byte, and leaves. */
async function trickles(client: RawClient): Promise<void> {
  for (let n = 0; n < 10 && !client.isClosed; n++) await sleep(25).then(() => client.send("a"));
  await leave(client, "RST");
}
const resets = (client: RawClient) => sleep(20).then(() => leave(client, "RST"));
const reads = (client: RawClient) => client.all(answerMsMax);

const endings = {
  "a JSON answer": read(json()),
  "a stream": read(stream()),
  "an embedding": read(JSON.stringify({ model: embeddingModel, input: "go on" })),
  "FIN before the first byte": leaveBefore(json("ttft=500"), "FIN"),
  "RST before the first byte": leaveBefore(stream("ttft=500"), "RST"),
  "FIN in the stream": leaveWithin("FIN"),
  "RST in the stream": leaveWithin("RST"),
  "a half-closed connection": async (asked) => {
    const client = send(asked, stream());
    client.socket.end();
    await client.all(answerMsMax);
  },
  "a client that leaves in its body": torn(["content-length: 1000"], '{"model":', resets),
  "a client that waits for 100 Continue and leaves": torn(["content-length: 9", "expect: 100-continue"], "", resets),
  "a body that trickles": torn(["content-length: 1000"], '{"x":"', trickles),
  "a large body that trickles": torn(["content-length: 20000000"], '{"x":"', trickles),
  "eight answers": read(text(chatModel, "tokens=4,itl=1", { n: 8 })),
  "a client that leaves eight answers": leaveBefore(text(chatModel, "ttft=500", { ...streamed, n: 8 }), "RST"),
  "more answers than allowed": read(text(chatModel, "", { n: 9 })),
  "a body that is no JSON": read('{"model":'),
  "a body with a wrong member": read(text(chatModel, "", { temperature: "hot" })),
  "an unknown model": read(text("gone", "")),
  "a wrong key": ({ system }) => send({ system, apiKey: "sk-wrong" }, json(), "connection: close").all(answerMsMax),
  "a body that is too large": torn(["content-length: 99000000", "connection: close"], "{", reads),
  "malformed framing": torn(["transfer-encoding: chunked"], "zz\r\n", reads),
  "an engine that answers 500": read(json("fault=500")),
  "an engine that resets": read(stream("itl=1,fault=reset:3")),
  "an engine that ends an answer too soon": read(json("itl=1,fault=cut:3")),
  "an engine that sends no JSON": read(stream("itl=1,fault=not-json:3")),
  "an engine that reports an error in the stream": read(stream("itl=1,fault=error-event:3")),
  "an engine that cuts a character in two": read(stream("itl=1,fault=invalid-utf8:3")),
  "an engine whose counts are missing": read(stream("itl=1,fault=usage-missing")),
  "an engine that hangs until the timeout": read(stream("fault=hang:3")),
  "an engine that hangs before its first byte": read(json("fault=hang:0")),
  "a client that does not read and leaves": async (asked) => {
    const client = send(asked, flood);
    client.socket.pause();
    await sleep(500);
    await leave(client, "RST");
  },
  "a client that reads a byte at a time and leaves": async (asked) => {
    const { socket } = send(asked, flood);
    socket.removeAllListeners("data").pause();
    for (let n = 0; n < 20; n++) await sleep(25).then(() => socket.read(1));
    socket.resetAndDestroy();
  },
  "two requests at once on a connection": async (asked) => {
    const second = post(asked.apiKey, json(), "connection: close");
    await send(asked, json()).send(second).all(answerMsMax);
  },
  "a limit that is reached": ({ system }) =>
    send({ system, apiKey: system.accounts[0]!.apiKey }, json(), "connection: close").all(answerMsMax),
  "a request that waits for a switch": read(text(turningModels[0], "tokens=2,itl=1")),
  "a switch to the other model": read(text(turningModels[1], "tokens=2,itl=1", streamed)),
  "a client that leaves while it waits for a switch": leaveBefore(text(turningModels[1], ""), "RST"),
} satisfies Record<string, End>;

const names = Object.keys(endings) as readonly (keyof typeof endings)[];
/** Enough clients to reach the limit of the first account. */
const clients = 32;

/** The share of requests that begin after all faults, to find what the faults leave behind. */
const calmShare = 0.4;

/**
 * Sends at least `requests` requests with random endings, and begins the faults at even intervals. Requests wait while
 * the router is down.
 */
export async function endMany(
  system: KillCluster,
  requests: number,
  seed: number,
  meanwhile: readonly (() => Promise<void>)[],
): Promise<ReadonlyMap<string, number>> {
  const random = createRandom(seed);
  const counts = new Map<string, number>(names.map((name) => [name, 0]));
  let [begun, last] = [0, Infinity];
  const load = Promise.all(
    Array.from({ length: clients }, async () => {
      while (begun < last) {
        while (system.isRouterDown) await sleep(20);
        begun++;
        const name = random.pick(names);
        const { apiKey } = system.accounts[1 + random.below(system.accounts.length - 1)]!;
        await endings[name]({ system, apiKey }).catch((error: Error) => {
          throw new Error(`${name}: ${error.message}`);
        });
        counts.set(name, counts.get(name)! + 1);
      }
    }),
  );
  const distance = ((1 - calmShare) * requests) / Math.max(1, meanwhile.length);
  for (const happens of meanwhile) {
    const next = begun + distance;
    await Promise.race([until(() => begun >= next, 600_000), load]);
    await happens();
  }
  last = Math.max(requests, begun + calmShare * requests);
  await load;
  return counts;
}
