/**
 * An attack without a key: thousands of connections from forty addresses that stay open and send nothing. The router
 * closes each after the timeout for a request's head.
 */
import { connect } from "node:net";
import type { Attack } from "./attack.ts";
import { aborted, inRounds } from "./rounds.ts";

const addresses = 40;
/** By default an address may have 100 open connections. */
const connectionsEach = 75;
/** The timeout for a request's head, checked once a second, plus extra time for a busy machine. */
const headSecondsMax = 25;

export const manyConnections: Attack = {
  name: "three thousand silent connections",
  async run({ apiPort }, signal) {
    const tally = { opened: 0, closed: 0, seconds: 0 };
    await inRounds(signal, async (over) => {
      const startedAtMs = performance.now();
      const sockets = Array.from({ length: addresses * connectionsEach }, (_, n) => {
        const localAddress = `127.10.${n % addresses}.1`;
        const socket = connect({ port: apiPort, host: "127.0.0.1", localAddress });
        socket.on("connect", () => tally.opened++);
        socket.on("close", () => void (tally.closed += over.aborted ? 0 : 1));
        return socket.on("error", () => {}).resume();
      });
      await aborted(over);
      tally.seconds = Math.max(tally.seconds, (performance.now() - startedAtMs) / 1_000);
      for (const socket of sockets) socket.destroy();
    });
    return tally;
  },
  missing: ({ tally: { opened = 0 } }) => (opened > 0 ? [] : ["no connection was opened"]),
  mistakes({ tally: { opened = 0, closed = 0, seconds = 0 } }) {
    return seconds > headSecondsMax && closed === 0 ? [`all ${opened} were still open after ${seconds} s`] : [];
  },
};
