/** Chats and legacy completions: from a request that was read to a generation that runs, and what is measured on the way. */
import type { ServerResponse } from "node:http";
import type { Answer, EngineFigures } from "./answer.ts";
import { Generation, type GenerationHost } from "./generation.ts";
import type { LedgerEntry } from "./ledger.ts";
import type { EngineParts } from "./parts.ts";
import { PromptSlots, type TakenSlot } from "./prompt-slots.ts";
import { refuseLate, reply, replyWrong } from "./reply.ts";
import type { SimRequest } from "./request.ts";
import { Sink } from "./sink.ts";

export class Chats {
  readonly #parts: EngineParts;
  readonly #host: GenerationHost;
  readonly #slots: PromptSlots | undefined;
  readonly #counts = {
    promptTokens: 0,
    cachedTokens: 0,
    generatedTokens: 0,
    endedTokens: 0,
    finished: new Map<string, number>(),
  };
  #lastResultMs = 0;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    const { dialect, facts, wheel, ledger, core } = parts;
    this.#slots = dialect.keepsPromptsInSlots ? new PromptSlots(facts.maxRunning, facts.savesPrompts) : undefined;
    this.#host = {
      wheel,
      ledger,
      terminatesErrors: dialect.terminatesErrors,
      pingMs: dialect.pingMs,
      eventOf: (refusal) => dialect.eventOf(refusal),
      internalError: () => dialect.refusal("internal"),
      deadError: () => dialect.refusal("dead"),
      made: (tokens) => {
        this.#counts.generatedTokens += tokens;
        this.resultSeen();
      },
      leave: (work) => core.leave(work),
      ended: (answer, reason) => {
        this.#counts.endedTokens += answer.entry.generated;
        this.#counts.finished.set(reason, (this.#counts.finished.get(reason) ?? 0) + 1);
      },
      crash: () => parts.crash(),
      coreDies: () => parts.coreDies(),
    };
  }

  serve(request: SimRequest, response: ServerResponse): void {
    const { dialect, facts, clock, core, faults, ledger } = this.#parts;
    for (const line of dialect.prints?.(request.body) ?? []) this.#parts.print(line);
    const refusal = dialect.check(request, facts);
    if (refusal) {
      const isLate = refusal.late || request.steering.fault?.kind === "late-refusal" || faults.has("late-refusal");
      if (isLate && request.stream) return refuseLate(response, dialect, refusal);
      return reply(response, refusal.status, refusal.body);
    }
    const fault = request.steering.fault ?? faults.take("request", request.script.length);
    if (fault && replyWrong(fault, this.#parts, request.stream, response)) return;
    const path = request.kind === "chat" ? "/v1/chat/completions" : "/v1/completions";
    const entry = ledger.open(request.id, path, request.promptTokens, request.body, {
      fault: fault?.kind,
      mark: request.steering.mark,
    });
    const slot = this.#takeSlot(request, entry);
    const answer: Answer = {
      request,
      id: request.id,
      createdSeconds: Math.floor(clock.now() / 1000),
      model: facts.model,
      entry,
      ...(fault ? { fault: fault.kind } : {}),
    };
    const pace = { ttftMs: request.steering.ttftMs ?? facts.ttftMs, itlMs: request.steering.itlMs ?? facts.itlMs };
    const generation = new Generation(this.#host, answer, dialect.form(answer), new Sink(response), pace, fault);
    this.#counts.promptTokens += request.promptTokens;
    const { socket } = response;
    response.once("close", () => {
      slot?.release();
      if (dialect.closesAfterStream && request.stream) socket?.destroySoon();
      if (dialect.noticesLeaversLate && !generation.producing) this.#noticeLate(this.#parts.wheel.nowMs, generation);
      else generation.callerLeft();
    });
    core.submit(generation);
  }

  #takeSlot({ body, promptTokens }: SimRequest, entry: LedgerEntry): TakenSlot | undefined {
    const slot = this.#slots?.take(JSON.stringify(body["messages"] ?? body["prompt"]), body["cache_prompt"] !== false);
    if (!slot) return undefined;
    // The last token is always read: the answer follows from it.
    entry.cached_tokens = Math.min(promptTokens - 1, Math.floor(promptTokens * slot.share));
    entry.restored = slot.isRestored;
    this.#counts.cachedTokens += entry.cached_tokens;
    return slot;
  }

  /** Somebody in the engine got a result: puts off the detection of leavers. */
  resultSeen(): void {
    this.#lastResultMs = this.#parts.wheel.nowMs;
  }

  figures(): Omit<EngineFigures, "served"> {
    const { core, facts } = this.#parts;
    const { running, waiting } = core.state();
    return { ...this.#counts, running, waiting, sleeping: core.sleepState, maxRunning: facts.maxRunning };
  }

  /** Looked at only once nobody in the engine has got a result for a second. */
  #noticeLate(sinceMs: number, generation: Generation): void {
    const { wheel } = this.#parts;
    const quietSinceMs = Math.max(sinceMs, this.#lastResultMs);
    if (wheel.nowMs - quietSinceMs >= 1_000) return generation.callerLeft();
    wheel.add(quietSinceMs + 1_000, { due: () => this.#noticeLate(sinceMs, generation) });
  }
}
