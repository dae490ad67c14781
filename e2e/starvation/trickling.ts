/** An attack from ten addresses: heads without a key and bodies with a key that arrive one byte at a time. */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attack } from "./attack.ts";
import { inRounds } from "./rounds.ts";

const addresses = 10;
const connectionsEach = 20;
const byteEveryMs = 50;
/** The timeout for a request's head, checked once a second, plus extra time for a busy machine. */
const headSecondsMax = 25;

export const trickling: Attack = {
  name: "requests that trickle",
  async prepare(cluster) {
    const { apiKey } = await cluster.account("Trickling");
    return { apiKey };
  },
  async run({ apiPort, given }, signal) {
    const tally = { opened: 0, headsCut: 0, seconds: 0 };
    const slowHead = "GET /v1/models HTTP/1.1\r\nhost: x\r\nx-slow: ";
    const slowBody = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: Bearer ${given["apiKey"]}\r\ncontent-length: 1000000\r\n\r\n{"model":"`;
    await inRounds(signal, async (over) => {
      const startedAtMs = performance.now();
      const sockets: Socket[] = [];
      for (let n = 0; n < addresses * connectionsEach; n++) {
        const isHead = n % 2 === 0;
        const socket = connect({ port: apiPort, host: "127.0.0.1", localAddress: `127.11.${n % addresses}.1` });
        socket.on("connect", () => (tally.opened++, socket.write(isHead ? slowHead : slowBody)));
        socket.on("close", () => void (tally.headsCut += isHead && !over.aborted ? 1 : 0));
        sockets.push(socket.on("error", () => {}).resume());
      }
      while (!over.aborted) {
        for (const socket of sockets) if (socket.writable) socket.write("a");
        await sleep(byteEveryMs);
      }
      tally.seconds = Math.max(tally.seconds, (performance.now() - startedAtMs) / 1_000);
      for (const socket of sockets) socket.destroy();
    });
    return tally;
  },
  missing: ({ tally: { opened = 0 } }) => (opened > 0 ? [] : ["no connection was opened"]),
  mistakes({ tally: { headsCut = 0, seconds = 0 } }) {
    return seconds > headSecondsMax && headsCut === 0 ? [`no head was cut within ${seconds} s`] : [];
  },
};
