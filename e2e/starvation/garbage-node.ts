/**
 * A node with a valid certificate that sends garbage as fast as its link accepts it: records, waiters and slots up to
 * their bounds and above, unknown fields, broken frames, and frames of any kind on its data connection. When it is
 * disconnected, it dials again.
 */
import { existsSync, readFileSync } from "node:fs";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { credentials } from "@grpc/grpc-js";
import { frames } from "@weiche/shared/frames/frame.ts";
import { dataAlpn } from "@weiche/shared/node-protocol.ts";
import { createRandom, type Random } from "@weiche/shared/random.ts";
import { rawFrame } from "@weiche/shared/testing/raw-frames.ts";
import { uuidv7 } from "@weiche/shared/ids.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { helloOf, LinkClient } from "@weiche/router/test/nodes/link-client.ts";
import { tlsOfNode } from "../cluster/node-certificates.ts";
import { hostileDataFrame } from "../engines/hostile-bytes.ts";
import type { Attack, Target } from "./attack.ts";
import { portOf } from "./ports.ts";
import { aborted } from "./rounds.ts";

export const garbageNode = "garbage";
const pauseMs = 20;
/** One in this many messages is of a kind for which the router closes the link. */
const beyondEach = 10;
/**
 * Minimum number of messages before an open link counts as a mistake. On a busy machine, a smaller number may still be
 * in the attacker's send buffer.
 */
const judgedFrom = 100;
const seed = 20_261_126;
/** Link and data connection use the same boot id, so that they belong together. */
const bootId = uuidv7(systemClock);

export const garbageFromNode: Attack = {
  name: "a node that sends garbage at full speed",
  async prepare(cluster) {
    const ports = { nodes: portOf(cluster, "nodes"), data: portOf(cluster, "data") };
    const { tls } = tlsOfNode(cluster, garbageNode);
    return { ...ports, ...(existsSync(tls.ca) && tls) };
  },
  async run(target, signal) {
    const tally = { messages: 0, linksEnded: 0, connectionsEnded: 0 };
    const random = createRandom(seed);
    const said = garbage(random);
    const onLinks = async () => {
      do {
        tally.messages += await link(target, said, random, signal);
        if (!signal.aborted) tally.linksEnded++;
        await sleep(pauseMs);
      } while (!signal.aborted);
    };
    const onData = async () => {
      do {
        await pourFrames(target, random, signal);
        if (!signal.aborted) tally.connectionsEnded++;
        await sleep(pauseMs);
      } while (!signal.aborted);
    };
    await Promise.all([onLinks(), onData()]);
    return tally;
  },
  missing: ({ tally: { messages = 0 } }) => (messages > 0 ? [] : ["nothing was sent"]),
  mistakes({ tally: { messages = 0, linksEnded = 0 } }) {
    return linksEnded > 0 || messages < judgedFrom
      ? []
      : [`the router closed no link during ${messages} messages of garbage`];
  },
};

/** Resolves with the number of messages once the router has closed the link. */
async function link({ given }: Target, said: Garbage, random: Random, signal: AbortSignal): Promise<number> {
  const tls = certificateOf(given);
  const channel = tls && credentials.createSsl(tls.ca, tls.key, tls.cert, { checkServerIdentity: () => undefined });
  using client = new LinkClient(Number(given["nodes"]), channel);
  client.say(helloOf(garbageNode, bootId, ["sim"]));
  let isOver = false;
  const ended = client.ended.then(() => (isOver = true));
  const over = aborted(signal);
  let messages = 0;
  for (; !isOver && !signal.aborted; messages++) {
    client.say(random.pick(messages % beyondEach === beyondEach - 1 ? said.beyond : said.within));
    if (client.call.writableNeedDrain) await Promise.race([once(client.call, "drain"), ended, over]);
    else await sleep(0);
  }
  return messages;
}

interface Garbage {
  /** Messages that a node may send, of the largest size and full of false data. */
  readonly within: readonly Buffer[];
  /** Messages for which the router closes a link. */
  readonly beyond: readonly Buffer[];
}

const times = <T>(count: number, one: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => one(at));
/** Empty elements that fill nearly the 4 MB of a message. */
const nearlyMax = 1_900_000;

/**
 * Made once from plain bytes, so that a message costs the node less than the router. The numbers are field numbers of
 * the protocol.
 */
function garbage(random: Random): Garbage {
  const nothing = (field: number, count: number) => Buffer.alloc(2 * count, part(field, ""));
  const batch = (...records: readonly Buffer[]) => part(3, Buffer.from([0x08, 1]), ...records);
  const report = (...parts: readonly Buffer[]) => part(2, Buffer.from([0x08, 1]), ...parts);
  const record = (at: number) => part(2, part(1, `${at}`), part(3, "a"), part(6, "sim"), part(16, Buffer.alloc(16)));
  const waiters = times(256, (at) => part(7, part(1, `m${at}`), Buffer.from([0x10, 0x7f])));
  return {
    within: [
      ...[batch(...times(1_000, record)), batch(nothing(2, 1_000))],
      report(...times(64, (at) => part(2, part(1, `s${at}`), ...waiters))),
      report(part(2, part(1, "s"), Buffer.from([0x10, 3]), part(3, "sim"))),
      // An unknown field.
      report(part(15, Buffer.alloc(3 << 20))),
    ],
    beyond: [
      batch(nothing(2, nearlyMax)),
      report(part(2, part(1, "s"), nothing(7, nearlyMax))),
      report(part(3, nothing(4, nearlyMax))),
      report(part(2, part(1, "s".repeat(3 << 20)))),
      Buffer.from(times(2_000, () => random.below(256))),
    ],
  };
}

/** Returns a field whose value is a message, a text or bytes. */
function part(field: number, ...content: readonly (Buffer | string)[]): Buffer {
  const bytes = Buffer.concat(content.map((each) => Buffer.from(each as string)));
  return Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return Buffer.from([...bytes, rest]);
    bytes.push((rest & 0x7f) | 0x80);
  }
}

/** Resolves when the router has closed the connection. */
async function pourFrames({ given }: Target, random: Random, signal: AbortSignal): Promise<void> {
  const at = { host: "127.0.0.1", port: Number(given["data"]) };
  const tls = certificateOf(given);
  const socket = tls ? connectTls({ ...at, ...tls, ALPNProtocols: [dataAlpn] }) : connect(at);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.on("error", () => {}).resume();
  socket.write(rawFrame(frames.head, 1, '[200,"text",0,""]'));
  socket.write(rawFrame(frames.data, 1, JSON.stringify({ node: garbageNode, bootId })));
  socket.write(rawFrame(frames.end, 1, [0]));
  const leave = () => socket.destroy();
  signal.addEventListener("abort", leave);
  while (!socket.destroyed && !signal.aborted) {
    if (!socket.write(Buffer.concat(times(50, () => hostileDataFrame(random)))))
      await Promise.race([once(socket, "drain").catch(() => {}), closed]);
    else await sleep(0);
  }
  leave();
  await closed;
  signal.removeEventListener("abort", leave);
}

/** Undefined if router and nodes are linked without TLS. */
function certificateOf({ ca, key, cert }: Target["given"]) {
  return ca === undefined ? undefined : { ca: readFileSync(ca), key: readFileSync(key!), cert: readFileSync(cert!) };
}
