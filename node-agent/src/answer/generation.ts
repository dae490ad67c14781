/** Runs a chat or completion. It always requests a stream from the engine, even if the client gets one body. */
import { promptTokensMax } from "@weiche/shared/convention/prompt-tokens.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { contextExceeded } from "@weiche/shared/convention/context-exceeded.ts";
import type { AccountId } from "@weiche/shared/ids.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { SseParser, type SseEvent } from "@weiche/shared/http/sse.ts";
import type { Dialect, EngineChunk } from "../engines/dialects/dialect.ts";
import { parseEvent } from "../engines/dialects/chunk.ts";
import { EngineFault, type EngineFaultReason } from "../engines/dialects/engine-fault.ts";
import { RequiredCalls } from "../engines/dialects/required-calls.ts";
import { AnswerFull } from "./collected.ts";
import type { AnswerWriter } from "./answer-writer.ts";
import { CanonicalStream } from "./canonical-stream.ts";
import { chatBody } from "./chat-body.ts";
import { chatEvents } from "./chat-events.ts";
import { ChoiceIndexes } from "../engines/dialects/choice-indexes.ts";
import { completionBody } from "./completion-body.ts";
import { completionEvents } from "./completion-events.ts";
import type { PromptSize } from "../intake/prompt-size.ts";
import type { EngineCall } from "./engine-call.ts";
import { answersError, eventRefusal, lateFault, refusalOf, type Refused } from "./engine-refusal.ts";
import type { EngineAccess, EngineWork, FinishedAnswer } from "./engine-work.ts";
import type { PromptFacts } from "../intake/read-request.ts";
import type { PromptEstimates } from "./prompt-estimates.ts";
import { soundAnswer } from "./sound-answer.ts";
import { TextRest } from "./answer-rest.ts";
import { hasText, isCount, noTokens, UsageCount, type TokenCounts } from "./usage-count.ts";

export interface GenerationScope {
  readonly requestId: string;
  readonly accountId: AccountId;
  readonly rules: ModelRules;
  /** The router's limit of billable tokens, for the prompt and all answers. */
  readonly tokensMax: number;
  readonly nowMs: number;
  readonly estimates: PromptEstimates;
}

interface Prompt {
  readonly facts: PromptFacts;
  say(engine: EngineAccess): Buffer | Promise<Buffer>;
}

/**
 * Allowed in addition to one event for each token of the window. Parsers of tool calls hold a call back and send empty
 * events meanwhile.
 */
const emptyEventsMax = 1_000;

/**
 * An engine sends nothing while its text could become a stop sequence, for at most a token per byte. A shorter sequence
 * is over long before the engine counts as hanging.
 */
const stopBytesMax = 64;

export class Generation implements EngineWork {
  readonly answers: number;
  readonly #path: string;
  readonly #input: "messages" | "prompt";
  readonly #writer: AnswerWriter;
  readonly #canonical: CanonicalStream;
  readonly #indexes: ChoiceIndexes;
  readonly #maxTokens: number | undefined;
  readonly #reasons: boolean;
  readonly #tokensMax: number;
  /** Cleared once it is sent, so that a prompt does not take memory while its answer is generated. */
  #prompt: Prompt | undefined;
  /** The body that was sent, kept until output begins. After a refusal its tokens may have to be counted. */
  #body: Buffer | undefined;
  /** The context window of the model's rules. From `run` on, at most the engine's window. */
  #windowTokens: number;
  #usage: UsageCount | undefined;
  #requiredCalls: RequiredCalls | undefined;
  #onUnknownFinish: EngineAccess["onUnknownFinish"] = () => {};
  readonly #requiresCalls: boolean;
  readonly #holdsBack: boolean;
  readonly #schemaIn: string | undefined;
  readonly #imagesMax: number;
  #promptTokensMax = 0;
  #promptTokens: number | undefined;
  readonly #estimates: PromptEstimates;
  readonly #accountId: AccountId;
  readonly #rules: ModelRules;
  readonly #size: PromptSize;
  /** The window or another limit is reached before the engine has finished. The answer ends without it. */
  #isFull = false;
  /** The number of events without text or calls since the last event with output. */
  #emptyEvents = 0;

