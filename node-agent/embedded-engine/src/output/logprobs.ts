/** Log probabilities of the tokens of an answer, in both of OpenAI's shapes. */
import type { Token } from "node-llama-cpp";
import type { Vocabulary } from "../grammar/vocabulary.ts";

interface Logprob {
  readonly token: string;
  readonly logprob: number;
  /** UTF-8 bytes of the token's text. Null if it is only a part of a character. */
  readonly bytes: readonly number[] | null;
}

export interface TokenLogprob extends Logprob {
  readonly top_logprobs: readonly Logprob[];
}

/** Replaces minus infinity, which JSON cannot express. */
const logprobMin = -9999;

export function tokenLogprob(
  vocabulary: Vocabulary,
  token: Token,
  probabilities: ReadonlyMap<Token, number>,
  alternatives: number,
): TokenLogprob {
  const describe = (of: Token, probability: number): Logprob => {
    const text = vocabulary.textOf(of);
    const bytes = text.includes("\u{FFFD}") ? null : [...Buffer.from(text)];
    return { token: text, logprob: Math.max(Math.log(probability), logprobMin), bytes };
  };
  const top = mostProbable(probabilities, alternatives).map(([of, probability]) => describe(of, probability));
  return { ...describe(token, probabilities.get(token) ?? 0), top_logprobs: top };
}

/** Sorts the tokens, because the engine does not if nothing was sampled. */
function mostProbable(probabilities: ReadonlyMap<Token, number>, count: number): [Token, number][] {
  if (count === 0) return [];
  return [...probabilities].sort(([, a], [, b]) => b - a).slice(0, count);
}

/** The older shape, for text completions. `offset`: where the text of the first token begins. */
export function completionLogprobs(logprobs: readonly TokenLogprob[], offset: number) {
  let at = offset;
  return {
    tokens: logprobs.map(({ token }) => token),
    token_logprobs: logprobs.map(({ logprob }) => logprob),
    top_logprobs: logprobs.map(({ top_logprobs }) =>
      Object.fromEntries(top_logprobs.map(({ token, logprob }) => [token, logprob])),
    ),
    text_offset: logprobs.map(({ token }) => {
      const start = at;
      at += token.length;
      return start;
    }),
  };
}
