import { connect, createServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { listenOn } from "./listen-on.ts";

const host = "127.0.0.1";
const connections = 1_000;

/** A thousand connections arrive in one turn of the event loop. */
async function crowd() {
  const accepted: Socket[] = [];
  const server = createServer((socket) => void accepted.push(socket.on("error", () => {}).resume()));
  const listening = await listenOn(server, { host, port: 0 });
  const { port } = listening;
  const clients = Array.from({ length: connections }, () => connect(port, host).on("error", () => {}));
  return {
    ...{ accepted, clients, listening, port, server },
    async [Symbol.asyncDispose]() {
      listening.stop();
      for (const socket of clients) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test("a thousand connections at once are held by the kernel, and accepted within a hundred turns of the event loop", async () => {
  await using at = await crowd();
  for (let turn = 0; turn < 100; turn++) await nextTurn();
  // A connection that the kernel does not hold is tried again after a second.
  expect(at.clients.filter(({ connecting }) => connecting).length).toBe(0);
  expect(at.accepted.length).toBe(connections);
});

test("a port that another server has is refused, and once a server has stopped nobody is accepted", async () => {
  await using at = await crowd();
  const second = listenOn(createServer(), { host, port: at.port, setting: "listen.api" });
  await expect(second).rejects.toThrow(`cannot listen on ${host}:${at.port} (listen.api): the port is in use`);
  at.listening.stop();
  at.server.close();
  const late = Array.from({ length: 100 }, () => connect(at.port, host));
  const codes = late.map(
    (socket) => new Promise((resolve) => socket.once("error", ({ code }: Error & { code?: string }) => resolve(code))),
  );
  expect(new Set(await Promise.all(codes))).toEqual(new Set(["ECONNREFUSED"]));
});

test("sockets are made with the options of the server, whichever of the port's sockets accepts them", async () => {
  const halfOpen: boolean[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => void halfOpen.push(socket.end().allowHalfOpen));
  const listening = await listenOn(server, { host, port: 0 });
  const ended = Array.from(
    { length: 64 },
    () => new Promise((resolve) => connect(listening.port, host).resume().once("close", resolve)),
  );
  await Promise.all(ended);
  listening.stop();
  await new Promise((resolve) => server.close(resolve));
  expect(new Set(halfOpen)).toEqual(new Set([true]));
});

test("an address that this machine does not have is refused in words", async () => {
  await expect(listenOn(createServer(), { host: "192.0.2.1", port: 0, setting: "listen.api" })).rejects.toThrow(
    "cannot listen on 192.0.2.1:0 (listen.api): this machine has no such address",
  );
});
