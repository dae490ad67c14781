/** Counts the tokens of one answer: as reported, if plausible, otherwise by output pieces. It stores no text. */
import { endTokensMax } from "@weiche/shared/convention/prompt-tokens.ts";
import type { UsageSource } from "@weiche/shared/usage-record.ts";
import type { ChoiceDelta, EngineChunk, RawUsage } from "../engines/dialects/dialect.ts";

export interface TokenCounts {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens?: number;
  readonly cachedTokens?: number;
  /** The estimated part of both counts. If undefined, nothing was estimated. */
  readonly estimatedTokens?: number;
  readonly source: UsageSource;
}

export const noTokens: TokenCounts = { promptTokens: 0, completionTokens: 0, source: "counted" };

export interface UsageLimits {
  /** The model's context window, which limits the prompt and each answer. */
  readonly contextTokens: number;
  /** The largest plausible length of the prompt for its bytes. If undefined, the window applies. */
  readonly promptTokensMax?: number;
  /** The limit of each answer, including reasoning. If undefined, the rest of the window applies. */
  readonly maxTokens?: number;
  /** The router's limit of billable tokens, for the prompt and all answers. */
  readonly tokensMax: number;
  readonly choices: number;
  /** The engine sends a final usage for each answer, to be added up. If not, the last one covers all answers. */
  readonly usagePerChoice: boolean;
  /** The model can reason. Its reasoning tokens are then always reported, even if there are none. */
  readonly reasons: boolean;
  /** Estimates for counts that the engine does not report. */
  readonly estimate: Estimate;
}

interface Estimate {
  promptTokens(): number;
  tokensPerByte(): number;
}

/** The average token has fewer characters. An engine that sends larger pieces puts several tokens into one. */
const pieceCharactersMax = 32;
/** Some parsers and gateways split a token into several pieces, at most into its characters. */
const piecesPerTokenMax = 8;
const splitPiecesMax = 16;

interface Usage {
  readonly prompt: number;
  readonly completion: number;
  readonly reasoning?: number;
  readonly cached?: number;
}

interface ChoiceCount {
  pieces: number;
  characters: number;
  reasoningPieces: number;
  /** The engine's last usage while this answer grew. */
  running?: Usage;
  /** The number of pieces up to `running`. */
  runningPieces: number;
  reasoningTokens: number;
  hasFinished: boolean;
  /** `running` came with the finish reason or later. */
  isFinal: boolean;
}

export class UsageCount {
  readonly #limits: UsageLimits;
  readonly #choices: readonly ChoiceCount[];
  readonly #finals: Usage[] = [];
  pieces = 0;
  /** The number of pieces before the last entry of `#finals`. */
  #piecesBefore = 0;
  #prompt = 0;
  #isBelieved = true;

