import type { EngineDeath, NodeFault } from "@weiche/shared/node-protocol.ts";

/** How an engine failed to answer. A fault ends only its own request. Messages are for the log and quote nothing. */
export type EngineFaultReason =
  /** The engine does not listen at its endpoint. */
  | "refused"
  /** The connection broke before the end of the answer. */
  | "connection lost"
  /** HTTP or the lines of the event stream are broken. A proxy whose engine died also causes this. */
  | "bad framing"
  | "silent"
  | "gone"
  /** An event that violates the convention: invalid UTF-8 or JSON, a wrong shape, an impossible order. */
  | "malformed"
  | "too large"
  /** The stream ended cleanly, but without the terminator or a finish reason for every choice. */
  | "unfinished"
  /** The engine reported an error before output, or ended the answer with `abort`, as vLLM does when it is stopped. */
  | "engine error"
  /**
   * The engine reported an error after output had begun, and lives: its parser or grammar failed on the model's text.
   */
  | "gave up"
  /** The engine reported that its generating process is dead, so it will not answer again. */
  | "core died"
  | "unknown model"
  | "key refused";

/**
 * The possible causes of a fault. `ours`: the engine, its host or its operator, so the answer is free. `answer`: also
 * the text that the model wrote, which a client can provoke. The client then pays for what it has received, unless the
 * engine is doubted because it fails many other accounts or its probe.
 */
const causes: Readonly<Record<EngineFaultReason, "ours" | "answer">> = {
  refused: "ours",
  "connection lost": "ours",
  "bad framing": "ours",
  silent: "ours",
  gone: "ours",
  // A call without a name, text in place of a call, a cut code point, a control character in JSON.
  malformed: "answer",
  // A call that a parser holds back until it is complete, or log probabilities of many tokens in one event.
  "too large": "answer",
  // A crash of the process that writes the stream looks the same.
  unfinished: "ours",
  "engine error": "ours",
  "gave up": "answer",
  "core died": "ours",
  "unknown model": "ours",
  "key refused": "ours",
};

export class EngineFault extends Error {
  readonly reason: EngineFaultReason;
  /** Set if the engine died: with this request alone, or with others that may also be the cause. */
  readonly death: EngineDeath | undefined;
  /** The engine fails consecutive requests (`EngineDoubts`), so no single request is the cause. */
  isOfDoubtedEngine = false;

  constructor(reason: EngineFaultReason, message: string = reason, death?: EngineDeath) {
    super(message);
    this.reason = reason;
    this.death = death;
  }

  /** Whether the answer is free. The death of an engine is ours, whatever caused it: see `EngineDeath`. */
  get isOurs(): boolean {
    return this.death !== undefined || this.isOfDoubtedEngine || causes[this.reason] === "ours";
  }
}

/**
 * Returns the fault that is reported to the router. After `engine-lost` the router tries no other node, because the
 * same request may do the same to the next engine. It covers hangs, deaths, and faults that a client can provoke after
 * much output (`hadOutput`), which would cost twice. All other faults are `node-failed`. Both count against the engine,
 * one vote for each account. `seesExit`: a broken connection does not mean that the engine died, because the agent
 * would see its exit.
 */
export function nodeFaultOf(
  { reason }: EngineFault,
  { seesExit, hadOutput }: { readonly seesExit: boolean; readonly hadOutput: boolean },
): NodeFault {
  const isLost = reason === "silent" || reason === "core died" || (reason === "connection lost" && !seesExit);
  // An event that is too large contains output.
  const isProvoked = reason === "gave up" || reason === "too large" || (reason === "malformed" && hadOutput);
  return isLost || isProvoked ? "engine-lost" : "node-failed";
}
