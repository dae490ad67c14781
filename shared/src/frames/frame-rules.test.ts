/**
 * Tests one end against a model of the rules. The peer sends frames of every type in every state, with lengths at their
 * bounds, cut anywhere, between calls of the end's own application. Model and bytes do not use the code under test.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { FrameModel, windowBytes, type KnownStream } from "../testing/frame-model.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { rawFrame, rawFrames, u32 } from "../testing/raw-frames.ts";
import { SimSocket } from "../testing/sim-socket.ts";
import { FrameConnection } from "./frame-connection.ts";
import type { FrameStream, StreamSink } from "./frame-stream.ts";

/** One step: a frame of the peer, or a call of the end's own application. */
const steps = fc.record({
  what: fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom("data", "data", "head", "end", "open", "resume") },
    {
      weight: 3,
      arbitrary: fc.constantFrom("window", "done", "cancel", "ping", "pause", "write", "finish", "give up"),
    },
    { weight: 1, arbitrary: fc.constantFrom("go away", "type", "length", "stream", "stop") },
  ),
  /** Whether the peer may send a frame that breaks a rule. */
  isRude: fc.nat(15).map((chance) => chance === 0),
  /** Chooses the stream, counted back from the last. */
  back: fc.nat(3),
  size: fc.constantFrom("one", "some", "most", "most", "credit", "over"),
  code: fc.nat(5),
  cuts: fc.array(fc.nat(40), { maxLength: 3 }),
});
const plain = { isRude: false, back: 0, size: "one" as const, code: 0, cuts: [] };
/** Opens two streams at the beginning. Each end uses the steps that apply to it. */
const beginning: readonly Step[] = ["open", "open", "head", "head"].map((what) => ({ ...plain, what: what as "open" }));
type Step = typeof steps extends fc.Arbitrary<infer Of> ? Of : never;

class Rig {
  readonly socket = new SimSocket();
  readonly model: FrameModel;
  readonly told: string[] = [];
  readonly connection: FrameConnection;
  closed: unknown;
  readonly #isRouter: boolean;
  readonly #streams = new Map<number, FrameStream>();
  readonly #finished = new Set<number>();

  constructor(isRouter: boolean) {
    this.#isRouter = isRouter;
    this.model = new FrameModel(isRouter);
    const take = (stream: FrameStream, record: string) => {
      this.#tell("taken", stream.id, record);
      this.#streams.set(stream.id, stream);
      return this.#sink(stream.id);
    };
    this.connection = new FrameConnection(this.socket.asSocket, {
      clock: new VirtualClock(),
      ...(isRouter ? {} : { take }),
      closed: (_reason, broken) => (this.closed = broken),
    });
  }

