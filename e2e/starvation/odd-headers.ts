/**
 * An attack with and without a key: heads with empty, unsupported, contradictory or large fields. None may trigger a
 * bug.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attack, Target } from "./attack.ts";

/** Loops with two requests per second each, which is the limit of one address. */
const linesAtOnce = 4;
const pauseMs = 500;
const answerMsMax = 30_000;

const body = '{"model":"sim","messages":[{"role":"user","content":"sim:tokens=1"}]}';
const whole = `content-length: ${body.length}`;
const many = (count: number) => Array.from({ length: count }, (_, at) => `x-${at}: ${at}`).join("\r\n");

/** Lines of a head. The test replaces `KEY` by the key. */
const heads: readonly string[] = [
  `authorization:\r\n${whole}`,
  `authorization: Bearer\r\n${whole}`,
  `authorization: Basic KEY\r\n${whole}`,
  `authorization: Bearer KEY, Bearer KEY\r\n${whole}`,
  `authorization: Bearer KEY\r\nauthorization: Bearer KEY\r\n${whole}`,
  `authorization: Bearer KEY\r\ncontent-type:\r\n${whole}`,
  `authorization: Bearer KEY\r\ncontent-type: text/plain; charset=utf-16\r\n${whole}`,
  `authorization: Bearer KEY\r\ncontent-length:`,
  `authorization: Bearer KEY\r\ncontent-length: -1`,
  `authorization: Bearer KEY\r\ncontent-length: 1e3`,
  `authorization: Bearer KEY\r\n${whole}\r\ncontent-length: 0`,
  `authorization: Bearer KEY\r\n${whole}\r\ntransfer-encoding: chunked`,
  `authorization: Bearer KEY\r\ntransfer-encoding:`,
  `authorization: Bearer KEY\r\ntransfer-encoding: gzip, chunked`,
  `authorization: Bearer KEY\r\ncontent-encoding: zstd\r\n${whole}`,
  `authorization: Bearer KEY\r\nexpect: nothing\r\n${whole}`,
  `authorization: Bearer KEY\r\nconnection: upgrade\r\nupgrade: websocket\r\n${whole}`,
  `authorization: Bearer KEY\r\nx-forwarded-for: ,,\r\nforwarded:\r\naccept:\r\naccept-encoding:\r\n${whole}`,
  `authorization: Bearer KEY\r\nx-request-id: ${"x".repeat(4_000)}\r\n${whole}`,
  `authorization: Bearer KEY\r\nx-large: ${"x".repeat(40_000)}\r\n${whole}`,
  `authorization: Bearer KEY\r\n${many(300)}\r\n${whole}`,
  `: no name\r\n${whole}`,
  `authorization: Bearer \u00e4\u0000\r\n${whole}`,
];

export const oddHeaders: Attack = {
  name: "empty and unsupported headers",
  async prepare(cluster) {
    const { apiKey } = await cluster.account("Odd");
    return { apiKey };
  },
  async run(target, signal) {
    const tally = { answered: 0, refused: 0, limited: 0, wrong: 0 };
    const lines = Array.from({ length: linesAtOnce }, async (_, line) => {
      for (let n = line; n === line || !signal.aborted; n += linesAtOnce) {
        const status = await statusOf(target, heads[n % heads.length]!);
        if (status === 200) tally.answered++;
        // The limit of the address refused the request, or closed the connection during the head.
        else if (status === 503 || status === 0) tally.limited++;
        else if (status >= 400 && status < 500) tally.refused++;
        else tally.wrong++;
        await sleep(pauseMs, undefined, { signal }).catch(() => {});
      }
    });
    await Promise.all(lines);
    return tally;
  },
  missing: ({ tally: { refused = 0 } }) => (refused > 0 ? [] : ["no head was refused"]),
  mistakes: ({ tally: { wrong = 0 } }) => (wrong === 0 ? [] : [`${wrong} heads got a wrong answer`]),
};

/** Resolves with the status, or 0 if the connection was closed without one. */
async function statusOf({ apiPort, localAddress, given }: Target, head: string): Promise<number> {
  const socket = connect({ port: apiPort, host: "127.0.0.1", localAddress }).on("error", () => {});
  const lines = head.replaceAll("KEY", given["apiKey"]!);
  socket.write(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n${lines}\r\nx-last:\r\n\r\n${body}`, "latin1");
  let received = "";
  socket.on("data", (part: Buffer) => {
    received += part.toString("latin1");
    if (received.length >= 12) socket.destroy();
  });
  socket.setTimeout(answerMsMax, () => socket.destroy());
  await once(socket, "close");
  return Number(received.slice(9, 12)) || 0;
}
