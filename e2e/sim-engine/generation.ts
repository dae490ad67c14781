/** Answers a request: waits for its turn, makes tokens at its pace, and causes the configured fault. */
import type { Answer, AnswerForm } from "./answer.ts";
import type { Work } from "./core.ts";
import type { Fault, FaultKind } from "./faults.ts";
import type { EngineParts } from "./parts.ts";
import { refuseInStream } from "./reply.ts";
import type { FinishReason } from "./request.ts";
import type { Sink } from "./sink.ts";
import type { Job } from "./timer-wheel.ts";

interface GenerationPlan {
  readonly parts: EngineParts;
  readonly answer: Answer;
  readonly form: AnswerForm;
  readonly sink: Sink;
  /** The milliseconds to the first token. */
  readonly ttftMs: number;
  /** Returns the milliseconds to the next token. */
  readonly itlMs: () => number;
  readonly fault: Fault | undefined;
  readonly made: (tokens: number) => void;
  readonly ended: (answer: Answer, reason: string) => void;
}

/** Few, so that an answer without pauses delays others as little as with a real engine. */
const stepsPerTurnMax = 32;
const hugeEventBytes = 64 << 20;
const noNewlineBytes = 16 << 20;

export class Generation implements Work, Job {
  readonly #plan: GenerationPlan;
  readonly #sink: Sink;
  #dueMs = 0;
  #made = 0;
  #opened = false;
  #over = false;

  constructor(plan: GenerationPlan) {
    this.#plan = plan;
    this.#sink = plan.sink;
    this.#sink.splits = plan.fault?.kind === "split";
  }

  get answers(): number {
    return this.#plan.answer.request.choices;
  }

  get contextTokens(): number {
    const { choices, promptTokens } = this.#plan.answer.request;
    return promptTokens + choices * this.#made;
  }

  get #isStream(): boolean {
    return this.#plan.answer.request.stream;
  }

  /** Whether a token was sent. Only then some engines notice at once that the client left. */
  get producing(): boolean {
    return this.#opened && this.#isStream;
  }

  begin(): void {
    const { parts, form, ttftMs } = this.#plan;
    const said = this.#isStream ? (form.reading?.() ?? []) : [];
    if (said.length > 0) this.#sink.open();
    this.#sink.events(said);
    this.#dueMs = parts.wheel.nowMs + ttftMs;
    parts.wheel.add(this.#dueMs, this);
  }

  due(nowMs: number): void {
    const { parts, itlMs } = this.#plan;
    for (let steps = 0; !this.#over && this.#dueMs <= nowMs && steps < stepsPerTurnMax; steps++) {
      this.#dueMs += itlMs();
      this.#step();
    }
    if (!this.#over && this.#dueMs !== Infinity) parts.wheel.add(this.#dueMs, this);
  }

  abort(): void {
    if (this.#over) return;
    this.#open();
    if (this.#isStream) this.#sink.events(this.#plan.form.finish("abort"));
    this.#finish("abort", true);
  }

  fail(): void {
    if (this.#over) return;
    const { dialect } = this.#plan.parts;
    const { dead } = dialect.refusals;
    if (this.#isStream) refuseInStream(this.#sink, dialect, dead);
    else this.#sink.body(dead.status, dead.body);
    this.#end("aborted");
  }

  /** Ends the answer because the client has left. */
  callerLeft(): void {
    if (!this.#over) this.#end("aborted");
  }

  #step(): void {
    const { answer, fault, form, made, parts } = this.#plan;
    const { script, choices } = answer.request;
    if (fault?.at === this.#made && this.#goWrong(fault)) return;
    this.#open();
    const last = this.#made + 1 >= script.length;
    parts.ledger.made(answer.entry, choices);
    made(choices);
    const finish = last && fault?.kind !== "no-finish" ? script.finish : undefined;
    if (this.#isStream)
      for (let choice = 0; choice < choices; choice++) this.#sink.events(form.token(choice, this.#made, finish));
    this.#made++;
    if (last) this.#finish(script.finish, false);
  }

  #open(): void {
    if (this.#opened) return;
    this.#opened = true;
    if (!this.#isStream) return;
    this.#sink.open();
    this.#sink.events(this.#plan.form.opening());
  }

  #finish(reason: FinishReason, aborted: boolean): void {
    const { form } = this.#plan;
    const fault = this.#plan.fault?.kind;
    if (this.#isStream) {
      const closing = form.closing();
      if (fault !== "usage-late") this.#sink.events(closing);
      if (fault === "usage-twice")
        for (const event of closing)
          this.#sink.event(JSON.stringify(event).replace(/"completion_tokens":\d+/, '"completion_tokens":1'));
      if (fault !== "no-terminator") this.#sink.terminator();
      if (fault === "usage-late") this.#sink.events(closing);
      this.#sink.end();
    } else {
      this.#sink.body(200, form.whole(this.#made, reason));
    }
    this.#end(aborted ? "aborted" : "finished", reason);
  }

  #end(how: "finished" | "aborted", reason?: string): void {
    const { answer, ended, parts } = this.#plan;
    this.#over = true;
    parts.ledger.close(answer.entry, how, reason);
    ended(answer, reason ?? "abort");
    parts.core.leave(this);
  }

  /** Sends comments on an open stream, as llama-server's HTTP threads do even if the generating thread hangs. */
  #ping(): void {
    const { dialect, wheel } = this.#plan.parts;
    if (dialect.pingMs === undefined || this.#over || !this.#sink.isOpen) return;
    this.#sink.raw(":\n\n");
    wheel.add(wheel.nowMs + dialect.pingMs, { due: () => this.#ping() });
  }

  /** Causes a fault. Returns whether it ends the step. */
  #goWrong({ kind }: Fault): boolean {
    const { coreDies, crash } = this.#plan.parts;
    if (kind === "crash") crash();
    else if (kind === "core-dies") coreDies();
    else if (kind === "abort") this.abort();
    else if (kind === "hang") {
      this.#dueMs = Infinity; // holds its place until the client leaves
      this.#ping();
    } else return this.#isStream ? this.#streamGoesWrong(kind) : this.#bodyGoesWrong(kind);
    return true;
  }

  #streamGoesWrong(kind: FaultKind): boolean {
    const sink = this.#sink;
    const { dialect } = this.#plan.parts;
    if (kind === "reset") sink.reset();
    else if (kind === "cut-chunk") sink.cutChunk();
    else if (kind === "error-event") refuseInStream(sink, dialect, dialect.refusals.internal);
    else if (kind === "cut" || kind === "usage-only") {
      sink.open();
      if (kind === "usage-only") sink.events(this.#plan.form.closing());
      if (kind === "usage-only") sink.terminator();
      sink.end();
    } else return this.#malformed(kind);
    this.#end("aborted");
    return true;
  }

  /** Sends malformed bytes in a stream. The stream continues, except after an event without an end. */
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
    else if (kind === "error-event") sink.body(500, this.#plan.parts.dialect.refusals.internal.body);
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
