/**
 * Reads which value an engine refused and what it would accept. Only numbers are taken from the engine's text, because
 * it may quote the request.
 */
import { stopsMax } from "@weiche/shared/convention/generation.ts";
import type { EngineRefusal } from "./dialect.ts";
import type { Json } from "@weiche/shared/json.ts";

type InvalidRefusal = Extract<EngineRefusal, { readonly kind: "invalid" }>;

/** Parameters of the API that an engine may name as wrong. */
const params: ReadonlySet<string> = new Set(
  (
    "messages prompt input max_tokens max_completion_tokens temperature top_p stop n seed presence_penalty " +
    "frequency_penalty logprobs top_logprobs tools tool_choice response_format reasoning_effort chat_template_kwargs"
  ).split(" "),
);

type Reading = (number: string) => Omit<InvalidRefusal, "kind">;

/** Patterns of messages, each capturing a number. The first match counts. */
const readings: readonly (readonly [RegExp, Reading])[] = [
  [/^n must be 1 when using greedy sampling/, () => ({ param: "n", must: "1 where temperature is 0" })],
  [
    /^Field '(?:n|n_cmpl)': Value must be between 1 <= value <= (\d{1,9})\b/,
    (most) => ({ param: "n", must: `at most ${most}: this model's engine gives no more answers at once` }),
  ],
  [
    /^\d+ validation errors?:[^]*'loc': 'body\.stop'[^]*List should have at most (\d{1,9}) items/,
    (most) => ({
      ...{ param: "stop", must: `at most ${most} strings for this model, for now` },
      shortfall: `its engine takes ${most} stop strings: start it with VLLM_MAX_STOP_STRINGS=${stopsMax}`,
    }),
  ],
  [
    /^logprobs is not supported with tools/,
    () => ({
      param: "logprobs",
      must: "false or absent together with tools: this model's engine gives no probabilities",
    }),
  ],
  [
    /(?:JSON schema error at|JSON schema conversion failed|Grammar error: )[^]*?(?:unrecognized type|unrecognized schema|invalid type)\b/i,
    () => ({ param: "schema", must: "a JSON Schema whose types are types of JSON" }),
  ],
  [
    /(?:JSON schema error at|JSON schema conversion failed|Grammar error: )[^]*?(?:Unsupported ref|Error resolving ref)\b/i,
    () => ({ param: "schema", must: "a JSON Schema whose references lead to a part of it (#/…)" }),
  ],
  [
    /JSON schema|Grammar error: |failed to parse grammar|invalid grammar/i,
    () => ({ param: "schema", must: "a JSON Schema that this model's engine can follow" }),
  ],
];

/** A message that names the parameter, without a usable bound. */
const fieldPattern = /^Field '(\w{1,40})': /;

export function readRefusedValue(error: Json, message: string): InvalidRefusal {
  for (const [pattern, read] of readings) {
    const match = pattern.exec(message);
    if (match) return { kind: "invalid", ...read(match[1] ?? "") };
  }
  const named = typeof error["param"] === "string" ? error["param"].replace(/^body\./, "") : "";
  const param = params.has(named) ? named : fieldPattern.exec(message)?.[1];
  return param !== undefined && params.has(param) ? { kind: "invalid", param } : { kind: "invalid" };
}
