/** Log probabilities in both shapes of the OpenAI convention, without the fields that engines add. */
import { isObject } from "@weiche/shared/json.ts";
import { soundText } from "./sound-answer.ts";

export interface TokenLogprob {
  readonly token: unknown;
  readonly logprob: unknown;
  readonly bytes: unknown;
  readonly top_logprobs: readonly Omit<TokenLogprob, "top_logprobs">[];
}

/** Returns the tokens of a chat chunk, each with at most `alternatives` alternatives. */
export function chatLogprobs(logprobs: object, alternatives: number): TokenLogprob[] {
  const content = (logprobs as { content?: unknown }).content;
  if (!Array.isArray(content)) return [];
  return content.filter(isObject).map((entry) => {
    const top = Array.isArray(entry["top_logprobs"]) ? entry["top_logprobs"].filter(isObject) : [];
    return { ...plain(entry), top_logprobs: top.slice(0, alternatives).map(plain) };
  });
}

function plain({ token, logprob, bytes = null }: Record<string, unknown>) {
  return { token: soundToken(token), logprob, bytes };
}

function soundAlternatives(top: unknown): unknown {
  if (!isObject(top)) return top;
  return Object.fromEntries(Object.entries(top).map(([token, logprob]) => [soundText(token), logprob]));
}

function soundToken(token: unknown): unknown {
  return typeof token === "string" ? soundText(token) : token;
}

/** The older shape, which completions use. */
export interface CompletionLogprobs {
  readonly tokens: unknown[];
  readonly token_logprobs: unknown[];
  readonly top_logprobs: unknown[];
  readonly text_offset: unknown[];
}

/** Reads the older shape, or the shape of chats, which llama-server sends. `offset`: where the chunk's text begins. */
export function completionLogprobs(logprobs: object, alternatives: number, offset: number): CompletionLogprobs {
  const old = logprobs as Partial<CompletionLogprobs>;
  if (Array.isArray(old.tokens)) {
    const list = (value: unknown) => (Array.isArray(value) ? value : []);
    return {
      tokens: old.tokens.map(soundToken),
      token_logprobs: list(old.token_logprobs),
      top_logprobs: list(old.top_logprobs).map(soundAlternatives),
      text_offset: list(old.text_offset),
    };
  }
  let at = offset;
  const tokens = chatLogprobs(logprobs, alternatives);
  return {
    tokens: tokens.map(({ token }) => token),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    top_logprobs: tokens.map(({ top_logprobs: top }) => Object.fromEntries(top.map((t) => [t.token, t.logprob]))),
    text_offset: tokens.map(({ token }) => {
      const start = at;
      at += typeof token === "string" ? token.length : 0;
      return start;
    }),
  };
}
