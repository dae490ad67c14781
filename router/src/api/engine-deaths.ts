/**
 * Remembers requests that ran on an engine when it died. After two deaths the same body is barred for a time, so that a
 * prompt that kills engines does not kill all of them. A whole answer clears a request that only ran at the same time
 * as the cause.
 *
 * Only a keyed hash of the body is kept, with a random key of this process, and suspicions are per account. So no
 * account can learn the requests of others.
 */
import { createHmac } from "node:crypto";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";
import type { EngineDeath } from "@weiche/shared/node-protocol.ts";
import type { AnswerBody } from "../nodes/upstream.ts";
import type { Exchange } from "./exchange.ts";

const deathsMax = 2;
export const forgottenAfterMs = 600_000;
/**
 * The time for which a request is barred if it ran with other requests both times. After a third death it is
 * `forgottenAfterMs`.
 */
export const sharedBarMs = 30_000;
export const suspectsMax = 10_000;

export interface SuspectBody {
  readonly accountId: AccountId;
  readonly model: ModelId;
  /** Hash of the body's bytes. */
  readonly digest: string;
}

interface Suspicion {
  deaths: number;
  lastAtMs: number;
  barredUntilMs: number;
}

export class EngineDeaths {
  readonly #clock: Clock;
  readonly #key: Buffer;
  readonly #suspicions = new Map<string, Suspicion>();

  /** `key`: random bytes, new for each process. */
  constructor(clock: Clock, key: Buffer) {
    this.#clock = clock;
    this.#key = key;
  }

  get suspects(): number {
    return this.#suspicions.size;
  }

  /** Throws an `ApiError` with 500 for a barred body. */
  refuseBarred(body: SuspectBody): void {
    const suspicion = this.#find(body);
    if (suspicion && suspicion.barredUntilMs > this.#clock.monotonicMs())
      throw new ApiError(
        "request_barred",
        "Engines died while they worked on this request, so it is refused for some minutes.",
      );
  }

  /** Counts a death or clears the suspicion when the answer has ended. */
  watch(body: SuspectBody, exchange: Exchange, answer: AnswerBody): void {
    exchange.onSettled(() => {
      if (answer.engineDeath) this.died(body, answer.engineDeath);
      else if (exchange.outcome === "answered" && this.#suspicions.size > 0) this.#suspicions.delete(this.#idOf(body));
    });
  }

  died(body: SuspectBody, death: EngineDeath): void {
    const nowMs = this.#clock.monotonicMs();
    const deaths = (this.#find(body)?.deaths ?? 0) + 1;
    const isCertain = death === "alone" || deaths > deathsMax;
    const barMs = deaths < deathsMax ? 0 : isCertain ? forgottenAfterMs : sharedBarMs;
    const id = this.#idOf(body);
    this.#suspicions.delete(id); // keeps the map in the order of the last deaths
    this.#suspicions.set(id, { deaths, lastAtMs: nowMs, barredUntilMs: nowMs + barMs });
    this.#forget(nowMs);
  }

  #find(body: SuspectBody): Suspicion | undefined {
    if (this.#suspicions.size === 0) return undefined;
    this.#forget(this.#clock.monotonicMs());
    return this.#suspicions.get(this.#idOf(body));
  }

  #forget(nowMs: number): void {
    for (const [id, { lastAtMs }] of this.#suspicions) {
      if (this.#suspicions.size <= suspectsMax && nowMs - lastAtMs < forgottenAfterMs) return;
      this.#suspicions.delete(id);
    }
  }

  #idOf({ accountId, model, digest }: SuspectBody): string {
    return createHmac("sha256", this.#key).update(`${accountId} ${model} ${digest}`).digest("base64");
  }
}
