/**
 * An engine that listens and accepts no connection until the test allows it, because its queue of connections is full.
 */
import { once } from "node:events";
import { connect, type AddressInfo, type Socket } from "node:net";
import { Worker } from "node:worker_threads";
import type { EngineEndpoint } from "../../src/engines/engine.ts";

/** Blocks its thread until the gate opens, and then answers every request with `answer`, as events. */
const thread = `
const { parentPort, workerData: { listen, gate, answer } } = require("node:worker_threads");
const server = require("node:http").createServer((request, response) => {
  request.resume().on("end", () => response.writeHead(200, { "content-type": "text/event-stream" }).end(answer));
});
server.on("connection", () => parentPort.postMessage("accepted"));
server.listen({ ...listen, backlog: 1 }, () => {
  parentPort.postMessage(server.address());
  Atomics.wait(new Int32Array(gate), 0, 0);
});`;

/** The number of connections that Linux queues for a backlog of 1. */
const queueLength = 2;

export class BusyEngine implements AsyncDisposable {
  readonly endpoint: EngineEndpoint;
  readonly #worker: Worker;
  readonly #gate: SharedArrayBuffer;
  readonly #queued: readonly Socket[];

  /** Listens on a Unix socket at `socketPath`, otherwise on a port of loopback. */
  static async open(answer: string, socketPath?: string): Promise<BusyEngine> {
    const gate = new SharedArrayBuffer(4);
    const listen = socketPath === undefined ? { port: 0, host: "127.0.0.1" } : { path: socketPath };
    const worker = new Worker(thread, { eval: true, workerData: { listen, gate, answer } });
    const [address] = (await once(worker, "message")) as [AddressInfo | string];
    const queued = Array.from({ length: queueLength }, () =>
      typeof address === "string" ? connect(address) : connect(address.port, address.address),
    );
    await Promise.all(queued.map((socket) => once(socket, "connect")));
    const endpoint =
      typeof address === "string"
        ? { origin: "http://engine", socketPath: address }
        : { origin: `http://127.0.0.1:${address.port}` };
    return new BusyEngine(worker, gate, queued, endpoint);
  }

  private constructor(worker: Worker, gate: SharedArrayBuffer, queued: readonly Socket[], endpoint: EngineEndpoint) {
    this.#worker = worker;
    this.#gate = gate;
    this.#queued = queued;
    this.endpoint = endpoint;
  }

  /** Lets the engine accept connections. Resolves when the queue is empty. */
  async letGo(): Promise<void> {
    let accepted = 0;
    const isEmpty = new Promise<void>((resolve) =>
      this.#worker.on("message", () => {
        if (++accepted === queueLength) resolve();
      }),
    );
    const gate = new Int32Array(this.#gate);
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
    await isEmpty;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#queued) socket.destroy();
    await this.#worker.terminate();
  }
}
