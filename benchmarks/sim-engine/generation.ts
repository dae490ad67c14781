/** One request being answered: waits for its turn, makes tokens at its pace, and goes wrong where it was told to. */
import type { Answer, AnswerForm, Refusal } from "./answer.ts";
import type { Work } from "./core.ts";
import type { Fault, FaultKind } from "./faults.ts";
import type { Ledger } from "./ledger.ts";
import type { FinishReason } from "./request.ts";
import type { Sink } from "./sink.ts";
import type { Job, TimerWheel } from "./timer-wheel.ts";

/** What a generation needs of its engine. */
export interface GenerationHost {
  readonly wheel: TimerWheel;
  readonly ledger: Ledger;
  readonly terminatesErrors: boolean;
  readonly pingMs: number | undefined;
  eventOf(refusal: Refusal): string;
  internalError(): Refusal;
  deadError(): Refusal;
  made(tokens: number): void;
  /** The work is over: its place is free. */
  leave(work: Work): void;
  ended(answer: Answer, reason: string): void;
  crash(): void;
  coreDies(): void;
}

export interface Pace {
  readonly ttftMs: number;
  readonly itlMs: number;
}

const stepsPerTurnMax = 256;
const hugeEventBytes = 64 << 20;
const noNewlineBytes = 16 << 20;

export class Generation implements Work, Job {
  readonly #host: GenerationHost;
  readonly #answer: Answer;
  readonly #form: AnswerForm;
  readonly #sink: Sink;
  readonly #pace: Pace;
  readonly #fault: Fault | undefined;
  #dueMs = 0;
  #made = 0;
  #opened = false;
  #over = false;

  constructor(
    host: GenerationHost,
    answer: Answer,
    form: AnswerForm,
    sink: Sink,
    pace: Pace,
    fault: Fault | undefined,
  ) {
    this.#host = host;
    this.#answer = answer;
    this.#form = form;
    this.#sink = sink;
    this.#pace = pace;
    this.#fault = fault;
    sink.splits = fault?.kind === "split";
  }

  get answers(): number {
    return this.#answer.request.choices;
  }

  /** Whether a token has left: only then do some engines notice a leaver at once. */
  get producing(): boolean {
    return this.#opened && this.#answer.request.stream;
  }

  begin(): void {
    if (this.#answer.request.stream) this.#sayReading();
    this.#dueMs = this.#host.wheel.nowMs + this.#pace.ttftMs;
    this.#host.wheel.add(this.#dueMs, this);
  }

  #sayReading(): void {
    const said = this.#form.reading?.() ?? [];
    if (said.length > 0) this.#sink.open();
    for (const data of said) this.#sink.event(data);
  }

