/**
 * An attack on the nodes' ports without a certificate: connections that stay silent, send HTTP, or begin TLS and send
 * nothing.
 */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import type { Attack, Target } from "./attack.ts";
import { portOf } from "./ports.ts";

const addresses = 4;
/** More handshakes than an address may have. */
const connectionsEach = 200;
const handshakesPerAddressMax = 128;
const pauseMs = 100;

export const strangers: Attack = {
  name: "strangers at the nodes' ports",
  prepare: async (cluster) => ({ nodes: portOf(cluster, "nodes"), data: portOf(cluster, "data") }),
  async run(target, signal) {
    const tally = { opened: 0, closed: 0 };
    const open = new Set<Socket>();
    const lines = Array.from({ length: addresses * connectionsEach }, async (_, line) => {
      while (!signal.aborted) {
        const socket = openOne(target, line)
          .on("error", () => {})
          .resume();
        open.add(socket);
        socket.once("connect", () => tally.opened++);
        await new Promise((resolve) => socket.once("close", resolve));
        open.delete(socket);
        if (!signal.aborted) tally.closed++;
        await sleep(pauseMs, undefined, { signal }).catch(() => {});
      }
    });
    signal.addEventListener("abort", () => open.forEach((socket) => socket.destroy()));
    await Promise.all(lines);
    return tally;
  },
  missing: ({ tally: { opened = 0 } }) => (opened > 0 ? [] : ["no connection was opened"]),
  mistakes({ tally: { opened = 0, closed = 0 } }) {
    const isGuarded = closed > 0 || opened <= addresses * handshakesPerAddressMax;
    return isGuarded ? [] : [`none of ${opened} connections was closed`];
  },
};

function openOne({ given }: Target, line: number): Socket {
  const port = Number(given[line % 2 === 0 ? "nodes" : "data"]);
  const at = { host: "127.0.0.1", port, localAddress: `127.14.${line % addresses}.1` };
  if (line % 3 === 0) return connectTls({ ...at, rejectUnauthorized: false });
  const socket = connect(at);
  if (line % 3 === 1) socket.on("connect", () => socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n"));
  return socket;
}
