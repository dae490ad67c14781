/** The pool of connections to engines, with servers that close a connection at any time. */
import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { EndController } from "@weiche/shared/time/end-signal.ts";
import { expect, test } from "vitest";
import type { EngineCall } from "../../src/answer/engine-call.ts";
import { EngineConnections } from "../../src/answer/engine-connections.ts";
import { EngineLife } from "../../src/engines/engine-life.ts";
import { until } from "./ingress-rig.ts";
import { httpHead, respond, ScriptedEngine, type EngineScript } from "./scripted-engine.ts";

class Pool implements AsyncDisposable {
  readonly clock = new VirtualClock();
  readonly engine: ScriptedEngine;
  readonly #connections = new EngineConnections(this.clock, new EngineLife(this.clock), 60_000);

  private constructor(script: EngineScript) {
    this.engine = new ScriptedEngine(script);
  }

  static async open(script: EngineScript): Promise<Pool> {
    const pool = new Pool(script);
    pool.engine.server.listen(0, "127.0.0.1");
    await once(pool.engine.server, "listening");
    return pool;
  }

  ask(signal = new EndController().signal): Promise<EngineCall> {
    const endpoint = { origin: `http://127.0.0.1:${(this.engine.server.address() as AddressInfo).port}` };
    const request = {
      endpoint,
      path: "/v1/embeddings",
      body: Buffer.from("{}"),
      requestId: "r",
      keep: true,
      showsLife: false,
      signal,
    };
    return this.#connections.open(request);
  }

  /** Sends a request, reads the whole answer and gives the connection back. */
  async answer(): Promise<string> {
    const call = await this.ask();
    const text = await readText(call);
    call.finish();
    return text;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connections[Symbol.asyncDispose]();
    for (const socket of this.engine.sockets) socket.destroy();
    this.engine.server.close();
  }
}

async function readText(call: EngineCall): Promise<string> {
  return (await call.readAll(1 << 20)).toString();
}

const hi: EngineScript = (socket) => respond(socket, 200, "hi");

const closings: readonly [what: string, close: (socket: Socket) => void][] = [
  ["ends", (socket) => socket.end()],
  ["resets", (socket) => void socket.resetAndDestroy()],
  ["says more on", (socket) => void socket.write("HTTP/1.1 408 Request Timeout\r\n\r\n")],
];

test.each(closings)(
  "a server that %s its connection while the reader of a complete answer still waits costs no client its answer [C6]",
  async (_what, close) => {
    await using pool = await Pool.open(hi);
    const call = await pool.ask();
    const [socket] = pool.engine.asked;
    close(socket!);
    await until(() => pool.engine.sockets.size === 0, "the agent to have closed its end");
    expect(await readText(call)).toBe("hi");
    call.finish();
    expect(await Promise.all([pool.answer(), pool.answer()])).toEqual(["hi", "hi"]);
    expect(pool.engine.saw).toHaveLength(3);
  },
);

test.each(closings.slice(0, 2))(
  "a request on a kept connection that a server %s at the same moment is sent again on a new connection [C6]",
  async (_what, close) => {
    await using pool = await Pool.open(hi);
    await pool.answer();
    close(pool.engine.asked[0]!);
    expect(await pool.answer()).toBe("hi");
    expect(pool.engine.connections).toBe(2);
  },
);

test.each<[what: string, script: EngineScript]>([
  [
    "that the server ends with the answer, although it promised to keep it",
    (socket) => {
      respond(socket, 200, "hi");
      socket.end();
    },
  ],
  [
    "that the server announces to close",
    (socket) => void socket.write(`${httpHead(200, { "content-length": 2, connection: "close" })}hi`),
  ],
  ["whose end is the end of the answer", (socket) => void socket.end(`${httpHead(200, {})}hi`)],
])("a connection %s carries no other request", async (_what, script) => {
  await using pool = await Pool.open(script);
  for (let n = 1; n <= 3; n++) {
    expect(await pool.answer()).toBe("hi");
    await until(() => pool.engine.sockets.size === 0, "the connection to be closed");
    expect(pool.engine.connections).toBe(n);
  }
});

test("a connection that was paused by its reader reads the next answer", async () => {
  await using pool = await Pool.open((socket) => respond(socket, 200, Buffer.alloc(100 << 10, "x")));
  const call = await pool.ask();
  // More arrives than is read ahead, including the end of the answer.
  for (let turns = 0; turns < 50; turns++) await turn();
  call.finish();
  pool.engine.script = hi;
  expect(await pool.answer()).toBe("hi");
});

test("a request that has already ended is not sent to an engine", async () => {
  await using pool = await Pool.open(hi);
  await pool.answer();
  const ended = new EndController();
  ended.abort(new Error("the client left"));
  await expect(pool.ask(ended.signal)).rejects.toThrow("the client left");
  expect(await pool.answer()).toBe("hi");
  expect(pool.engine.saw).toHaveLength(2);
  expect(pool.engine.connections).toBe(1);
});
