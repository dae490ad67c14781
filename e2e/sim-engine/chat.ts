/** Starts the generation of chats and legacy completions, and measures it. */
import type { ServerResponse } from "node:http";
import type { Answer, EngineFigures } from "./answer.ts";
import { Generation } from "./generation.ts";
import type { LedgerEntry } from "./ledger.ts";
import type { EngineFacts } from "./engine-facts.ts";
import type { EngineParts } from "./parts.ts";
import { PromptSlots, type TakenSlot } from "./prompt-slots.ts";
import { refuse, refuseInStream, replyWrong } from "./reply.ts";
import type { SimRequest } from "./request.ts";
import { Sink } from "./sink.ts";

export class Chats {
  readonly #parts: EngineParts;
  readonly #slots: PromptSlots | undefined;
  readonly #counts = {
    ...{ promptTokens: 0, cachedTokens: 0, generatedTokens: 0, endedTokens: 0 },
    finished: new Map<string, number>(),
  };
  #lastResultMs = 0;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    const { dialect, facts } = parts;
    this.#slots = dialect.keepsPromptsInSlots ? new PromptSlots(facts.maxRunning, facts.savesPrompts) : undefined;
  }

  serve(request: SimRequest, response: ServerResponse): void {
    const { dialect, facts, clock, core, faults, ledger, wheel } = this.#parts;
    const { body, id, kind, promptTokens, script, steering, stream } = request;
    for (const line of dialect.prints?.(body) ?? []) this.#parts.print(line);
    const refusal = dialect.check(request, facts);
    if (refusal) {
      const isLate = refusal.late || steering.fault?.kind === "late-refusal" || faults.has("late-refusal");
      if (isLate && stream) return refuseInStream(new Sink(response), dialect, refusal);
      return refuse(response, refusal);
    }
    const fault = steering.fault ?? faults.take("request", script.length);
    if (fault && replyWrong(fault, this.#parts, stream, response)) return;
    const path = kind === "chat" ? "/v1/chat/completions" : "/v1/completions";
    const opened = { id, path, prompt_tokens: promptTokens, fault: fault?.kind, mark: steering.mark };
    const entry = ledger.open(opened, body);
    const slot = this.#takeSlot(request, entry);
    const createdSeconds = Math.floor(clock.now() / 1000);
    const answer: Answer = {
      request,
      id,
      createdSeconds,
      model: adapterOf(body, facts) ?? facts.model,
      entry,
      fault: fault?.kind,
    };
    const generation = new Generation({
      ...{ parts: this.#parts, answer, form: dialect.form(answer), sink: new Sink(response), fault },
      ttftMs: steering.ttftMs ?? facts.ttftMs + (facts.ttftPerThousandMs * promptTokens) / 1_000,
      itlMs: () => steering.itlMs ?? this.#stepMs(),
      made: (tokens) => this.#made(tokens),
      ended: (one, reason) => this.#ended(one, reason),
    });
    this.#counts.promptTokens += promptTokens;
    const { socket } = response;
    response.once("close", () => {
      slot?.release();
      if (dialect.closesAfterStream && stream) socket?.destroySoon();
      if (dialect.noticesLeaversLate && !generation.producing) this.#noticeLate(wheel.nowMs, generation);
      else generation.callerLeft();
    });
    core.submit(generation);
  }

  #stepMs(): number {
    const { core, facts } = this.#parts;
    const { itlMs, itlPerRunningMs, itlPerThousandMs } = facts;
    const contextMs = itlPerThousandMs === 0 ? 0 : (itlPerThousandMs * core.contextTokens()) / 1_000;
    return itlMs + itlPerRunningMs * core.state().running + contextMs;
  }

  #takeSlot({ body, promptTokens }: SimRequest, entry: LedgerEntry): TakenSlot | undefined {
    const slot = this.#slots?.take(JSON.stringify(body["messages"] ?? body["prompt"]), body["cache_prompt"] !== false);
    if (!slot) return undefined;
    // The last token is always read again, because the answer depends on it.
    entry.cached_tokens = Math.min(promptTokens - 1, Math.floor(promptTokens * slot.share));
    entry.restored = slot.isRestored;
    this.#counts.cachedTokens += entry.cached_tokens;
    return slot;
  }

  #made(tokens: number): void {
    this.#counts.generatedTokens += tokens;
    this.resultSeen();
  }

  #ended({ entry }: Answer, reason: string): void {
    this.#counts.endedTokens += entry.generated;
    this.#counts.finished.set(reason, (this.#counts.finished.get(reason) ?? 0) + 1);
  }

  /** Every result of the engine delays the detection of clients that left. */
  resultSeen(): void {
    this.#lastResultMs = this.#parts.wheel.nowMs;
  }

  figures(): Omit<EngineFigures, "served"> {
    const { core, facts } = this.#parts;
    const { running, waiting } = core.state();
    return { ...this.#counts, running, waiting, sleeping: core.sleepState, maxRunning: facts.maxRunning };
  }

  /** Notices a client that left after a second without a result of the engine. */
  #noticeLate(sinceMs: number, generation: Generation): void {
    const { wheel } = this.#parts;
    const quietSinceMs = Math.max(sinceMs, this.#lastResultMs);
    if (wheel.nowMs - quietSinceMs >= 1_000) return generation.callerLeft();
    wheel.add(quietSinceMs + 1_000, { due: () => this.#noticeLate(sinceMs, generation) });
  }
}

/** Returns the adapter that the request names, or undefined for the model itself. */
function adapterOf(body: Readonly<Record<string, unknown>>, { adapters }: EngineFacts): string | undefined {
  return adapters.find((adapter) => adapter === body["model"]);
}
