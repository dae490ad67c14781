/** Tests how slowly a client may read an answer, on virtual time. */
import type { IncomingMessage } from "node:http";
import { ApiError } from "@weiche/shared/errors.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { expect, test } from "vitest";
import type { AnswerSink } from "../edge/answer-sink.ts";
import type { AnswerBody, AnswerReader } from "../nodes/upstream.ts";
import { Exchange } from "./exchange.ts";
import { relay } from "./relay.ts";

/** A client whose socket buffers nothing: each byte is either read or unread. */
class SimSink implements AnswerSink {
  hasBegun = false;
  isCut = false;
  /** Bytes that the client has not read. */
  unread = 0;
  readonly pieces: Buffer[] = [];
  #onDrain = () => {};
  #onClosed: (isWhole: boolean) => void = () => {};

  head(): void {
    this.hasBegun = true;
  }

  piece(bytes: Buffer): boolean {
    this.unread += bytes.length;
    this.pieces.push(bytes);
    return false;
  }

  end(): boolean {
    return false;
  }

  cut(): void {
    this.isCut = true;
    this.#onClosed(false);
  }

  onDrain(callback: () => void): void {
    this.#onDrain = callback;
  }

  onClosed(callback: (isWhole: boolean) => void): void {
    this.#onClosed = callback;
  }

  read(bytes: number): void {
    if (this.unread === 0) return;
    this.unread = Math.max(0, this.unread - bytes);
    if (this.unread === 0) this.#onDrain();
  }
}

const secondsMax = 3_600;

/** A node that always has another event of `bytes` bytes. */
class EndlessBody implements AnswerBody {
  readonly ending = "broken";
  readonly engineDeath = undefined;
  readonly nodeFault = undefined;
  readonly #event: Buffer;
  #reader!: AnswerReader;
  isCancelled = false;

  constructor(bytes: number) {
    this.#event = Buffer.from(`data: ${"x".repeat(bytes - 8)}\n\n`);
  }

  readInto(reader: AnswerReader): void {
    this.#reader = reader;
    this.resume();
  }

  pause(): void {}

  resume(): void {
    this.#reader.take(this.#event);
  }

  cancel(): void {
    this.isCancelled = true;
  }
}

test.each([
  ["nothing", 0, 60],
  ["a byte a second", 1, 61],
  ["half a KiB a second", 512, 120],
  ["just more than a KiB a second", 1_100, Infinity],
])(
  "a client that reads %s is cut as stalled after the expected time [D3]",
  (_what, bytesPerSecond, expectedSeconds) => {
    // A client at the minimum rate cannot read the longer event within the stall time.
    for (const eventBytes of [2_048, 250_000]) {
      const { seconds, isCut, isCancelled, outcome } = readSlowly(eventBytes, bytesPerSecond);
      expect(Math.abs(seconds - Math.min(expectedSeconds, secondsMax))).toBeLessThan(30);
      expect([isCancelled, outcome]).toEqual([isCut, isCut ? "stalled" : "client-gone"]);
    }
  },
);

/** Reads events of `eventBytes` bytes until the client is cut or an hour is over. */
function readSlowly(eventBytes: number, bytesPerSecond: number) {
  const clock = new VirtualClock();
  const sink = new SimSink();
  const exchange = new Exchange("chat", { headers: {} } as IncomingMessage, sink, clock);
  const body = new EndlessBody(eventBytes);
  void relay(exchange, { status: 200, kind: "events", retryAfterSeconds: 0, waited: undefined, body }, clock, 60_000);
  let seconds = 0;
  while (!sink.isCut && seconds < secondsMax) {
    clock.advance(1_000);
    seconds++;
    sink.read(bytesPerSecond);
  }
  return { seconds, isCut: seconds < secondsMax, isCancelled: body.isCancelled, outcome: exchange.outcome };
}

test("when the time limit ends a request, the current event is sent whole before the error event", () => {
  const clock = new VirtualClock();
  const sink = new SimSink();
  const exchange = new Exchange("chat", { headers: {} } as IncomingMessage, sink, clock);
  const body = new EndlessBody(100_000);
  void relay(exchange, { status: 200, kind: "events", retryAfterSeconds: 0, waited: undefined, body }, clock, 60_000);
  sink.read(20_000);
  exchange.abort(new ApiError("timeout", "over"));
  const [event, error, rest] = Buffer.concat(sink.pieces).toString().split("\n\n");
  expect([event!.length, JSON.parse(error!.slice(6)), rest]).toMatchObject([
    99_998,
    { error: { code: "timeout" } },
    "",
  ]);
});
