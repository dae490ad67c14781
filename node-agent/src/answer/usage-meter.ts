/** The times of one request, and its single usage record. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { RequestOutcome, UsageRecord } from "@weiche/shared/usage-record.ts";
import type { Outbox } from "../outbox/outbox.ts";
import { ChunkGaps } from "./chunk-gaps.ts";
import type { RequestHead } from "../intake/request-head.ts";
import { noTokens, type TokenCounts } from "./usage-count.ts";

export type UsageOutbox = Pick<Outbox, "append" | "admitting">;

export class UsageMeter {
  readonly gaps = new ChunkGaps();
  readonly #head: RequestHead;
  readonly #outbox: UsageOutbox;
  readonly #clock: Clock;
  #admittedMs: number | undefined;
  #firstTokenMs: number | undefined;
  #generatedMs: number | undefined;
  record: UsageRecord | undefined;

  constructor(head: RequestHead, outbox: UsageOutbox, clock: Clock) {
    this.#head = head;
    this.#outbox = outbox;
    this.#clock = clock;
  }

  onAdmitted(): void {
    this.#admittedMs = this.#clock.monotonicMs();
  }

  onOutput(chunks: number): void {
    this.#firstTokenMs ??= this.#sinceAdmissionMs();
    this.gaps.take(chunks, this.#clock.monotonicMs());
  }

  /** Records that the engine is done. The client may still be reading. */
  onGenerated(): void {
    this.#generatedMs = this.#sinceAdmissionMs();
  }

  /** The time from the first token to the last, or until now. Undefined if no token has come. */
  get generatingMs(): number | undefined {
    if (this.#firstTokenMs === undefined) return undefined;
    return (this.#generatedMs ?? this.#sinceAdmissionMs()) - this.#firstTokenMs;
  }

  /**
   * Resolves when the record is on disk. Only the first call counts, because a finished request cannot break any more.
   */
  async append(outcome: RequestOutcome, counts: TokenCounts): Promise<void> {
    if (this.record) return;
    const { requestId, attempt, model, billing } = this.#head;
    this.record = {
      ...billing,
      ...{ requestId, attempt, model, outcome },
      ...(outcome === "broken" ? noTokens : counts),
      durationMs: this.#sinceAdmissionMs(),
      firstTokenMs: this.#firstTokenMs,
    };
    await this.#outbox.append(this.record);
  }

  #sinceAdmissionMs(): number {
    return this.#admittedMs === undefined ? 0 : Math.round(this.#clock.monotonicMs() - this.#admittedMs);
  }
}
