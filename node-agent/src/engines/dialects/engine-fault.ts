import type { EngineDeath, NodeFault } from "@weiche/shared/node-protocol.ts";

/** How an engine failed to answer. Ends only the request that met it. Messages are for the log and quote nothing. */
export type EngineFaultReason =
  /** Nothing listens at its endpoint. */
  | "refused"
  /** The connection broke before the end of the answer. */
  | "connection lost"
  /** HTTP or the lines of the event stream are broken: a proxy whose engine died also leaves that. */
  | "bad framing"
  | "silent"
  | "gone"
  /** An event that violates the convention: invalid UTF-8 or JSON, a wrong shape, an impossible order. */
  | "malformed"
  | "too large"
  /** The stream ended cleanly, but without the terminator or a finish reason for every choice. */
  | "unfinished"
  /** It reported an error before output, or ended the answer with `abort`, as vLLM does when it is stopped. */
  | "engine error"
  /** It reported an error after output had begun, and lives: its parser or grammar failed at the model's text. */
  | "gave up"
  /** The engine reported that its generating process is dead: it will not answer again. */
  | "core died"
  | "unknown model"
  | "key refused";

/**
 * Who may be the cause of a fault. `ours`: the engine, its host or its operator; nobody pays. `answer`: also what the
 * model wrote for this request, which its client can provoke; the client pays for what it has received, unless the engine
 * is doubted because it fails many other accounts or its probe.
 */
const causes: Readonly<Record<EngineFaultReason, "ours" | "answer">> = {
  refused: "ours",
  "connection lost": "ours",
  "bad framing": "ours",
  silent: "ours",
  gone: "ours",
  // A call without a name, text where a call must come, a code point that was cut, a control character in JSON.
  malformed: "answer",
  // A call that a parser holds back until it is whole, log probabilities of many tokens in one event.
  "too large": "answer",
  // A crash of the process that writes the stream looks like this, too.
  unfinished: "ours",
  "engine error": "ours",
  "gave up": "answer",
  "core died": "ours",
  "unknown model": "ours",
  "key refused": "ours",
};

export class EngineFault extends Error {
  readonly reason: EngineFaultReason;
  /** Set if the engine died: with this request alone, or with others that may be the cause as well. */
  readonly death: EngineDeath | undefined;
  /** The engine fails requests in a row (`EngineDoubts`): no single request is the cause. */
  isOfDoubtedEngine = false;

  constructor(reason: EngineFaultReason, message: string = reason, death?: EngineDeath) {
    super(message);
    this.reason = reason;
    this.death = death;
  }

  /** Whether nobody pays for the answer. An engine that died is ours, whatever killed it: see `EngineDeath`. */
  get isOurs(): boolean {
    return this.death !== undefined || this.isOfDoubtedEngine || causes[this.reason] === "ours";
  }
}

/**
 * What the router is told. After `engine-lost` it asks no other node, because the same request may do the same to the next
 * engine: hangs, deaths, and what a client can provoke after much was generated (`hadOutput`), which would cost that twice.
 * All others are `node-failed`. Both count against the engine: the router gives each account one vote.
 * `seesExit`: a broken connection is no death, because the agent would know.
 */
export function nodeFaultOf(
  { reason }: EngineFault,
  { seesExit, hadOutput }: { readonly seesExit: boolean; readonly hadOutput: boolean },
): NodeFault {
  const isLost = reason === "silent" || reason === "core died" || (reason === "connection lost" && !seesExit);
  // An event that is too large has output in it.
  const isProvoked = reason === "gave up" || reason === "too large" || (reason === "malformed" && hadOutput);
  return isLost || isProvoked ? "engine-lost" : "node-failed";
}
