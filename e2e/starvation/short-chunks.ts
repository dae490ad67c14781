/**
 * An attack with and without a key: chunked bodies without an end, in chunks of one byte, as fast as the router accepts
 * them.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attack, Target } from "./attack.ts";

const connectionsEach = 4;
const pauseMs = 20;
const chunks = Buffer.from("1\r\na\r\n".repeat(4_000));

export const shortChunks: Attack = {
  name: "bodies in chunks of one byte",
  async prepare(cluster) {
    const { apiKey } = await cluster.account("Chunks");
    return { apiKey };
  },
  async run(target, signal) {
    const tally = { sentMb: 0, refused: 0 };
    const key = `authorization: Bearer ${target.given["apiKey"]}\r\n`;
    const lines = Array.from({ length: 2 * connectionsEach }, async (_, line) => {
      while (!signal.aborted) {
        const { sentMb, status } = await pour(target, line % 2 === 0 ? key : "", signal);
        tally.sentMb += sentMb;
        if (status === 401) tally.refused++;
        await sleep(pauseMs);
      }
    });
    await Promise.all(lines);
    return tally;
  },
  missing({ tally: { sentMb = 0, refused = 0 } }) {
    return sentMb > 0 && refused > 0 ? [] : [`${sentMb} MB were sent, ${refused} requests without a key were refused`];
  },
};

/** Resolves once the router has closed the connection. */
async function pour({ apiPort, localAddress }: Target, headers: string, signal: AbortSignal) {
  const socket = connect({ port: apiPort, host: "127.0.0.1", localAddress });
  let received = "";
  let sent = 0;
  socket.on("error", () => {}).on("data", (bytes) => (received += String(bytes)));
  const closed = new Promise((resolve) => socket.once("close", resolve));
  const leave = () => socket.destroy();
  signal.addEventListener("abort", leave);
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n${headers}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
  );
  while (!socket.destroyed) {
    sent += chunks.length;
    if (!socket.write(chunks)) await Promise.race([once(socket, "drain").catch(() => {}), closed]);
    else await sleep(0);
  }
  signal.removeEventListener("abort", leave);
  return { sentMb: sent / 1e6, status: Number(received.slice("HTTP/1.1 ".length, 12)) };
}
