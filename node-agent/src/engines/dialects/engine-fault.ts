import type { EngineDeath } from "@weiche/shared/node-protocol.ts";

/** An engine that broke off, lied or hung. Ends the one request that met it. The text is for the log and quotes nothing. */
export type EngineFaultReason =
  /** Nobody listens. */
  | "refused"
  /** The connection ended before the answer did. */
  | "connection lost"
  /** No sign of life for too long. */
  | "silent"
  /** Its process is gone. */
  | "gone"
  /** Not what the protocol allows: no JSON, a wrong shape, an order that cannot be. */
  | "malformed"
  | "too large"
  /** It ended cleanly, but without a reason for each answer and the terminator. */
  | "unfinished"
  /** It says itself that it failed. */
  | "engine error"
  /** It says itself that what generates in it is dead: nothing comes from this engine any more. */
  | "core died"
  | "unknown model"
  | "key refused";

export class EngineFault extends Error {
  readonly reason: EngineFaultReason;
  /** Of an engine that is gone: whether it died over this request. */
  readonly death: EngineDeath | undefined;

  constructor(reason: EngineFaultReason, message: string = reason, death?: EngineDeath) {
    super(message);
    this.reason = reason;
    this.death = death;
  }
}
