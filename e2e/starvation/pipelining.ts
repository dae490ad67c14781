/** An attack without a key: connections that pipeline short requests until the router closes them. */
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attack, Target } from "./attack.ts";

const request = "GET / HTTP/1.1\r\nhost:\r\n\r\n";
const megabyte = request.repeat(Math.ceil(1_000_000 / request.length));
const connectionsAtOnce = 8;
const pauseMs = 20;
/** The check uses the router's own count, because answers get lost when a connection is reset. */
const refusals = 'weiche_router_answers_total{code="none",endpoint="other",status="503"}';

export const pipelining: Attack = {
  name: "pipelined requests without a key",
  async run(target, signal) {
    const tally = { connections: 0, answers: 0 };
    const lines = Array.from({ length: connectionsAtOnce }, async () => {
      while (!signal.aborted) {
        tally.connections++;
        tally.answers += await answersTo(megabyte, target, signal);
        await sleep(pauseMs);
      }
    });
    await Promise.all(lines);
    return tally;
  },
  missing: ({ grown }) => (grown(refusals) > 0 ? [] : ["no connection was refused"]),
  mistakes({ tally: { connections = 0 }, grown }) {
    return grown(refusals) <= connections ? [] : [`${grown(refusals)} refusals on ${connections} connections`];
  },
};

/** Returns the number of answers until the router closes the connection. */
async function answersTo(bytes: string, { apiPort, localAddress }: Target, signal: AbortSignal): Promise<number> {
  const socket = connect({ port: apiPort, host: "127.0.0.1", localAddress });
  const stop = () => socket.destroy();
  signal.addEventListener("abort", stop);
  let answers = 0;
  socket.setEncoding("latin1").on("data", (text: string) => (answers += text.split("HTTP/1.1 ").length - 1));
  socket.on("error", () => {}).on("end", stop);
  const send = () => {
    while (socket.writable && socket.write(bytes));
  };
  socket.on("connect", send).on("drain", send);
  await new Promise((resolve) => socket.once("close", resolve));
  signal.removeEventListener("abort", stop);
  return answers;
}
