/** State of one running request: what it is, what it costs so far, and what it holds. */
import type { NodeRequest } from "@weiche/shared/node-protocol.ts";
import type { ByteBudget } from "@weiche/shared/http/byte-budget.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import type { Admission } from "../slots/admission.ts";
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
  admission: Admission | undefined;

  constructor(head: RequestHead, meter: UsageMeter) {
    this.head = head;
    this.meter = meter;
  }

  /** Waits until the budget has room for a large body. Call before any of it is read. */
  async takeRoom(budget: ByteBudget, signal: EndSignal): Promise<void> {
    const bodyBytes = Math.min(this.head.bodyBytes, bodyBytesMax);
    if (bodyBytes <= smallBytesMax) return;
    await budget.take(bodyBytes, signal);
    this.giveRoom = () => {
      this.giveRoom = () => {};
      budget.give(bodyBytes);
    };
  }

  /** Idempotent. */
  giveRoom: () => void = () => {};

  /** Stops waiting for the disk to take the record of this request. */
  giveUp: () => void = () => {};

  /** For operators. */
  view(): NodeRequest {
    const { requestId, attempt, model } = this.head;
    return {
      ...{ requestId, attempt, model },
      slot: this.admission?.slot,
      state: this.admission ? "answering" : this.work ? "waiting" : "reading",
      completionTokens: this.soFar().completionTokens,
      generatingMs: this.meter.generatingMs,
    };
  }

  soFar(): TokenCounts {
    return this.work?.soFar() ?? noTokens;
  }
}