  constructor(prompt: Prompt, { requestId, accountId, rules, tokensMax, nowMs, estimates }: GenerationScope) {
    const request = prompt.facts;
    this.#estimates = estimates;
    this.#accountId = accountId;
    this.#rules = rules;
    this.#size = request.size;
    this.#prompt = prompt;
    this.#windowTokens = rules.contextTokens;
    this.#path = request.kind === "chat" ? nodePaths.chat : nodePaths.completions;
    this.#input = request.kind === "chat" ? "messages" : "prompt";
    this.answers = request.choices;
    this.#maxTokens = request.maxTokens;
    this.#requiresCalls = request.kind === "chat" && request.toolChoice !== "auto";
    this.#schemaIn = request.kind === "chat" ? request.schemaIn : undefined;
    this.#holdsBack = request.sampling.stop?.some((text) => Buffer.byteLength(text) > stopBytesMax) ?? false;
    this.#reasons = rules.reasoning.mode !== "unavailable";
    this.#tokensMax = tokensMax;
    this.#imagesMax = rules.images?.max ?? 0;
    this.#writer = createWriter(request, requestId, Math.floor(nowMs / 1000));
    this.#indexes = new ChoiceIndexes(request.choices);
    this.#canonical = new CanonicalStream(soundAnswer(this.#writer, request.choices), {
      choices: request.choices,
      stopsAsToolCalls: request.kind === "chat" && request.stopsAsToolCalls,
      callIdPrefix: `call-${requestId}`,
      onUnknownFinish: (reason) => this.#onUnknownFinish(reason),
    });
  }

  soFar(): TokenCounts {
    return this.#usage?.soFar(this.#promptTokens) ?? noTokens;
  }

  async run(engine: EngineAccess): Promise<FinishedAnswer> {
    const { usagePerChoice, requiredCallsAreText } = engine.dialect;
    if (this.#requiresCalls && requiredCallsAreText) this.#requiredCalls = new RequiredCalls();
    this.#onUnknownFinish = (reason) => engine.onUnknownFinish(reason);
    const contextTokens = this.#windowTokens;
    this.#windowTokens = Math.min(contextTokens, engine.windowTokens ?? Infinity);
    const call = await this.#open(engine);
    this.#usage = new UsageCount({
      ...{ contextTokens, promptTokensMax: this.#promptTokensMax, maxTokens: this.#maxTokens },
      ...{ tokensMax: this.#tokensMax, choices: this.answers, usagePerChoice, reasons: this.#reasons },
      estimate: {
        promptTokens: () => this.#estimates.tokensOf(this.#rules, this.#size),
        tokensPerByte: () => this.#estimates.tokensPerByte(this.#rules),
      },
    });
    try {
      await this.#read(engine, call, this.#usage);
      if (!this.#isFull) call.finish();
    } finally {
      call.close();
    }
    const counts = this.#isFull ? this.#usage.soFar(this.#promptTokens) : this.#usage.finished();
    if (counts.source === "engine")
      this.#estimates.learn(this.#rules.id, this.#accountId, this.#size, counts.promptTokens);
    const shown = engine.showsCached ? counts : { ...counts, cachedTokens: undefined };
    return { counts, rest: new TextRest(this.#writer.closing(shown)) };
  }

  async #open(engine: EngineAccess): Promise<EngineCall> {
    const prompt = this.#prompt!;
    this.#prompt = undefined;
    const body = await prompt.say(engine);
    this.#promptTokensMax = promptTokensMax(body.length, this.#imagesMax);
    const call = await engine.ask(this.#path, body, this.#holdsBack);
    this.#body = body;
    if (call.status === 200) return call;
    try {
      throw await refusalOf(engine, call, this.#refused(body));
    } finally {
      call.close();
    }
  }

  /** Reads up to the terminator. Each chunk is parsed once and written once. */
  async #read(engine: EngineAccess, call: EngineCall, usage: UsageCount): Promise<void> {
    const parser = new SseParser();
    for (let bytes = await call.read(); bytes; bytes = await call.read()) {
      const events = parser.push(bytes);
      if (events.some(({ kind }) => kind === "data")) call.showLife();
      const wasSending = this.#canonical.hasOutput;
      let isTerminated: boolean;
      try {
        isTerminated = await this.#takeAll(engine, events, usage);
      } catch (error) {
        // The client may pay for the output before the fault, so it gets that output.
        if (wasSending) await this.#send(engine);
        throw error;
      }
      const waiting = this.#send(engine);
      if (waiting) await waiting;
      if (isTerminated || this.#isFull) return;
    }
    // Old versions of TGI send no terminator. If the body was cut off, `read` has thrown already.
    const isTerminated = await this.#takeAll(engine, parser.end(), usage);
    if (!isTerminated && !this.#isFull) {
      if (!this.#canonical.isWhole || this.#canonical.hasContinued)
        throw new EngineFault("unfinished", "the stream ended without its terminator");
      this.#canonical.end();
    }
    await this.#send(engine);
  }

  /** Takes events up to the terminator, or until the answer is full. Returns whether the stream was terminated. */
  async #takeAll(engine: EngineAccess, events: readonly SseEvent[], usage: UsageCount): Promise<boolean> {
    for (const event of events) {
      if (this.#isTerminator(event)) return true;
      const error = event.kind === "data" ? this.#take(engine.dialect, event.data, usage) : undefined;
      if (error !== undefined) await this.#takeError(engine, error);
      if (this.#isFull) return false;
    }
    return false;
  }

  #isTerminator(event: SseEvent): boolean {
    if (event.kind === "malformed") throw new EngineFault(malformedEvents[event.reason] ?? "bad framing", event.reason);
    if (event.kind === "comment" || event.data.trim() !== "[DONE]") return false;
    if (this.#canonical.isWhole) {
      this.#canonical.end();
      return true;
    }
    // An engine that ignores `n` does so for every client that asks for several answers.
    if (this.#canonical.wholeOfFewer !== undefined) throw answersError(this.#canonical.wholeOfFewer);
    throw new EngineFault("unfinished", "the terminator came before the end of the answer");
  }

  /** Takes one event. Returns the error that the engine reports in it, if any. */
  #take(dialect: Dialect, data: string, usage: UsageCount): unknown {
    const event = parseEvent(data);
    if (event === null) return undefined;
    const chunk = this.#indexes.read(dialect.readChunk(event));
    if (chunk.error !== undefined) return chunk.error;
    this.#checkFits(chunk);
    if (this.#goesBeyond(chunk, usage)) return this.#endFull();
    const calls = this.#requiredCalls;
    const { written } = this.#canonical;
    try {
      const read = calls ? { ...chunk, choices: chunk.choices.map((delta) => calls.read(delta)) } : chunk;
      this.#canonical.take(read, this.#isAtLimit(chunk));
    } catch (error) {
      if (this.#canonical.written > written) usage.take(chunk);
      if (error instanceof AnswerFull) return this.#endFull();
      throw error;
    }
    usage.take(chunk);
    this.#emptyEvents = this.#canonical.written > written ? 0 : this.#emptyEvents + 1;
    if (this.#emptyEvents > this.#windowTokens * this.answers + emptyEventsMax)
      throw new EngineFault("malformed", "too many events came without text");
    if (this.#canonical.hasOutput) this.#body = undefined;
    return undefined;
  }

  #endFull(): undefined {
    this.#isFull = true;
    this.#canonical.endAtLimit();
  }

  /**
   * Throws if the prompt plus `maxTokens` exceeds the window, which not every engine checks. Once output has begun,
   * only the prompt counts. An implausible length is ignored as a mistake of the engine.
   */
  #checkFits({ promptTokens }: EngineChunk): void {
    if (!isCount(promptTokens, this.#promptTokensMax)) return;
    this.#promptTokens = promptTokens;
    const outputTokens = this.#canonical.hasOutput ? 0 : (this.#maxTokens ?? 1);
    if (promptTokens + outputTokens > this.#windowTokens)
      throw contextExceeded(this.#windowTokens, promptTokens, { input: this.#input, maxTokens: this.#maxTokens });
  }

  #goesBeyond({ choices }: EngineChunk, usage: UsageCount): boolean {
    const roomTokens = this.#windowTokens - (this.#promptTokens ?? -Infinity);
    return choices.some((delta) => hasText(delta) && usage.lengthOf(delta.index) >= roomTokens);
  }

  /** Returns whether the answer has all tokens that it may have, or undefined if the engine does not report how many. */
  #isAtLimit({ usage }: EngineChunk): boolean | undefined {
    // With several answers, the count may be the sum of all.
    if (this.answers > 1 || !isCount(usage?.completion, Number.MAX_SAFE_INTEGER)) return undefined;
    const tokensMax = Math.min(this.#maxTokens ?? Infinity, this.#windowTokens - (this.#promptTokens ?? -Infinity));
    return usage.completion >= tokensMax;
  }

  /** Throws the error for the engine's error event, unless the answer is full. */
  async #takeError(engine: EngineAccess, event: unknown): Promise<void> {
    if (this.#body !== undefined) throw await eventRefusal(engine, event, this.#refused(this.#body));
    const fault = lateFault(engine, event);
    if (fault) throw fault;
    this.#endFull();
  }

  #refused(body: Buffer): Refused {
    return {
      ...{ windowTokens: this.#windowTokens, maxTokens: this.#maxTokens, input: this.#input, body },
      ...{ promptTokensMax: this.#promptTokensMax, schemaIn: this.#schemaIn },
    };
  }

  /** Sends nothing before the first output, because the engine may refuse until then and a refusal needs a status. */
  #send(engine: EngineAccess): Promise<void> | undefined {
    if (!this.#canonical.hasOutput) return undefined;
    engine.onOutput(this.#usage!.pieces);
    const pending = this.#writer.takePending();
    return pending === "" ? undefined : engine.writeEvents(pending);
  }
}

/** Faults for events that the parser refuses. */
const malformedEvents: Readonly<Record<string, EngineFaultReason>> = {
  "event too large": "too large",
  "invalid UTF-8": "malformed",
};

function createWriter(request: PromptFacts, requestId: string, created: number): AnswerWriter {
  const { model, choices, logprobs, includeUsage } = request;
  const options = { choices, logprobs, includeUsage };
  if (request.kind === "chat") {
    const envelope = { id: `chatcmpl-${requestId}`, created, model };
    return request.stream ? chatEvents(envelope, options) : chatBody(envelope, options);
  }
  const envelope = { id: `cmpl-${requestId}`, created, model };
  return request.stream ? completionEvents(envelope, options) : completionBody(envelope, options);
}
