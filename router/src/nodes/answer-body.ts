/** One request to a node and its answer, whose body goes to the reader piece by piece. */
import { failureOf } from "@weiche/shared/frames/failure-ends.ts";
import { ends } from "@weiche/shared/frames/frame.ts";
import type { FrameStream, Gone, StreamSink } from "@weiche/shared/frames/frame-stream.ts";
import type { EngineDeath, NodeFault } from "@weiche/shared/node-protocol.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import { readAnswerRecord } from "./answer-record.ts";
import type { Dispatched } from "./registry.ts";
import { NodeLost, type AnswerBody, type AnswerEnding, type AnswerReader, type UpstreamResponse } from "./upstream.ts";

/** The node did nothing for the request. The router may send the request to the same node again. */
export class NodeRefused extends NodeLost {}

export class NodeAnswer implements AnswerBody, StreamSink {
  ending: AnswerEnding = "broken";
  engineDeath: EngineDeath | undefined;
  nodeFault: NodeFault | undefined;
  /** Settles as `Upstream.send` describes, and also rejects with `NodeRefused`. */
  readonly begun: Promise<UpstreamResponse>;
  /** Set immediately after the stream opens, before the first frame can arrive. */
  stream!: FrameStream;
  readonly #begin: (response: UpstreamResponse) => void;
  readonly #fail: (reason: Error) => void;
  readonly #signal: EndSignal;
  readonly #dispatched: Dispatched | undefined;
  #hasBegun = false;
  #reader: AnswerReader | undefined;
  #ended = false;

  /** `dispatched` learns when the engine is done, and when nothing is left to read. */
  constructor(signal: EndSignal, dispatched: Dispatched | undefined) {
    const { promise, resolve, reject } = Promise.withResolvers<UpstreamResponse>();
    this.begun = promise;
    this.#begin = resolve;
    this.#fail = reject;
    this.#signal = signal;
    this.#dispatched = dispatched;
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  readInto(reader: AnswerReader): void {
    this.#reader = reader;
    if (this.#ended) reader.end();
    else this.stream.resume();
  }

  pause(): void {
    this.stream.pause();
  }

  resume(): void {
    this.stream.resume();
  }

  cancel(): void {
    this.stream.cancel("unwanted");
    this.#end();
  }

  head(record: string): void {
    const answer = readAnswerRecord(record);
    // Clients understand only event streams and JSON.
    if (!answer || (answer.kind !== "events" && answer.kind !== "json")) {
      this.stream.cancel("internal");
      this.#fail(new NodeLost("the node's answer begins with no record of an answer to a request"));
      return this.#end();
    }
    this.#hasBegun = true;
    this.#signal.removeEventListener("abort", this.#onAbort); // from now on the reader cancels
    this.#begin({ ...answer, kind: answer.kind, body: this });
  }

  data(bytes: Buffer): void {
    this.#reader!.take(bytes);
  }

  done(): void {
    this.#dispatched?.done();
  }

  end(code: number): void {
    this.ending = code === ends.complete ? "complete" : code === ends.unread ? "unread" : "error";
    ({ death: this.engineDeath, fault: this.nodeFault } = failureOf(code));
    this.#end();
  }

  gone(why: Gone): void {
    if (!this.#hasBegun) {
      if (why === "refused") this.#fail(new NodeRefused("the node refused the request"));
      else this.#fail(new NodeLost("the node was lost before it answered"));
    }
    this.#end();
  }

  drain(): void {}

  readonly #onAbort = (): void => {
    this.#fail(this.#signal.reason as Error);
    this.cancel();
  };

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (!this.#hasBegun) this.#signal.removeEventListener("abort", this.#onAbort);
    this.#dispatched?.over();
    this.#reader?.end();
  }
}
