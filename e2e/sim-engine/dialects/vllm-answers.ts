/** Writes answers like vLLM, as events of a stream and as one body. */
import { eachChoice, logprobsOf, textOf, usageOf, type Answer, type AnswerForm } from "../answer.ts";
import type { FinishReason } from "../request.ts";

const fingerprint = { system_fingerprint: "vllm-0.32.0-429dd8ad" };

/** The difference between chats and legacy completions: the entries of `choices`. */
interface ChoiceWords {
  token(index: number, at: number, finish?: FinishReason): object[];
  /** The end of an answer that comes without a token. */
  last(index: number, finish: FinishReason): object;
  whole(index: number, made: number, finish: FinishReason): object;
}

export function answerForm(answer: Answer): AnswerForm {
  const { request, createdSeconds: created, model } = answer;
  const isChat = request.kind === "chat";
  const words = isChat ? chatWords(answer) : completionWords(answer);
  const id = `${isChat ? "chatcmpl" : "cmpl"}-${answer.id}`;
  const object = isChat ? "chat.completion" : "text_completion";
  const head = { id, object: isChat ? `${object}.chunk` : object, created, model };
  /** `made` counts the tokens of this choice alone. */
  const event = (choice: object, made: number, tail: object = {}) => {
    const usage = request.continuousUsage ? usageOf(answer, made, reasoningDetails(answer, made)) : undefined;
    return { ...head, choices: [choice], usage, ...tail };
  };
  return {
    opening() {
      if (!isChat) return [];
      const role = { delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null };
      return eachChoice(answer, (index) => event({ index, ...role }, 0, { prompt_token_ids: null, prompt_text: null }));
    },
    token: (index, at, finish) => words.token(index, at, finish).map((choice) => event(choice, at + 1)),
    finish: (reason) => eachChoice(answer, (index) => event(words.last(index, reason), madeByEach(answer))),
    closing() {
      const usage = usageOf(answer, undefined, reasoningDetails(answer));
      return request.includeUsage && usage !== undefined ? [{ ...head, choices: [], usage, ...fingerprint }] : [];
    },
    whole(made, finish) {
      const details = { prompt_tokens_details: null, completion_tokens_details: null, ...reasoningDetails(answer) };
      return {
        ...{ ...head, object, choices: eachChoice(answer, (index) => words.whole(index, made, finish)) },
        ...{ service_tier: null, ...fingerprint, usage: usageOf(answer, undefined, details) ?? null },
        ...(isChat && { prompt_logprobs: null, prompt_token_ids: null, prompt_text: null }),
        ...{ kv_transfer_params: null, ec_transfer_params: null, metrics: null },
      };
    },
  };
}

function chatWords(answer: Answer): ChoiceWords {
  const { script, body } = answer.request;
  const choice = (index: number, delta: object, finish?: FinishReason, logprobs: object | null = null) => {
    const stop = finish ? { finish_reason: finish, stop_reason: null } : { finish_reason: null };
    return { index, delta, logprobs, ...stop, token_ids: null };
  };
  const idOf = (index: number, call: number) => `chatcmpl-tool-${answer.id}-${index}-${call}`;
  return {
    token(index, at, finish) {
      const { kind, text, call = 0, opens } = script.piece(at);
      const logprobs = logprobsOf(answer, text);
      if (kind === "reasoning") return [choice(index, { reasoning: text }, finish, logprobs)];
      // An end token has no text. An end at a limit comes with the last text.
      const isApart = finish !== undefined && (kind === "arguments" || finish !== "length");
      const end = isApart ? [choice(index, {}, finish)] : [];
      if (kind === "content") return [choice(index, { content: text }, isApart ? undefined : finish, logprobs), ...end];
      const named = { id: idOf(index, call), type: "function", index: call, function: { name: script.tools[call] } };
      const first = opens ? [choice(index, { content: null, tool_calls: [named] })] : [];
      const piece = { content: null, tool_calls: [{ index: call, function: { arguments: text } }] };
      return [...first, choice(index, piece, undefined, logprobs), ...end];
    },
    last: (index, finish) => choice(index, { content: "" }, finish),
    whole(index, made, finish) {
      const { content, reasoning, calls } = textOf(answer, made);
      const isCall = script.tools.length > 0;
      const forced = body["tool_choice"] !== undefined && body["tool_choice"] !== "auto";
      const message = {
        ...{ role: "assistant", content: isCall ? (forced ? "" : null) : content || null },
        ...{ refusal: null, annotations: null, audio: null, function_call: null },
        tool_calls: isCall
          ? calls.map((called, at) => ({ id: idOf(index, at), type: "function", function: called }))
          : undefined,
        reasoning: script.reasoning > 0 ? reasoning : null,
      };
      return {
        ...{ index, message, logprobs: body["logprobs"] ? { content: [] } : null, finish_reason: finish },
        ...{ stop_reason: null, token_ids: null, routed_experts: null },
      };
    },
  };
}

function completionWords(answer: Answer): ChoiceWords {
  const choice = (index: number, text: string, finish: FinishReason | null, tail: object) => {
    return { index, text, logprobs: null, finish_reason: finish, stop_reason: null, ...tail };
  };
  const piece = { prompt_token_ids: null, token_ids: null };
  const body = { token_ids: null, prompt_logprobs: null, prompt_token_ids: null, routed_experts: null };
  return {
    token: (index, at, finish) => [choice(index, answer.request.script.piece(at).text, finish ?? null, piece)],
    last: (index, finish) => choice(index, "", finish, piece),
    whole: (index, made, finish) => choice(index, textOf(answer, made).content, finish, body),
  };
}

/** Number of tokens of each choice so far. */
function madeByEach({ entry, request }: Answer): number {
  return Math.floor(entry.generated / request.choices);
}

/**
 * Part of every chat, with or without reasoning. `made` counts the tokens of one choice, or of all choices if
 * undefined.
 */
function reasoningDetails(answer: Answer, made?: number): object {
  const { script, choices, kind } = answer.request;
  if (kind !== "chat") return {};
  const ofOne = Math.min(script.reasoning, made ?? madeByEach(answer));
  return { completion_tokens_details: { reasoning_tokens: made === undefined ? ofOne * choices : ofOne } };
}
