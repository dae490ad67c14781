import type { EngineDeath } from "@weiche/shared/node-protocol.ts";

/** How an engine failed to answer. Ends only the request that met it. Messages are for the log and quote nothing. */
export type EngineFaultReason =
  /** Nothing listens at its endpoint. */
  | "refused"
  /** The connection broke before the end of the answer. */
  | "connection lost"
  | "silent"
  | "gone"
  /** A violation of the protocol: invalid JSON, a wrong shape, an impossible order. */
  | "malformed"
  | "too large"
  /** The stream ended cleanly, but without the terminator or a finish reason for every choice. */
  | "unfinished"
  | "engine error"
  /** The engine reported that its generating process is dead: it will not answer again. */
  | "core died"
  | "unknown model"
  | "key refused";

export class EngineFault extends Error {
  readonly reason: EngineFaultReason;
  /** Set if the engine died: with this request alone, or with others that may be the cause as well. */
  readonly death: EngineDeath | undefined;

  constructor(reason: EngineFaultReason, message: string = reason, death?: EngineDeath) {
    super(message);
    this.reason = reason;
    this.death = death;
  }
}
