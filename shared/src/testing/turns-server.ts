/** A server that receives one request at a time, its clients on virtual time, and texts of requests. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { readOneAtATime, type TurnTimes } from "../http/request-turns.ts";
import { VirtualClock } from "./virtual-clock.ts";

const times: TurnTimes = { headersMsMax: 20_000, discardMs: 5_000, stallMsMax: 60_000 };

/** Starts a server that keeps its requests, each with the turn of the event loop in which it arrived. */
export async function startTurns(answer: (request: IncomingMessage, response: ServerResponse) => void = () => {}) {
  const clock = new VirtualClock();
  const handed: { url: string; turn: number; body: string; response: ServerResponse }[] = [];
  let turn = 0;
  let isOpen = true;
  const server = createServer((request, response) => {
    const one = { url: request.url!, turn, body: "", response };
    handed.push(one);
    request.setEncoding("latin1").on("data", (text: string) => (one.body += text));
    answer(request, response);
  });
  readOneAtATime(server, clock, times);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const count = () => isOpen && setImmediate(() => (turn++, count()));
  count();
  const clients: Socket[] = [];
  return {
    clock,
    handed,
    server,
    connect() {
      const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
      const client = { socket, received: "", isClosed: false };
      socket.setEncoding("latin1").on("data", (text: string) => (client.received += text));
      socket.on("error", () => {}).on("close", () => (client.isClosed = true));
      clients.push(socket);
      return client;
    },
    async [Symbol.asyncDispose]() {
      isOpen = false;
      for (const socket of clients) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export async function until(condition: () => boolean): Promise<void> {
  const endsAt = performance.now() + 10_000;
  while (!condition()) {
    if (performance.now() > endsAt) throw new Error(`not within 10 s: ${condition.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Waits long enough for any late effect to show. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await nextTurn();
  await new Promise((resolve) => setTimeout(resolve, 20));
}

export const get = (url: string) => `GET ${url} HTTP/1.1\r\nhost: x\r\n\r\n`;
export const post = (url: string, body: string, more = "") =>
  `POST ${url} HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`;
export const chunked = (url: string, ...pieces: string[]) =>
  `POST ${url} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join("")}0\r\n\r\n`;
export const end = (_request: IncomingMessage, response: ServerResponse) => void response.end("ok");
