/** HTTP/1.1 connections to engines, one per running request. Finding an idle connection takes constant time. */
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import type { EngineEndpoint } from "../engines/engine.ts";
import type { EngineLife } from "../engines/engine-life.ts";
import { HttpConnection } from "../http1/connection.ts";
import { EngineCall } from "./engine-call.ts";

interface EngineRequest {
  readonly endpoint: EngineEndpoint;
  readonly path: string;
  readonly body: Buffer;
  readonly requestId: string;
  readonly keep: boolean;
  /**
   * The longest time without a sign of life that is configured for the engine. If undefined, the default of
   * `EngineConnections` applies.
   */
  readonly silentMsMax?: number;
  /** The engine shows signs of life from the beginning of the answer, even if its counters were not read yet. */
  readonly showsLife: boolean;
  /** Aborting it closes the connection at once, which stops the engine's work. Reads reject with its reason. */
  readonly signal: EndSignal;
}

/** Less than the 5 s after which vLLM and others close an idle connection. */
const idleMsMax = 4_000;

interface Idle {
  readonly connection: HttpConnection;
  /** On the clock's monotonic time. */
  readonly untilMs: number;
}

export class EngineConnections implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #life: EngineLife;
  readonly #silenceMsMax: number;
  /** Idle connections of each endpoint, the longest idle first. */
  readonly #idle = new Map<string, Idle[]>();
  #expiry: Timer | undefined;

  /**
   * `silenceMsMax`: the longest time without a sign of life while an engine owes an answer. The limit does not apply to
   * an engine that shows no sign while it reads a prompt.
   */
  constructor(clock: Clock, life: EngineLife, silenceMsMax: number) {
    this.#clock = clock;
    this.#life = life;
    this.#silenceMsMax = silenceMsMax;
  }

  /**
   * Sends the request and resolves with the head of the answer. Retries once on a lost connection, because a kept
   * connection may just have been closed. Rejects with an `EngineFault` or the signal's reason.
   */
  async open(request: EngineRequest): Promise<EngineCall> {
    const connect = () => new HttpConnection(request.endpoint, this.#clock);
    request.signal.throwIfAborted();
    try {
      return await this.#send(request, this.#idle.get(keyOf(request.endpoint))?.pop()?.connection ?? connect());
    } catch (error) {
      if (!(error instanceof EngineFault) || error.reason !== "connection lost") throw error;
      request.signal.throwIfAborted();
      return await this.#send(request, connect()).catch((second: unknown) => {
        // If the engine no longer listens, it died with this request, and the first error is reported.
        throw second instanceof EngineFault ? error : second;
      });
    }
  }

  async #send(request: EngineRequest, connection: HttpConnection): Promise<EngineCall> {
    const { endpoint, path, body, requestId, keep, signal } = request;
    // A bug here must cost no client its answer, neither of this request nor of one on the same connection.
    if (!connection.isFree) throw new EngineFault("connection lost", "the connection is already in use");
    const call = new EngineCall({
      ...{ connection, signal, clock: this.#life.clock, silenceMsMax: () => this.#silenceMsMaxOf(request) },
      keep: () => this.#keep(keyOf(endpoint), connection),
      lastSignMs: () => this.#life.lastMs(endpoint),
      // The HTTP front answers other paths. It may outlive the generating process.
      onSign: path.startsWith("/v1/") ? () => this.#life.answered(endpoint) : undefined,
    });
    connection.send({ method: "POST", path, requestId, body, keep }, call);
    try {
      await call.head;
      return call;
    } catch (error) {
      call.close();
      throw error;
    }
  }

  #silenceMsMaxOf({ endpoint, silentMsMax, showsLife }: EngineRequest): number {
    if (silentMsMax !== undefined) return silentMsMax;
    return showsLife || this.#life.isMeasured(endpoint) ? this.#silenceMsMax : Infinity;
  }

  #keep(key: string, connection: HttpConnection): void {
    if (!connection.isFree) return;
    const idle = this.#idle.getOrInsertComputed(key, () => []);
    idle.push({ connection, untilMs: this.#clock.monotonicMs() + idleMsMax });
    connection.onIdleEnd = () => this.#forget(key, connection);
    this.#expiry ??= this.#clock.after(idleMsMax, this.#expire);
  }

  readonly #expire = (): void => {
    const nowMs = this.#clock.monotonicMs();
    this.#expiry = undefined;
    for (const [key, idle] of this.#idle) {
      const kept = idle.findIndex(({ untilMs }) => untilMs > nowMs);
      for (const { connection } of idle.splice(0, kept < 0 ? idle.length : kept)) connection.close();
      if (idle.length === 0) this.#idle.delete(key);
    }
    const nextMs = Math.min(...this.#idle.values().map(([oldest]) => oldest!.untilMs));
    if (nextMs < Infinity) this.#expiry = this.#clock.after(nextMs - nowMs, this.#expire);
  };

  #forget(key: string, lost: HttpConnection): void {
    const idle = this.#idle.get(key) ?? [];
    const index = idle.findIndex(({ connection }) => connection === lost);
    if (index >= 0) idle.splice(index, 1);
  }

  /** Closes the idle connections. Running requests end by their signals. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#expiry?.cancel();
    for (const { connection } of [...this.#idle.values()].flat()) connection.close();
    this.#idle.clear();
  }
}

function keyOf({ origin, socketPath }: EngineEndpoint): string {
  return socketPath ?? origin;
}
