/** The state of one running request: its facts, its cost so far, and what it holds. */
import type { NodeRequest } from "@weiche/shared/node-protocol.ts";
import type { ByteBudget } from "@weiche/shared/http/byte-budget.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import type { Admission, AdmissionRequest } from "../slots/admission.ts";
import type { Standing } from "../slots/turn-estimate.ts";
import type { EngineWork } from "../answer/engine-work.ts";
import { smallBytesMax } from "./read-work.ts";
import { bodyBytesMax } from "../intake/request-body.ts";
import type { RequestHead } from "../intake/request-head.ts";
import { noTokens, type TokenCounts } from "../answer/usage-count.ts";
import type { UsageMeter } from "../answer/usage-meter.ts";

export class RequestRun {
  readonly head: RequestHead;
  readonly meter: UsageMeter;
  work: EngineWork | undefined;
  /** The argument of `admit`. */
  asked: AdmissionRequest | undefined;
  admission: Admission | undefined;
  hasOutput = false;
  /** The cost of the answer, once the engine is done. */
  #counts: TokenCounts | undefined;

  constructor(head: RequestHead, meter: UsageMeter) {
    this.head = head;
    this.meter = meter;
  }

  /**
   * Waits until the memory limit has room for a large body. Call it before reading. The router has the whole body, so
   * that it arrives at once. Bodies that wait for a full engine leave room for other models and accounts.
   */
  async takeRoom(budget: ByteBudget, signal: EndSignal): Promise<void> {
    const { bodyBytes, billing, model } = this.head;
    if (bodyBytes <= smallBytesMax) return;
    const room = budget.open([
      { name: `account ${billing.accountId}`, timesFree: 1 },
      { name: `model ${model}`, timesFree: 3 },
    ]);
    await budget.grow(room, Math.min(bodyBytes, bodyBytesMax), signal);
    this.giveRoom = () => budget.shrink(room, 0);
  }

  get isGenerated(): boolean {
    return this.#counts !== undefined;
  }

  /** Records that the engine is done. Later events of the engine do not affect this request. */
  generated(counts: TokenCounts): void {
    this.#counts = counts;
    this.meter.onGenerated();
  }

  /** Idempotent. */
  giveRoom: () => void = () => {};

  /** Stops waiting for the record of this request to reach the disk. */
  giveUp: () => void = () => {};

  /** Returns the request for operators. `waiting`: the standings of waiting requests. */
  view(waiting: ReadonlyMap<AdmissionRequest, Standing>): NodeRequest {
    const { requestId, attempt, model } = this.head;
    return {
      ...{ requestId, attempt, model },
      slot: this.admission?.slot,
      state: this.admission ? "answering" : this.work ? "waiting" : "reading",
      completionTokens: this.soFar().completionTokens,
      generatingMs: this.meter.generatingMs,
      ...(this.asked && waiting.get(this.asked)),
    };
  }

  soFar(): TokenCounts {
    return this.#counts ?? this.work?.soFar() ?? noTokens;
  }
}
