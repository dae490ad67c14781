/**
 * An attack with a key, within its limits: clients that request long answers at the engine's full speed and never read
 * them.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Attack } from "./attack.ts";
import { longAnswerRequest } from "./long-answer.ts";
import { aborted, inRounds } from "./rounds.ts";

/** A package allows 20 concurrent requests. */
const streams = 16;

export const neverReading: Attack = {
  name: "clients that never read",
  async prepare(cluster) {
    const { apiKey } = await cluster.account("Unread");
    return { apiKey };
  },
  async run({ apiPort, localAddress, given }, signal) {
    const request = longAnswerRequest(given["apiKey"]!);
    const tally = { admitted: 0 };
    await inRounds(signal, async (over) => {
      const sockets = Array.from({ length: streams }, () => {
        const socket = connect({ port: apiPort, host: "127.0.0.1", localAddress }).pause();
        socket.on("connect", () => socket.write(request)).on("error", () => {});
        return socket;
      });
      await aborted(over);
      const starts = await Promise.all(sockets.map(firstBytes));
      for (const socket of sockets) socket.destroy();
      tally.admitted += starts.filter((start) => start.startsWith("HTTP/1.1 200")).length;
    });
    return tally;
  },
  missing: ({ tally: { admitted = 0 } }) => (admitted > 0 ? [] : ["no request was admitted"]),
};

/** Returns the beginning of the answer that has waited in the kernel. */
async function firstBytes(socket: Socket): Promise<string> {
  const came = once(socket, "data", { signal: AbortSignal.timeout(2_000) }).catch(() => [""]);
  socket.resume();
  return String((await came)[0]);
}