  #tell(what: string, id: number, more: string | number): void {
    FrameModel.prototype.tell.call({ told: this.told } as FrameModel, what, id, more);
  }

  #sink(id: number): StreamSink {
    return {
      head: (record) => this.#tell("head", id, record),
      data: (bytes) => this.#tell("data", id, bytes.length),
      done: () => this.#tell("done", id, ""),
      end: (code) => this.#tell("end", id, code),
      gone: (why) => this.#tell("gone", id, why),
      drain() {},
    };
  }

  do({ what, isRude, back, size, code, cuts }: Step): void {
    const { model } = this;
    const say = (type: number, id: number, payload: Buffer | string | readonly number[]) => {
      const bytes = Buffer.from(payload as string);
      if (isRude || model.rule(type, id, bytes) === undefined) this.#say(type, id, bytes, cuts);
    };
    const id = Math.max(1, model.last - back);
    const one = model.known.get(id);
    const stream = this.#streams.get(id);
    switch (what) {
      case "head":
        return say(1, this.#isRouter ? id : model.last + 1 + (code === 5 ? -1 : code), `[${code}]`);
      case "data":
        return say(2, id, this.#dataOf(size, one));
      case "end":
        return say(3, id, [code]);
      case "cancel":
        return say(4, id, [code]);
      case "done":
        return say(9, id, "");
      case "window":
        return say(5, id, u32(this.#windowOf(size, one)));
      case "ping":
        return say(6, 0, Buffer.alloc(8, code));
      case "go away":
        return say(8, 0, "x".repeat(code));
      case "type":
        return say(10 + code, id, "x");
      case "length":
        return say(1 + code, id, Buffer.alloc(code < 2 ? 65_537 : 5));
      case "stream":
        return say(2 + code, code < 4 ? model.last + 1 : 1, Buffer.alloc([1, 1, 1, 4, 8, 8][code]!, 1));
      case "open":
        return this.#open();
      case "stop":
        if (model.broken === undefined) model.hasSaidGoAway = true;
        return this.connection.goAway();
      case "pause":
        if (one) one.paused = true;
        return stream?.pause();
      case "resume":
        if (one && model.broken === undefined) model.resume(one);
        return stream?.resume();
      case "write":
        if (!this.#finished.has(id))
          stream?.write(Buffer.alloc({ one: 1, some: 5_000, most: 65_536, credit: windowBytes, over: 300_000 }[size]));
        return;
      case "finish":
        if (this.#finished.has(id)) return;
        this.#finished.add(id);
        stream?.end(0);
        if (one && stream?.isOver && !this.#isRouter) model.gone(one);
        return;
      case "give up":
        if (one) model.gone(one);
        return stream?.cancel("unwanted");
    }
  }

  #open(): void {
    if (!this.#isRouter || !this.connection.isOpen) return;
    const id = this.model.last + 1;
    const stream = this.connection.open("[1]", this.#sink(id))!;
    this.model.opened(id);
    this.#streams.set(id, stream);
  }

  /** Uses up most of the credit of a paused stream. */
  async fill({ what, back, size }: Step, settled: () => Promise<void>): Promise<void> {
    const one = this.model.known.get(Math.max(1, this.model.last - back));
    if (what !== "data" || (size !== "credit" && size !== "over")) return;
    for (let n = 0; n < 4 && one && one.peerCredit > 65_536; n++) {
      if (this.model.rule(2, one.id, Buffer.alloc(65_536)) !== undefined) return;
      this.#say(2, one.id, Buffer.alloc(65_536), []);
      await settled();
    }
  }

  #dataOf(size: Step["size"], one: KnownStream | undefined): Buffer {
    const credit = one?.peerCredit ?? 0;
    const bytes = { one: 1, some: 5_000, most: 65_536, credit, over: credit + 1 }[size];
    return Buffer.alloc(Math.max(1, Math.min(65_536, bytes)));
  }

  #windowOf(size: Step["size"], one: KnownStream | undefined): number {
    const missing = windowBytes - (one?.credit ?? windowBytes);
    return { one: 1, some: 0, half: missing >> 1, most: 0xffff_ffff, credit: missing, over: missing + 1 }[size];
  }

  /** Sends a frame in pieces, cut at these places. */
  #say(type: number, id: number, payload: Buffer, cuts: readonly number[]): void {
    const bytes = rawFrame(type, id, payload);
    this.model.take(type, id, payload);
    let at = 0;
    for (const cut of [...cuts].sort((a, b) => a - b)) {
      if (cut <= at || cut >= bytes.length) continue;
      this.socket.say(bytes.subarray(at, cut));
      at = cut;
    }
    this.socket.say(bytes.subarray(at));
  }
}

/** Checks the frames that one end has written against the rules for its peer. */
class Watcher {
  readonly mistakes: string[] = [];
  readonly #model: FrameModel;
  readonly #isRouter: boolean;
  readonly #sent = new Map<number, "ended" | "over">();
  #lastHead = 0;

  constructor(model: FrameModel, isRouter: boolean) {
    this.#model = model;
    this.#isRouter = isRouter;
  }

  #must(is: boolean, what: string): void {
    if (!is) this.mistakes.push(what);
  }

  watch(bytes: Buffer): void {
    for (const { type, stream: id, payload } of rawFrames(bytes)) {
      if (type === 7) this.#must(this.#model.pings.includes(payload.toString("hex")), "a PONG without its PING");
      if (type < 6) this.#watchStream(type, id, payload);
    }
  }

  #watchStream(type: number, id: number, payload: Buffer): void {
    const state = this.#sent.get(id) ?? "open";
    const may = state === "open" || (state === "ended" && (type === 4 || type === 5));
    this.#must(may, `a frame of type ${type} for stream ${id}, which is ${state}`);
    if (type === 3 || type === 4) this.#sent.set(id, type === 3 && this.#isRouter ? "ended" : "over");
    if (type === 1 && this.#isRouter) {
      this.#must(id > this.#lastHead, "streams out of order");
      this.#lastHead = id;
    }
    const known = this.#model.known.get(id)!;
    // The agent's END may wait behind earlier bytes. The stream is over once the END is sent.
    if (type === 3 && !this.#isRouter) this.#model.gone(known);
    if (type === 2) this.#must((known.credit -= payload.length) >= 0, "DATA longer than the credit");
    if (type !== 5) return;
    const given = payload.readUInt32BE();
    known.taken -= given;
    known.peerCredit += given;
    this.#must(given >= windowBytes / 2 && known.taken >= 0, `a WINDOW of ${given} bytes`);
  }

  /** Checks that each half window of taken bytes was returned as credit. */
  finish(): void {
    for (const { over, ended, taken } of this.#model.known.values())
      this.#must(over || ended || taken < windowBytes / 2, `${taken} bytes were not given back`);
  }
}

test.each([
  ["a router's end", true],
  ["an agent's end", false],
])("%s keeps and enforces the rules, whatever frames arrive in whatever pieces [D9]", async (_name, isRouter) => {
  const seen = new Set<unknown>();
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { maxLength: 60, size: "max" }), async (all) => {
      const rig = new Rig(isRouter);
      for (const step of beginning) rig.do(step);
      const watcher = new Watcher(rig.model, isRouter);
      const settled = async () => {
        await new Promise((resolve) => setImmediate(resolve));
        watcher.watch(rig.socket.written());
      };
      for (const step of all) {
        await rig.fill(step, settled);
        rig.do(step);
        await settled();
        if (rig.socket.destroyed || !rig.socket.writable) break;
      }
      expect(rig.told).toEqual(rig.model.told);
      expect(rig.closed).toBe(rig.model.broken);
      if (rig.closed === undefined) watcher.finish();
      expect(watcher.mistakes).toEqual([]);
      seen.add(rig.closed);
      rig.connection.destroy();
    }),
    { numRuns: Math.ceil(Number(process.env["WEICHE_CASES"] ?? 2_000) / 4) },
  );
  expect(seen).toEqual(new Set([undefined, "type", "length", "stream", "state", "credit"]));
});
