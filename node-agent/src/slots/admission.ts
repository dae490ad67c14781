/** The interface between request handling and the slots. */
import type { WaitedFor } from "@weiche/shared/node-protocol.ts";
import type { AccountId, ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import type { DialectName, EngineEndpoint, EngineSpec } from "../engines/engine.ts";
import type { LossListener } from "./engine-loss.ts";
import type { TokensUsed } from "./fair-shares.ts";
import type { Standing } from "./turn-estimate.ts";

export interface AdmissionRequest {
  readonly model: ModelId;
  /** Accounts share the places of an engine. Never logged. */
  readonly account: AccountId;
  /** The slot that the router chose. Another slot of this node that serves the model may be used instead. */
  readonly slot?: SlotName;
  /** The number of answers. Each answer takes one place of the engine. */
  readonly answers: number;
  /**
   * The time left for the whole answer. A request whose turn would come later is not held. If undefined, the time is
   * unbounded.
   */
  readonly leftMs?: number;
  /** The router that sent the request, for `running_of_router` in load reports. */
  readonly routerId: string;
  /** Aborts when the client leaves. A waiting request is then removed at once. */
  readonly signal: EndSignal;
}

/** The right to run one request on an engine. */
export interface Admission {
  readonly slot: SlotName;
  readonly engine: EngineSpec;
  readonly endpoint: EngineEndpoint;
  readonly waitedMs: number;
  /** The wait that was estimated when the request came. Undefined if the request did not wait. */
  readonly estimatedMs?: number | undefined;
  /** `switch` if the model was not active when the request came, otherwise `place`. */
  readonly waitedFor: WaitedFor;
  /** Calls the listener once if the engine is lost before the release, or at once if it is already lost. */
  onEngineLost(listener: LossListener): void;
  /** Gives the places back and reports the tokens that the request used, if known. Further calls do nothing. */
  release(used?: TokensUsed): void;
  /**
   * Reports that the engine seems to hang or to fail every request. The slot stops admitting requests and restarts the
   * engine once it is idle.
   */
  suspect(reason: string): void;
  /** Reports that the engine is dead, even if its process still runs. */
  lose(reason: string): void;
}

export interface Admissions {
  /** The dialects of the engines that may answer for the model. Empty if no slot serves it. */
  dialectsOf(model: ModelId): readonly DialectName[];
  /**
   * Resolves when the request may run. Rejects with an `ApiError` or the signal's reason. The error is a 503, or a 400
   * for more answers than the engine can give.
   */
  admit(request: AdmissionRequest): Promise<Admission>;
  /** The standing of each waiting request, by the argument of its `admit` call. */
  waiting(): ReadonlyMap<AdmissionRequest, Standing>;
}
