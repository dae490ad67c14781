/** HTTP/1.1 connections to engines, one per running request. Finding an idle one takes constant time. */
import { buildConnector, Client } from "undici";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import type { EngineEndpoint } from "../engines/engine.ts";
import type { EngineLife } from "../engines/engine-life.ts";
import { EngineCall } from "./engine-call.ts";

export interface EngineRequest {
  readonly endpoint: EngineEndpoint;
  readonly path: string;
  readonly body: Buffer;
  readonly requestId: string;
  readonly keep: boolean;
  /** Aborting closes the connection at once, which tells the engine to stop; reads reject with its reason. */
  readonly signal: AbortSignal;
}

/** Below the 5 s after which vLLM and others close an idle connection. */
const idleMsMax = 4_000;
/** Delay between attempts to connect to a Unix socket whose backlog is full. */
const connectAgainMs = 20;

export class EngineConnections implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #life: EngineLife;
  readonly #silenceMsMax: number;
  readonly #idle = new Map<string, Client[]>();

  /** `silenceMsMax`: maximum time without a sign of life while an engine owes an answer. */
  constructor(clock: Clock, life: EngineLife, silenceMsMax: number) {
    this.#clock = clock;
    this.#life = life;
    this.#silenceMsMax = silenceMsMax;
  }

  /**
   * Sends the request and resolves with the head of the answer. A connection lost before is tried once more, as a kept
   * one may just have been closed. Rejects with an `EngineFault` or the signal's reason.
   */
  async open(request: EngineRequest): Promise<EngineCall> {
    const kept = this.#idle.get(keyOf(request.endpoint))?.pop();
    try {
      return await this.#send(request, kept ?? this.#connect(request.endpoint));
    } catch (error) {
      if (!(error instanceof EngineFault) || error.reason !== "connection lost") throw error;
      return await this.#send(request, this.#connect(request.endpoint)).catch((second: unknown) => {
        // If nothing listens any more, the engine died with this request: the first error is the one to report.
        throw second instanceof EngineFault ? error : second;
      });
    }
  }

  async #send(request: EngineRequest, client: Client): Promise<EngineCall> {
    const keep = request.keep ? () => this.#keep(request.endpoint, client) : undefined;
    const { endpoint, path, body, signal } = request;
    const call = new EngineCall({
      ...{ client, keep, signal, clock: this.#life.clock, silenceMsMax: this.#silenceMsMax },
      lastSignMs: () => this.#life.lastMs(endpoint),
      // Other paths are answered by the HTTP front, which may outlive the generating process.
      onSign: path.startsWith("/v1/") ? () => this.#life.answered(endpoint) : undefined,
    });
    const headers = { "content-type": "application/json", "x-request-id": request.requestId };
    client.dispatch({ method: "POST", path, headers, body, reset: !request.keep }, call);
    try {
      await call.head;
      return call;
    } catch (error) {
      call.close();
      throw error;
    }
  }

  #connect(endpoint: EngineEndpoint): Client {
    const client: Client = new Client(endpoint.origin, {
      connect: patientConnector(endpoint, this.#clock, () => client.destroyed),
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: idleMsMax,
      keepAliveMaxTimeout: idleMsMax,
    });
    client.on("disconnect", () => this.#forget(endpoint, client));
    return client;
  }

  #keep(endpoint: EngineEndpoint, client: Client): void {
    this.#idle.getOrInsertComputed(keyOf(endpoint), () => []).push(client);
  }

  #forget(endpoint: EngineEndpoint, client: Client): void {
    const idle = this.#idle.get(keyOf(endpoint)) ?? [];
    const index = idle.indexOf(client);
    if (index < 0) return;
    idle.splice(index, 1);
    if (idle.length === 0) this.#idle.delete(keyOf(endpoint));
    void client.destroy();
  }

  /** Closes the idle connections; running requests end by their signals. */
  async [Symbol.asyncDispose](): Promise<void> {
    const idle = [...this.#idle.values()].flat();
    this.#idle.clear();
    await Promise.all(idle.map((client) => client.destroy()));
  }
}

function keyOf({ origin, socketPath }: EngineEndpoint): string {
  return socketPath ?? origin;
}

/**
 * Connects without a deadline of its own: silence shows an engine too busy to accept. A Unix socket with a full backlog
 * answers EAGAIN and is dialled again until `isOver`.
 */
function patientConnector(
  { socketPath }: EngineEndpoint,
  clock: Clock,
  isOver: () => boolean,
): buildConnector.connector {
  const dial = buildConnector({ socketPath, timeout: 0 });
  return function connect(options, callback) {
    dial(options, (...result) => {
      const [error] = result as [NodeJS.ErrnoException | null, unknown];
      if (error?.code !== "EAGAIN") return callback(...result);
      clock.after(connectAgainMs, () => (isOver() ? callback(...result) : connect(options, callback)));
    });
  };
}
