/** How vLLM words an answer: as the events of a stream, and as one body. */
import { eachChoice, logprobsText, textOf, usageText, type Answer, type AnswerForm } from "../answer.ts";
import type { FinishReason } from "../request.ts";

export function chatForm(answer: Answer): AnswerForm {
  const { request } = answer;
  const { script } = request;
  const head = `{"id":"chatcmpl-${answer.id}","object":"chat.completion.chunk","created":${answer.createdSeconds},"model":${JSON.stringify(answer.model)},"choices":[`;
  /** `made`: of this choice alone. */
  const event = (inner: string, made: number, tail = "") => {
    const usage = request.continuousUsage ? usageText(answer, made, reasoningDetails(answer, made)) : undefined;
    return `${head}${inner}]${usage === undefined ? "" : `,"usage":${usage}`}${tail}}`;
  };
  const choice = (index: number, delta: string, finish?: FinishReason, logprobs = "null") =>
    `{"index":${index},"delta":${delta},"logprobs":${logprobs},"finish_reason":${finish ? `"${finish}","stop_reason":null` : "null"},"token_ids":null}`;
  const toolHead = (index: number, call: number) =>
    `"content":null,"tool_calls":[{"id":"chatcmpl-tool-${answer.id}-${index}-${call}","type":"function","index":${call},"function":{"name":${JSON.stringify(script.tools[call])}}}]}`;
  return {
    opening: () =>
      eachChoice(answer).map((index) => {
        const delta = '{"role":"assistant","content":""}';
        const role = `{"index":${index},"delta":${delta},"logprobs":null,"finish_reason":null}`;
        return event(role, 0, ',"prompt_token_ids":null,"prompt_text":null');
      }),
    token(index, at, finish) {
      const { kind, text, call = 0, opens } = script.piece(at);
      const json = JSON.stringify(text);
      const made = at + 1;
      const logprobs = logprobsText(answer, text);
      if (kind === "reasoning") return [event(choice(index, `{"reasoning":${json}}`, finish, logprobs), made)];
      // An end that is a token of its own has no text; one at a limit comes with the last text.
      const isApart = finish !== undefined && (kind === "arguments" || finish !== "length");
      const end = isApart ? [event(choice(index, "{}", finish), made)] : [];
      const last = isApart ? undefined : finish;
      if (kind === "content") return [event(choice(index, `{"content":${json}}`, last, logprobs), made), ...end];
      const first = opens ? [event(choice(index, `{${toolHead(index, call)}`), made)] : [];
      const piece = `{"content":null,"tool_calls":[{"index":${call},"function":{"arguments":${json}}}]}`;
      return [...first, event(choice(index, piece, undefined, logprobs), made), ...end];
    },
    finish: (reason) =>
      eachChoice(answer).map((index) => event(choice(index, '{"content":""}', reason), madeByEach(answer))),
    closing() {
      const usage = usageText(answer, answer.entry.generated, reasoningDetails(answer));
      return request.includeUsage && usage !== undefined ? [`${head}],"usage":${usage},${fingerprint}}`] : [];
    },
    whole(made, finish) {
      const text = textOf(answer, made);
      const forced = request.body["tool_choice"] !== undefined && request.body["tool_choice"] !== "auto";
      const content = script.tools.length > 0 ? (forced ? "" : null) : text.content || null;
      const message = (index: number) => ({
        ...{ role: "assistant", content, refusal: null, annotations: null, audio: null, function_call: null },
        ...(script.tools.length > 0 && {
          tool_calls: text.calls.map((called, call) => ({
            id: `chatcmpl-tool-${answer.id}-${index}-${call}`,
            type: "function",
            function: called,
          })),
        }),
        reasoning: script.reasoning > 0 ? text.reasoning : null,
      });
      const one = (index: number) => ({
        ...{ index, message: message(index), logprobs: request.body["logprobs"] ? { content: [] } : null },
        ...{ finish_reason: finish, stop_reason: null, token_ids: null, routed_experts: null },
      });
      const choices = eachChoice(answer).map((index) => JSON.stringify(one(index)));
      return wholeText(answer, head.replace(".chunk", ""), choices, reasoningDetails(answer), true);
    },
  };
}

export function completionForm(answer: Answer): AnswerForm {
  const { request } = answer;
  const head = `{"id":"cmpl-${answer.id}","object":"text_completion","created":${answer.createdSeconds},"model":${JSON.stringify(answer.model)},"choices":[`;
  const event = (inner: string, made: number) => {
    const usage = request.continuousUsage ? usageText(answer, made) : undefined;
    return `${head}${inner}]${usage === undefined ? "" : `,"usage":${usage}`}}`;
  };
  const choice = (index: number, text: string, finish?: FinishReason) =>
    `{"index":${index},"text":${JSON.stringify(text)},"logprobs":null,"finish_reason":${finish ? `"${finish}"` : "null"},"stop_reason":null`;
  const piece = (index: number, text: string, finish?: FinishReason) =>
    `${choice(index, text, finish)},"prompt_token_ids":null,"token_ids":null}`;
  const whole = (index: number, text: string, finish: FinishReason) =>
    `${choice(index, text, finish)},"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null,"routed_experts":null}`;
  return {
    opening: () => [],
    token: (index, at, finish) => [event(piece(index, request.script.piece(at).text, finish), at + 1)],
    finish: (reason) => eachChoice(answer).map((index) => event(piece(index, "", reason), madeByEach(answer))),
    closing() {
      const usage = usageText(answer);
      return request.includeUsage && usage !== undefined ? [`${head}],"usage":${usage},${fingerprint}}`] : [];
    },
    whole(made, finish) {
      const { content } = textOf(answer, made);
      const choices = eachChoice(answer).map((index) => whole(index, content, finish));
      return wholeText(answer, head, choices, ',"completion_tokens_details":null', false);
    },
  };
}

const fingerprint = '"system_fingerprint":"vllm-0.32.0-429dd8ad"';

/** An answer as one body, with all that is null in it. */
function wholeText(answer: Answer, head: string, choices: readonly string[], details: string, isChat: boolean): string {
  const usage = usageText(answer, answer.entry.generated, `,"prompt_tokens_details":null${details}`);
  const prompt = isChat ? '"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,' : "";
  const rest = `${prompt}"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null`;
  return `${head}${choices.join(",")}],"service_tier":null,${fingerprint},"usage":${usage ?? "null"},${rest}}`;
}

/** Tokens of each choice so far. */
function madeByEach({ entry, request }: Answer): number {
  return Math.floor(entry.generated / request.choices);
}

/** There whether or not it thinks: it has a parser for thinking. `made`: of one choice; absent: of all of them. */
function reasoningDetails(answer: Answer, made?: number): string {
  const { request } = answer;
  const ofOne = Math.min(request.script.reasoning, made ?? madeByEach(answer));
  const tokens = made === undefined ? ofOne * request.choices : ofOne;
  return `,"completion_tokens_details":{"reasoning_tokens":${tokens}}`;
}
