/** One growing answer of a request: the parsed output and the counts. */
import { LlamaGrammar, LlamaGrammarEvaluationState, type Token } from "node-llama-cpp";
import { generate, samplingOptions } from "../generate.ts";
import type { GenerationRequest, Sampling } from "../request/generation-request.ts";
import { tokenLogprob, type TokenLogprob } from "./logprobs.ts";
import type { Engine } from "../model.ts";
import type { OutputEvent } from "./output-event.ts";
import { OutputParser, type OutputFormat } from "./output-parser.ts";
import { invalid } from "../request/request-error.ts";

interface RenderedPrompt {
  readonly promptTokens: readonly Token[];
  readonly format: OutputFormat;
  /** Applies after the end of the reasoning. */
  readonly grammar: LlamaGrammar | undefined;
}

export interface AnswerPlan extends RenderedPrompt {
  readonly cacheSalt: string | undefined;
  /** If undefined, the context is the limit. */
  readonly maxTokens: number | undefined;
  readonly ignoresEnd: boolean;
  readonly sampling: Sampling;
  readonly seed: number;
  /** The number of alternatives to show of each token. If undefined, no log probabilities. */
  readonly logprobs: number | undefined;
}

/** Returns a plan for each requested answer, with its own seed. `randomSeed` applies if the request has none. */
export function plansOf(
  request: GenerationRequest & { readonly logprobs?: number | undefined },
  prompt: RenderedPrompt,
  randomSeed: number,
): AnswerPlan[] {
  const { cacheSalt, maxTokens, ignoresEnd, sampling, logprobs, choices } = request;
  const { seed = randomSeed } = sampling;
  const plan = { ...prompt, cacheSalt, maxTokens, ignoresEnd, sampling, logprobs };
  return Array.from({ length: choices }, (_, index) => ({ ...plan, seed: (seed + index) >>> 0 }));
}

export interface Counts {
  /** Prompt tokens that an earlier request left in the context. */
  cachedTokens: number;
  /** All sampled tokens, including the one that ends the answer. */
  completionTokens: number;
  /** Completion tokens spent on reasoning, including its tags. */
  reasoningTokens: number;
}

export const noCounts: Readonly<Counts> = { cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 };

export interface AnswerPart {
  readonly events: readonly OutputEvent[];
  /** Log probabilities of the tokens whose content is in the events. */
  readonly logprobs: readonly TokenLogprob[];
  readonly counts: Readonly<Counts>;
  /** Only in the last part. */
  readonly finish?: "stop" | "length" | "tool_calls";
}

/** Yields one part for each token. The last one has a `finish`. */
async function* answer(engine: Engine, plan: AnswerPlan, signal: AbortSignal): AsyncGenerator<AnswerPart, void> {
  const { promptTokens, cacheSalt, ignoresEnd, logprobs: alternatives } = plan;
  const room = engine.contextTokens - promptTokens.length;
  const maxTokens = Math.min(plan.maxTokens ?? room, room);
  const parser = new OutputParser(plan.format);
  const decoder = engine.vocabulary.decoder(promptTokens);
  const generated: Token[] = [];
  const counts = { ...noCounts };
  const options = { ...samplingOptions(plan.sampling, plan.seed, generated), ...grammarOptions(engine, plan, parser) };
  const generation = {
    ...{ promptTokens, cacheSalt, maxTokens, ignoresEnd, options, probabilities: alternatives !== undefined },
    onStart: (cached: number) => void (counts.cachedTokens = cached),
  };
  let logprobs: TokenLogprob[] = [];
  for await (const { token, end, probabilities } of generate(engine, generation, signal)) {
    generated.push(token);
    counts.completionTokens += 1;
    const thought = parser.thinking;
    const events = end ? [] : parser.push(decoder.push(token));
    if (thought || parser.thinking) counts.reasoningTokens += 1;
    if (probabilities && !end) logprobs.push(tokenLogprob(engine.vocabulary, token, probabilities, alternatives!));
    // Only content has log probabilities.
    if (thought || parser.thinking || parser.inCall) logprobs = [];
    const ended = end || parser.stopped;
    const last = ended || generated.length === maxTokens;
    if (last) events.push(...parser.end());
    const shown = events.some((event) => event.kind === "content") ? logprobs.splice(0) : [];
    const finish = ended ? (parser.toolCalls > 0 ? "tool_calls" : "stop") : "length";
    yield { events, logprobs: shown, counts: { ...counts }, ...(last && { finish }) };
    if (last) return;
  }
  throw new Error("llama.cpp stopped in the middle of an answer");
}

/** Runs several answers at once. If one fails, the others end too. */
export async function answerAll(
  engine: Engine,
  plans: readonly AnswerPlan[],
  signal: AbortSignal,
  take: (index: number, part: AnswerPart) => void | Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const ended = AbortSignal.any([signal, failed.signal]);
  const run = async (plan: AnswerPlan, index: number) => {
    try {
      for await (const part of answer(engine, plan, ended)) await take(index, part);
    } catch (error) {
      failed.abort(error);
    }
  };
  await Promise.all(plans.map(run));
  ended.throwIfAborted();
}

/** Accepts any text and never ends, because llama.cpp has no other way to forbid the end of an answer. */
const endless = String.raw`root ::= [^\x00]* "\x00"`;

/** Applies the grammar to the answer, not to the reasoning before it. An answer must follow the reasoning. */
function grammarOptions(engine: Engine, { grammar }: AnswerPlan, parser: OutputParser) {
  if (grammar === undefined) return {};
  const begin = (of: LlamaGrammar) => new LlamaGrammarEvaluationState({ model: engine.model, grammar: of });
  const thought = begin(compileGrammar(engine, endless));
  const bound = begin(grammar);
  return { grammarEvaluationState: () => (parser.thinking ? thought : bound) };
}

export function compileGrammar(engine: Engine, text: string): LlamaGrammar {
  try {
    return new LlamaGrammar(engine.llama, { grammar: text });
  } catch {
    throw invalid("the JSON schema cannot be turned into a grammar");
  }
}
