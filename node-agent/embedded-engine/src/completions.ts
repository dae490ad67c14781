/** `POST /v1/completions`: continues a text without the chat template. */
import { answerAll, noCounts, plansOf, type AnswerPart, type AnswerPlan } from "./output/answer.ts";
import { envelopeOf, EventStream, sendJson, type Call } from "./request/call.ts";
import { generatesNothing } from "./chat-completions.ts";
import { engineFields, readGeneration, type GenerationRequest } from "./request/generation-request.ts";
import { completionLogprobs, type TokenLogprob } from "./output/logprobs.ts";
import { contextExceeded } from "./request/request-error.ts";
import { readTexts, type Text } from "./texts.ts";
import { usageOf } from "./output/usage.ts";
import { bodyReader } from "@weiche/shared/convention/body-reader.ts";
import { completionSchema } from "@weiche/shared/convention/completions.ts";
import { invalid } from "@weiche/shared/errors.ts";
import type { Json } from "@weiche/shared/json.ts";
import type { Token } from "node-llama-cpp";
import { Type } from "typebox";

interface CompletionRequest extends GenerationRequest {
  readonly prompts: readonly Text[];
  /** The number of alternatives to show of each token. If undefined, no log probabilities. */
  readonly logprobs?: number;
}

/** OpenAI's default, which only this path has. */
const maxTokensDefault = 16;
const promptsMax = 128;

export async function completions(call: Call): Promise<void> {
  const request = readCompletionRequest(call.body);
  const plans = await planCompletions(call, request);
  const envelope = envelopeOf(call, "cmpl", "text_completion");
  const answer = new CompletionAnswer(plans, request);
  if (request.stream) {
    const events = new EventStream(call);
    await answerAll(call.engine, plans, call.signal, async (index, part) => {
      const choice = answer.add(index, part);
      const silent = choice.text === "" && !part.finish;
      if (silent && !request.continuousUsage) return;
      const usage = request.continuousUsage ? { usage: answer.usage() } : {};
      await events.send({ ...envelope, choices: [choice], ...usage });
    });
    if (request.includeUsage) await events.send({ ...envelope, choices: [], usage: answer.usage() });
    events.end();
  } else {
    await answerAll(call.engine, plans, call.signal, (index, part) => void answer.add(index, part));
    sendJson(call.response, 200, { ...envelope, choices: answer.choices(), usage: answer.usage() });
  }
}

const completionBody = bodyReader(Type.Object({ ...engineFields, logprobs: completionSchema.properties.logprobs }));

function readCompletionRequest(given: unknown): CompletionRequest {
  const body = completionBody.check(given);
  const { prompt, suffix, echo } = given as Json;
  if (suffix != null) throw invalid("suffix", "is not supported");
  if (echo != null && echo !== false) throw invalid("echo", "is not supported");
  const generation = readGeneration(body);
  return {
    ...generation,
    maxTokens: generation.maxTokens ?? maxTokensDefault,
    prompts: readTexts(prompt, "prompt", promptsMax),
    logprobs: body.logprobs ?? undefined,
  };
}

async function planCompletions(call: Call, request: CompletionRequest): Promise<AnswerPlan[]> {
  if (call.engine.sequences === undefined) throw generatesNothing();
  const plans: AnswerPlan[] = [];
  const randomSeed = call.surroundings.randomSeed();
  const format = { startsThinking: false, tools: "none", stop: request.stop } as const;
  for (const prompt of request.prompts) {
    const promptTokens = await encodePrompt(call, prompt);
    plans.push(...plansOf(request, { promptTokens, format, grammar: undefined }, randomSeed));
  }
  return plans;
}

async function encodePrompt({ engine, signal }: Call, prompt: Text): Promise<Token[]> {
  if (typeof prompt !== "string") {
    if (prompt.length >= engine.contextTokens) throw contextExceeded(prompt.length, engine.contextTokens);
    return engine.vocabulary.tokens(prompt, "prompt");
  }
  return await engine.vocabulary.encodePrompt(prompt, engine.contextTokens, signal);
}

class CompletionAnswer {
  readonly #plans: readonly AnswerPlan[];
  readonly #request: CompletionRequest;
  readonly #parts: {
    text: string;
    logprobs: TokenLogprob[];
    counts: AnswerPart["counts"];
    finish: AnswerPart["finish"];
  }[];

  constructor(plans: readonly AnswerPlan[], request: CompletionRequest) {
    this.#plans = plans;
    this.#request = request;
    this.#parts = plans.map(() => ({ text: "", logprobs: [], counts: noCounts, finish: undefined }));
  }

  /** Takes a part and returns it as the choice of a chunk. */
  add(index: number, part: AnswerPart) {
    const collected = this.#parts[index]!;
    const text = part.events.map((event) => (event.kind === "content" ? event.text : "")).join("");
    const choice = this.#choice(index, { ...part, text }, collected.text.length);
    collected.text += text;
    collected.logprobs.push(...part.logprobs);
    collected.counts = part.counts;
    collected.finish = part.finish;
    return choice;
  }

  choices() {
    return this.#parts.map((part, index) => this.#choice(index, part, 0));
  }

  usage() {
    const prompts = this.#plans.filter((_, index) => index % this.#request.choices === 0);
    return usageOf(
      prompts.reduce((sum, plan) => sum + plan.promptTokens.length, 0),
      this.#parts.map(({ counts }) => counts),
    );
  }

  #choice(
    index: number,
    { text, logprobs, finish }: Pick<AnswerPart, "logprobs" | "finish"> & { text: string },
    offset: number,
  ) {
    const shown = this.#request.logprobs === undefined ? null : completionLogprobs(logprobs, offset);
    return { index, text, logprobs: shown, finish_reason: finish ?? null };
  }
}
