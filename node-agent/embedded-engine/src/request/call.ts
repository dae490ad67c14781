/** One request as a handler sees it, and both ways to answer it. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { Engine } from "../model.ts";

export interface Surroundings {
  readonly clock: Clock;
  /** Returns an integer from 0 to 2³² - 1. */
  readonly randomSeed: () => number;
  readonly randomId: () => string;
}

export interface Call {
  readonly engine: Engine;
  readonly surroundings: Surroundings;
  readonly body: unknown;
  readonly response: ServerResponse;
  /** Aborts when the client leaves or the engine stops. */
  readonly signal: AbortSignal;
}

/** Returns the fields that all parts of an answer share. */
export function envelopeOf({ surroundings, engine }: Call, idPrefix: string, object: string) {
  const created = Math.floor(surroundings.clock.now() / 1000);
  return { id: `${idPrefix}-${surroundings.randomId()}`, object, created, model: engine.alias };
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

/** Server-Sent Events. The first event sends the status, so an error before it is a proper answer. */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #signal: AbortSignal;

  constructor({ response, signal }: Call) {
    this.#response = response;
    this.#signal = signal;
  }

  /** Resolves when the next event may be sent, so that a slow client slows the generation down. */
  async send(event: unknown): Promise<void> {
    this.#signal.throwIfAborted();
    if (!this.#response.headersSent)
      this.#response.writeHead(200, {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache",
      });
    if (!this.#response.write(`data: ${JSON.stringify(event)}\n\n`))
      await once(this.#response, "drain", { signal: this.#signal });
  }

  end(): void {
    this.#response.end("data: [DONE]\n\n");
  }
}
