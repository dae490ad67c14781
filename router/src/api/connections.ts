/** The open connections and the exchanges on them. */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { RequestId } from "@weiche/shared/ids.ts";
import { TransientMap } from "@weiche/shared/transient-map.ts";
import type { Exchange } from "./exchange.ts";

export class Connections {
  readonly #sockets = new Set<Socket>();
  readonly #live = new TransientMap<RequestId, Exchange>();
  readonly #bySocket = new WeakMap<Duplex, TransientMap<RequestId, Exchange>>();

  addSocket(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
  }

  /** Number of exchanges whose answer is not closed. */
  get exchanges(): number {
    return this.#live.size;
  }

  get live(): IteratorObject<Exchange> {
    return this.#live.values();
  }

  /** Adds an exchange. It is removed when its answer is closed. */
  addExchange(exchange: Exchange): void {
    const { socket } = exchange.request;
    const onSocket = this.#bySocket.getOrInsertComputed(socket, () => new TransientMap());
    onSocket.set(exchange.id, exchange);
    this.#live.set(exchange.id, exchange);
    exchange.onClosed(() => {
      onSocket.delete(exchange.id);
      this.#live.delete(exchange.id);
    });
  }

  /** Returns whether bytes may be written to the socket: no request on it waits for an answer, and no answer has begun. */
  mayAnswerRaw(socket: Duplex): boolean {
    const open = this.#bySocket.get(socket)?.values() ?? [];
    return socket.writable && Iterator.from(open).every(({ request, sink }) => !request.complete && !sink.hasBegun);
  }

  /** Resolves with true when all current exchanges are closed, or with false after `graceMs`. */
  quiet(graceMs: number, clock: Clock): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = clock.after(graceMs, () => resolve(false));
      const live = new Set(this.live);
      const done = (exchange?: Exchange) => {
        if (exchange) live.delete(exchange);
        if (live.size > 0) return;
        timer.cancel();
        resolve(true);
      };
      for (const exchange of live) exchange.onClosed(() => done(exchange));
      done();
    });
  }

  /** Cuts the answers that have begun. Requests that still wait for theirs are refused with `reason`. */
  cutAll(reason: Error): void {
    const waiting = new Set<Socket>();
    for (const exchange of this.live) {
      exchange.isCutByUs = true;
      if (exchange.sink.hasBegun) continue;
      waiting.add(exchange.request.socket);
      exchange.abort(reason);
    }
    for (const socket of this.#sockets) if (!waiting.has(socket)) socket.destroy();
  }

  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
