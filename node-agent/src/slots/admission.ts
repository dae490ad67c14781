/** What the ingress asks of the slots. */
import type { ModelId, RequestId, SlotName } from "@weiche/shared/ids.ts";
import type { DialectName, EngineEndpoint, EngineSpec } from "../engines/engine.ts";
import type { LossListener } from "./engine-loss.ts";

export interface AdmissionRequest {
  readonly requestId: RequestId;
  readonly model: ModelId;
  /** The slot that the router had in mind; another one of the node with the same model will do. */
  readonly slot?: SlotName;
  /** How many answers it asks for: each takes a place of its engine. */
  readonly answers: number;
  /** Identity of the router that asked, for the report's `running_of_router`. */
  readonly routerId: string;
  /** Aborts when the client has gone: a waiter is removed at once. */
  readonly signal: AbortSignal;
}

/** The right to run one request on an engine. */
export interface Admission {
  readonly slot: SlotName;
  readonly engine: EngineSpec;
  readonly endpoint: EngineEndpoint;
  /** How long the request was held before. */
  readonly waitedMs: number;
  /** Calls back, once, if the engine is gone before the release: at once if it is gone already. */
  onEngineLost(listener: LossListener): void;
  /** Gives its places back. Harmless the second time. */
  release(): void;
  /** Tells the slot that the engine misbehaved in a way that needs a probe (see C6). */
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
}
