/** With a key, within its limits: clients that ask for long answers as fast as the engine makes them, and read nothing of them. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attack } from "./attack.ts";
import { longAnswerRequest } from "./long-answer.ts";

/** A package allows 20 at once. */
const streams = 16;

export const neverReading: Attack = {
  name: "clients that never read",
  async prepare(cluster) {
    const { apiKey } = await cluster.account("Unread");
    return { apiKey };
  },
  async run({ apiPort, localAddress, given }, signal) {
    const request = longAnswerRequest(given["apiKey"]!);
    const sockets = Array.from({ length: streams }, () => {
      const socket = connect({ port: apiPort, host: "127.0.0.1", localAddress }).pause();
      socket.on("connect", () => socket.write(request)).on("error", () => {});
      return socket;
    });
    await sleep(2 ** 31 - 1, undefined, { signal }).catch(() => {});
    const starts = await Promise.all(sockets.map(firstBytes));
    for (const socket of sockets) socket.destroy();
    return { admitted: starts.filter((start) => start.startsWith("HTTP/1.1 200")).length };
  },
  mistakes({ tally: { admitted = 0 } }) {
    return admitted > 0 ? [] : ["no request was admitted"];
  },
};

/** The beginning of what has been waiting in the kernel all the time. */
async function firstBytes(socket: Socket): Promise<string> {
  const came = once(socket, "data", { signal: AbortSignal.timeout(2_000) }).catch(() => [""]);
  socket.resume();
  return String((await came)[0]);
}
