/** An attack without a key: one connection after the other, each with one request, with nonsense, or with nothing. */
import { connect } from "node:net";
import type { Attack } from "./attack.ts";

const starts = ["GET /v1/models HTTP/1.1\r\nhost:\r\n\r\n", "NONSENSE\r\n\r\n", ""];
const connectionsAtOnce = 64;
/**
 * By default an address may have 100 open connections and open 50 per second. Further connections are reset on arrival.
 */
const [burst, perSecond] = [100, 50];
const refused = "weiche_router_connections_refused_total{}";

export const reconnecting: Attack = {
  name: "connection after connection without a key",
  async run({ apiPort, localAddress }, signal) {
    const tally = { connections: 0, answers: 0, seconds: 0 };
    const startedAtMs = performance.now();
    const lines = Array.from({ length: connectionsAtOnce }, async (_, line) => {
      while (!signal.aborted) {
        tally.connections++;
        const socket = connect({ port: apiPort, host: "127.0.0.1", localAddress });
        const start = starts[line % starts.length]!;
        // Reads the answer, or resets the connection at once if it sent nothing.
        socket.on("connect", () => (start === "" ? socket.resetAndDestroy() : socket.write(start)));
        socket.on("data", () => (tally.answers++, socket.resetAndDestroy())).on("error", () => {});
        await new Promise((resolve) => socket.once("close", resolve));
      }
    });
    await Promise.all(lines);
    tally.seconds = (performance.now() - startedAtMs) / 1_000;
    return tally;
  },
  missing: ({ tally: { connections = 0 } }) => (connections > 0 ? [] : ["no connection was opened"]),
  mistakes({ tally: { connections = 0, seconds = 0 }, grown }) {
    const admitted = connections - grown(refused);
    const admittedMax = burst + perSecond * (seconds + 1) + connectionsAtOnce;
    return admitted <= admittedMax ? [] : [`${admitted} of ${connections} connections were admitted`];
  },
};
