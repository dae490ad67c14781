/** Without a key: thousands of connections from forty addresses that stay open and send nothing. The router closes each after its time for a head. */
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attack } from "./attack.ts";
import { aborted, inRounds } from "./rounds.ts";

const addresses = 40;
/** An address may by default open 100 connections at once. */
const connectionsEach = 75;
const firstMsMax = 10_000;
/** Time for a request's head, checked once a second, and a reserve for a busy machine. */
const headSecondsMax = 25;

export const manyConnections: Attack = {
  name: "three thousand silent connections",
  async run({ apiPort }, signal) {
    const tally = { opened: 0, closed: 0, seconds: 0 };
    await inRounds(signal, async (over) => {
      const startedAtMs = performance.now();
      const first = Promise.withResolvers<void>();
      const sockets = Array.from({ length: addresses * connectionsEach }, (_, n) => {
        const localAddress = `127.10.${n % addresses}.1`;
        const socket = connect({ port: apiPort, host: "127.0.0.1", localAddress });
        socket.on("connect", () => first.resolve(void tally.opened++));
        socket.on("close", () => void (tally.closed += over.aborted ? 0 : 1));
        return socket.on("error", () => {}).resume();
      });
      await aborted(over);
      // At the lowest priority three thousand sockets may take longer to make than the attack lasts.
      await Promise.race([first.promise, sleep(firstMsMax)]);
      tally.seconds = Math.max(tally.seconds, (performance.now() - startedAtMs) / 1_000);
      for (const socket of sockets) socket.destroy();
    });
    return tally;
  },
  mistakes({ tally: { opened = 0, closed = 0, seconds = 0 } }) {
    if (opened === 0) return ["no connection was opened"];
    return seconds > headSecondsMax && closed === 0 ? [`all ${opened} were still open after ${seconds} s`] : [];
  },
};
