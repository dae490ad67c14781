/**
 * An attack with a key, within its limits: clients that request long answers and read them all the time, but slower
 * than the engine.
 */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attack } from "./attack.ts";
import { longAnswerRequest } from "./long-answer.ts";
import { inRounds } from "./rounds.ts";

/** The router cuts a reader below 1,024 bytes per second. */
const bytesPerSecond = [1, 512, 2_048] as const;
/** A package allows 20 concurrent requests. */
const readersEach = 5;
const ticksPerSecond = 10;

export const slowReading: Attack = {
  name: "clients that never stop reading slowly",
  async prepare(cluster) {
    const { apiKey } = await cluster.account("Slow");
    return { apiKey };
  },
  async run({ apiPort, localAddress, given }, signal) {
    const request = longAnswerRequest(given["apiKey"]!);
    const tally = { admitted: 0, read: 0 };
    await inRounds(signal, async (over) => {
      const readers = bytesPerSecond.flatMap((rate) =>
        Array.from({ length: readersEach }, () => {
          const socket = connect({ port: apiPort, host: "127.0.0.1", localAddress });
          socket.on("connect", () => socket.write(request)).on("error", () => {});
          socket.once("readable", () => (tally.admitted += isAdmitted(socket) ? 1 : 0));
          return { socket, rate, owed: 0 };
        }),
      );
      while (!over.aborted) {
        for (const reader of readers) {
          reader.owed += reader.rate / ticksPerSecond;
          const bytes = reader.socket.read(Math.floor(reader.owed)) as Buffer | null;
          reader.owed -= bytes?.length ?? 0;
          tally.read += bytes?.length ?? 0;
        }
        await sleep(1_000 / ticksPerSecond, undefined, { signal: over }).catch(() => {});
      }
      for (const { socket } of readers) socket.destroy();
    });
    return tally;
  },
  missing({ tally: { admitted = 0, read = 0 } }) {
    return admitted > 0 && read > 0 ? [] : [`${admitted} requests were admitted, ${read} bytes were read`];
  },
};

/** Reads the beginning of the received bytes and leaves the rest. */
function isAdmitted(socket: Socket): boolean {
  const bytes = socket.read() as Buffer | null;
  if (bytes) socket.unshift(bytes);
  return bytes?.toString("latin1", 0, 12) === "HTTP/1.1 200";
}