  constructor(limits: UsageLimits) {
    this.#limits = limits;
    this.#choices = Array.from({ length: limits.choices }, () => ({
      ...{ pieces: 0, characters: 0, runningPieces: 0, reasoningPieces: 0, reasoningTokens: 0 },
      ...{ hasFinished: false, isFinal: false },
    }));
  }

  take(chunk: EngineChunk): void {
    for (const delta of chunk.choices) {
      const choice = this.#choices[delta.index];
      if (!choice) continue;
      if (hasText(delta)) {
        choice.pieces++;
        choice.characters += charactersOf(delta);
        choice.isFinal = false;
        this.pieces++;
      }
      if (delta.reasoning) choice.reasoningPieces++;
      choice.hasFinished ||= delta.finish !== undefined;
    }
    if (chunk.usage) this.#takeUsage(chunk.usage, chunk);
  }

  #takeUsage(raw: RawUsage, { choices: [first] }: EngineChunk): void {
    // Some engines send zeros with each chunk except one.
    if (raw.prompt === 0 && raw.completion === 0) return;
    const choice = first && this.#choices[first.index];
    const before = choice ? choice.running : this.#beforeFinal();
    const usage = this.#plausible(raw);
    if (!usage || (before && (usage.prompt < before.prompt || usage.completion < before.completion))) {
      this.#isBelieved = false;
      if (usage) this.#prompt = Math.min(this.#prompt, usage.prompt);
      return;
    }
    if (this.#isBelieved) this.#prompt = Math.max(this.#prompt, usage.prompt);
    if (!choice) {
      this.#finals.push(usage);
      this.#piecesBefore = this.pieces;
      return;
    }
    choice.running = usage;
    choice.runningPieces = choice.pieces;
    choice.isFinal = choice.hasFinished;
    if (first.reasoning) choice.reasoningTokens = usage.completion;
  }

  #beforeFinal(): Usage | undefined {
    const { usagePerChoice, choices } = this.#limits;
    if (usagePerChoice && choices > 1) return undefined; // It cannot be assigned to one of the answers.
    const running = this.#choices.map((choice) => choice.running?.completion ?? 0);
    return this.#finals.at(-1) ?? { prompt: this.#prompt, completion: Math.max(...running) };
  }

  #plausible({ prompt, completion, reasoning, cached }: RawUsage): Usage | undefined {
    const { contextTokens, promptTokensMax = contextTokens } = this.#limits;
    const { maxTokens = Infinity, tokensMax, choices, usagePerChoice } = this.#limits;
    const answerTokensMax = Math.min(contextTokens, maxTokens + endTokensMax);
    const answers = usagePerChoice ? 1 : choices;
    if (!isCount(prompt, Math.min(contextTokens, promptTokensMax)) || !isCount(completion, answerTokensMax * answers))
      return undefined;
    if (prompt + completion > tokensMax) return undefined;
    return {
      ...{ prompt, completion },
      ...(isCount(reasoning, completion) && { reasoning }),
      ...(isCount(cached, prompt) && { cached }),
    };
  }

  /**
   * Returns the least number of tokens of one answer so far. With several answers the engine's count may cover all, so
   * pieces count.
   */
  lengthOf(index: number): number {
    const choice = this.#choices[index];
    if (!choice) return 0;
    return (this.#limits.choices === 1 ? this.#knownTokens(choice) : undefined) ?? choice.pieces;
  }

  /** Returns the engine's count of an answer so far, or undefined. Pieces after the last report count one each. */
  #knownTokens({ running, pieces, runningPieces }: ChoiceCount): number | undefined {
    if (!running || !this.#isBelieved || isTooFew(running.completion, runningPieces)) return undefined;
    return running.completion + pieces - runningPieces;
  }

  /** Returns the counts of a complete answer, for billing and for the client's `usage`. */
  finished(): TokenCounts {
    const final = this.#isBelieved ? this.#final() : undefined;
    if (!final || final.prompt === 0 || isTooFew(final.completion, this.pieces)) return this.#counted(() => undefined);
    const reasoning = final.reasoning ?? Math.min(this.#reasoning(), final.completion);
    return {
      promptTokens: final.prompt,
      completionTokens: final.completion,
      ...((reasoning > 0 || this.#limits.reasons) && { reasoningTokens: reasoning }),
      ...(final.cached !== undefined && { cachedTokens: final.cached }),
      source: "engine",
    };
  }

  #final(): Usage | undefined {
    const { usagePerChoice } = this.#limits;
    const running = this.#choices.map((choice) => (choice.isFinal ? choice.running : undefined));
    if (this.#finals.length === 0) return running.every((usage) => usage !== undefined) ? total(running) : undefined;
    if (usagePerChoice) return this.#finals.length === this.#choices.length ? total(this.#finals) : undefined;
    // Usage in mid-stream covers only output that came before it.
    return this.#piecesBefore === this.pieces ? this.#finals.at(-1) : undefined;
  }

  /**
   * Returns the counts of an answer that was cut off, up to the last output that was read. `promptTokens`: the engine's
   * separate report of the prompt.
   */
  soFar(promptTokens = 0): TokenCounts {
    return this.#counted((choice) => this.#knownTokens(choice), this.#prompt || (this.#hasBegun ? promptTokens : 0));
  }

  /** Whether the engine has read the prompt. Before its first output it may not have begun. */
  get #hasBegun(): boolean {
    return this.pieces > 0 || this.#choices.some(({ hasFinished }) => hasFinished);
  }

  /** Returns the counts. `known`: the engine's count of an answer; if undefined, its pieces count. */
  #counted(known: (choice: ChoiceCount) => number | undefined, prompt = this.#prompt): TokenCounts {
    const { tokensMax, contextTokens, estimate } = this.#limits;
    const of = (choice: ChoiceCount) => known(choice) ?? this.#tokensOf(choice);
    // Some engines report the sum of all answers with each of them. Then only the largest count is certain.
    const most = Math.max(...this.#choices.map(of));
    const seen = Math.max(
      most,
      Math.min(
        this.#sum(of),
        this.#sum((choice) => this.#tokensOf(choice)),
      ),
    );
    const isEstimated = prompt === 0 && this.#hasBegun;
    const promptTokens = Math.min(isEstimated ? estimate.promptTokens() : prompt, contextTokens, tokensMax);
    const completionTokens = Math.min(seen, tokensMax - promptTokens);
    const inPieces = this.#sum((choice) => (known(choice) === undefined ? this.#tokensOf(choice) - choice.pieces : 0));
    const estimatedTokens = (isEstimated ? promptTokens : 0) + Math.min(inPieces, completionTokens);
    const reasoning = Math.min(this.#reasoning(), completionTokens);
    return {
      promptTokens,
      completionTokens,
      ...((reasoning > 0 || this.#limits.reasons) && { reasoningTokens: reasoning }),
      ...(estimatedTokens > 0 && { estimatedTokens }),
      source: "counted",
    };
  }

  /** A piece counts as a token, unless the pieces are too large. Tool calls often come as one piece. */
  #tokensOf({ pieces, characters }: ChoiceCount): number {
    if (characters <= pieces * pieceCharactersMax) return pieces;
    return Math.max(pieces, Math.floor(characters * this.#limits.estimate.tokensPerByte()));
  }

  #reasoning(): number {
    return this.#sum((choice) => choice.reasoningTokens || choice.reasoningPieces);
  }

  #sum(of: (choice: ChoiceCount) => number): number {
    return this.#choices.reduce((sum, choice) => sum + of(choice), 0);
  }
}

/** Returns whether the answer is too long for this count, as if it counted only the last piece, or nothing. */
function isTooFew(tokens: number, pieces: number): boolean {
  return tokens === 0 ? pieces > 0 : pieces > tokens * piecesPerTokenMax + splitPiecesMax;
}

export function hasText({ reasoning, content, toolCalls }: ChoiceDelta): boolean {
  return Boolean(reasoning || content || toolCalls?.length);
}

function charactersOf({ reasoning = "", content = "", toolCalls = [] }: ChoiceDelta): number {
  const inCalls = toolCalls.reduce((sum, { name = "", arguments: json = "" }) => sum + name.length + json.length, 0);
  return reasoning.length + content.length + inCalls;
}

/** Adds up several answers to one prompt, which counts once. */
function total(usages: readonly Usage[]): Usage {
  const sum = (of: (usage: Usage) => number | undefined) =>
    usages.reduce<number | undefined>((so, usage) => {
      const more = of(usage);
      return so === undefined || more === undefined ? undefined : so + more;
    }, 0);
  return {
    prompt: Math.max(...usages.map((usage) => usage.prompt)),
    completion: sum((usage) => usage.completion)!,
    reasoning: sum((usage) => usage.reasoning),
    cached: usages[0]!.cached,
  };
}

export function isCount(value: unknown, max: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= max;
}
