/** Generates one answer, token by token, on a sequence of the pool. */
import type { LlamaContextSequence, SequenceEvaluateOptions, Token } from "node-llama-cpp";
import type { Sampling } from "./request/generation-request.ts";
import type { Engine } from "./model.ts";

interface Generation {
  readonly promptTokens: readonly Token[];
  readonly cacheSalt: string | undefined;
  readonly maxTokens: number;
  /** No token ends the answer before `maxTokens`. */
  readonly ignoresEnd: boolean;
  readonly options: SequenceEvaluateOptions;
  readonly probabilities: boolean;
  /** Gets the number of prompt tokens that were already in the context. Called once, before the first token. */
  readonly onStart: (cachedTokens: number) => void;
}

/** Yields tokens up to the one that ends the answer (`end`), or `maxTokens`. Rejects with the signal's reason. */
export async function* generate(engine: Engine, generation: Generation, signal: AbortSignal) {
  const pool = engine.sequences!;
  const sequence = await pool.acquire(signal, (free) => mostAlike(free, generation));
  try {
    const rest = await prefill(engine, sequence, generation, signal);
    const metadata = { probabilities: generation.probabilities as true };
    const tokens = sequence.evaluateWithMetadata(rest, metadata, { ...generation.options, yieldEogToken: true });
    let generated = 0;
    for await (const { token, probabilities } of tokens) {
      engine.metrics.generatedTokens += 1;
      generated += 1;
      signal.throwIfAborted();
      const end = !generation.ignoresEnd && engine.model.isEogToken(token);
      yield { token, end, probabilities };
      if (end || generated === generation.maxTokens) return;
      signal.throwIfAborted();
    }
  } finally {
    pool.release(sequence);
  }
}

/** The salt of the tokens in a sequence. If undefined, the sequence is empty or every request may use its tokens. */
const salts = new WeakMap<LlamaContextSequence, string | undefined>();

/** Returns how many tokens at the beginning of the prompt the sequence contains and the request may use. */
function alikeTokens(sequence: LlamaContextSequence, { promptTokens, cacheSalt }: Generation): number {
  if (salts.get(sequence) !== cacheSalt) return 0;
  return sequence.compareContextTokens([...promptTokens]).firstDifferentIndex;
}

/** Returns the sequence that contains most of the prompt, and among equals the one unused for longest. */
function mostAlike(free: readonly LlamaContextSequence[], generation: Generation): LlamaContextSequence {
  let best = { sequence: free[0]!, alike: -1 };
  for (const sequence of free) {
    const alike = alikeTokens(sequence, generation);
    if (alike > best.alike) best = { sequence, alike };
  }
  return best.sequence;
}

/**
 * Evaluates the prompt up to its last part, in small steps, so that a leaving client is noticed soon. Tokens that the
 * sequence already contains are kept. Returns the last part.
 */
async function prefill(
  engine: Engine,
  sequence: LlamaContextSequence,
  generation: Generation,
  signal: AbortSignal,
): Promise<Token[]> {
  const tokens = [...generation.promptTokens];
  // The last token is always evaluated, because the answer follows from it.
  const alike = Math.min(alikeTokens(sequence, generation), tokens.length - 1);
  // Some models (sliding window, recurrent) cannot go back to any position. Restoring one would cost a prefill of its
  // own.
  const kept = sequence.getRestoreToPrefixIndexEvaluationSize(alike) > 0 ? 0 : alike;
  await sequence.eraseContextTokenRanges([{ start: kept, end: sequence.nextTokenIndex }]);
  salts.set(sequence, generation.cacheSalt);
  let position = sequence.nextTokenIndex;
  engine.metrics.promptTokens += position;
  engine.metrics.cachedTokens += position;
  generation.onStart(position);
  for (; tokens.length - position > engine.prefillTokens; position += engine.prefillTokens) {
    signal.throwIfAborted();
    await sequence.evaluateWithoutGeneratingNewTokens(tokens.slice(position, position + engine.prefillTokens));
    engine.metrics.promptTokens += engine.prefillTokens;
  }
  signal.throwIfAborted();
  engine.metrics.promptTokens += tokens.length - position;
  return tokens.slice(position);
}

/** The most tokens that penalties take into account. */
const penalisedTokensMax = 4_096;

/** Returns the options for sampling. Each choice of a request has its own seed. `generated`: the answer so far. */
export function samplingOptions(
  sampling: Sampling,
  seed: number,
  generated: readonly Token[],
): SequenceEvaluateOptions {
  const { temperature, topP, topK, minP, presencePenalty, frequencyPenalty } = sampling;
  const penalised = presencePenalty !== 0 || frequencyPenalty !== 0;
  return {
    temperature,
    topP,
    topK,
    minP,
    seed,
    ...(penalised && {
      repeatPenalty: {
        penalty: 1,
        presencePenalty,
        frequencyPenalty,
        maxPunishTokens: penalisedTokensMax,
        punishTokens: () => generated.slice(-penalisedTokensMax),
      },
    }),
  };
}