  due(nowMs: number): void {
    for (let steps = 0; !this.#over && this.#dueMs <= nowMs && steps < stepsPerTurnMax; steps++) {
      this.#dueMs += this.#pace.itlMs;
      this.#step();
    }
    if (!this.#over && this.#dueMs !== Infinity) this.#host.wheel.add(this.#dueMs, this);
  }

  abort(): void {
    if (this.#over) return;
    this.#open();
    if (this.#answer.request.stream) for (const data of this.#form.finish("abort")) this.#sink.event(data);
    this.#finish("abort", true);
  }

  fail(): void {
    if (this.#over) return;
    const refusal = this.#host.deadError();
    if (this.#answer.request.stream) {
      this.#sink.open();
      this.#sink.event(this.#host.eventOf(refusal));
      if (this.#host.terminatesErrors) this.#sink.terminator();
      this.#sink.end();
    } else this.#sink.body(refusal.status, refusal.body);
    this.#end("aborted");
  }

  /** The caller has gone. */
  callerLeft(): void {
    if (!this.#over) this.#end("aborted");
  }

  #step(): void {
    const { request, entry } = this.#answer;
    if (this.#fault?.at === this.#made && this.#goWrong(this.#fault)) return;
    this.#open();
    const { script, choices, stream } = request;
    const last = this.#made + 1 >= script.length;
    this.#host.ledger.made(entry, choices);
    this.#host.made(choices);
    const finish = last && this.#fault?.kind !== "no-finish" ? script.finish : undefined;
    if (stream)
      for (let choice = 0; choice < choices; choice++)
        for (const data of this.#form.token(choice, this.#made, finish)) this.#sink.event(data);
    this.#made++;
    if (last) this.#finish(script.finish, false);
  }

  #open(): void {
    if (this.#opened) return;
    this.#opened = true;
    if (!this.#answer.request.stream) return;
    this.#sink.open();
    for (const data of this.#form.opening()) this.#sink.event(data);
  }

  #finish(reason: FinishReason, aborted: boolean): void {
    const fault = this.#fault?.kind;
    if (this.#answer.request.stream) {
      const closing = this.#form.closing();
      if (fault !== "usage-late") for (const data of closing) this.#sink.event(data);
      if (fault === "usage-twice")
        for (const data of closing) this.#sink.event(data.replace(/"completion_tokens":\d+/, '"completion_tokens":1'));
      if (fault !== "no-terminator") this.#sink.terminator();
      if (fault === "usage-late") for (const data of closing) this.#sink.event(data);
      this.#sink.end();
    } else {
      this.#sink.body(200, this.#form.whole(this.#made, reason));
    }
    this.#end(aborted ? "aborted" : "finished", reason);
  }

  #end(how: "finished" | "aborted", reason?: string): void {
    this.#over = true;
    this.#host.ledger.close(this.#answer.entry, how, reason);
    this.#host.ended(this.#answer, reason ?? "abort");
    this.#host.leave(this);
  }

  /** llama-server's HTTP threads send comments on an open stream, whatever the thread does that makes the tokens. */
  #ping(): void {
    const { pingMs, wheel } = this.#host;
    if (pingMs === undefined || this.#over || !this.#sink.isOpen) return;
    this.#sink.raw(":\n\n");
    wheel.add(wheel.nowMs + pingMs, { due: () => this.#ping() });
  }

  /** True if the step is over with it; false if the answer goes on. */
  #goWrong({ kind }: Fault): boolean {
    if (kind === "crash") {
      this.#host.crash();
      return true;
    }
    if (kind === "core-dies") {
      this.#host.coreDies();
      return true;
    }
    if (kind === "hang") {
      this.#dueMs = Infinity; // holds its place until the caller leaves
      this.#ping();
      return true;
    }
    if (kind === "abort") {
      this.abort();
      return true;
    }
    return this.#answer.request.stream ? this.#streamGoesWrong(kind) : this.#bodyGoesWrong(kind);
  }

  #streamGoesWrong(kind: FaultKind): boolean {
    const sink = this.#sink;
    if (kind === "reset") sink.reset();
    else if (kind === "cut-chunk") sink.cutChunk();
    else if (kind === "cut" || kind === "error-event" || kind === "usage-only") {
      sink.open();
      if (kind === "error-event") sink.event(this.#host.eventOf(this.#host.internalError()));
      if (kind === "usage-only") for (const data of this.#form.closing()) sink.event(data);
      if (kind === "usage-only" || (kind === "error-event" && this.#host.terminatesErrors)) sink.terminator();
      sink.end();
    } else return this.#malformed(kind);
    this.#end("aborted");
    return true;
  }

  /** Bytes that have no place in a stream, which then goes on, except after an event without an end. */
  #malformed(kind: FaultKind): boolean {
    const sink = this.#sink;
    this.#open();
    if (kind === "terminator-first") sink.terminator();
    if (kind === "not-json") sink.event('{"choices":[{"index":0,');
    if (kind === "invalid-utf8") sink.raw(Buffer.from(`data: ${delta("\xff\xfe")}\n\n`, "latin1"));
    if (kind === "huge-event") sink.event(delta("x".repeat(hugeEventBytes)));
    if (kind !== "no-newline") return false;
    sink.raw(`data: ${"x".repeat(noNewlineBytes)}`);
    this.#dueMs = Infinity;
    return true;
  }

  #bodyGoesWrong(kind: FaultKind): boolean {
    const sink = this.#sink;
    if (kind === "cut" || kind === "cut-chunk" || kind === "reset") sink.reset();
    else if (kind === "error-event") sink.body(500, this.#host.internalError().body);
    else if (kind === "not-json") sink.body(200, '{"choices":[{"index":0,');
    else if (kind === "invalid-utf8") sink.body(200, Buffer.from(delta("\xff"), "latin1"));
    else if (kind === "huge-event") sink.body(200, delta("x".repeat(hugeEventBytes)));
    else return false;
    this.#end("aborted");
    return true;
  }
}

function delta(content: string): string {
  return `{"choices":[{"index":0,"delta":{"content":"${content}"}}]}`;
}
