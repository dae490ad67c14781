/** Interface between the ingress and the slots. */
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
  /** The slot that the router chose; another slot of the node with the same model will do. */
  readonly slot?: SlotName;
  /** Number of answers: each takes a place of the engine. */
  readonly answers: number;
  /** Time left for the whole answer: a request whose turn would come later is not held. Absent: not bounded. */
  readonly leftMs?: number;
  /** The router that asked, for the report's `running_of_router`. */
  readonly routerId: string;
  /** Aborts when the client leaves: a waiter is then removed at once. */
  readonly signal: EndSignal;
}

/** The right to run one request on an engine. */
export interface Admission {
  readonly slot: SlotName;
  readonly engine: EngineSpec;
  readonly endpoint: EngineEndpoint;
  readonly waitedMs: number;
  /** How long it would wait, as estimated when it came. Absent: it did not wait. */
  readonly estimatedMs?: number | undefined;
  /** `switch`: its model was not active when the request came; else `place`. */
  readonly waitedFor: WaitedFor;
  /** Calls back, once, if the engine is gone before the release: at once if it is gone already. */
  onEngineLost(listener: LossListener): void;
  /** Gives its places back, and says what the request used, as far as it is known. Only the first call counts. */
  release(used?: TokensUsed): void;
  /**
   * Tells the slot that the engine seems to hang or to fail every request: it takes nothing new, and is restarted
   * once nothing runs on it.
   */
  suspect(reason: string): void;
  /** Tells the slot that the engine is dead, though its process may still be there. */
  lose(reason: string): void;
}

export interface Admissions {
  /** The kinds of engines that may answer for the model; none if no slot serves it. */
  dialectsOf(model: ModelId): readonly DialectName[];
  /**
   * Resolves when the request may run. Rejects with an `ApiError` (503 of some kind, 400 for more answers than the engine
   * can give) or the signal's reason.
   */
  admit(request: AdmissionRequest): Promise<Admission>;
  /** Where the requests stand that wait, by what `admit` was called with. */
  waiting(): ReadonlyMap<AdmissionRequest, Standing>;
}
