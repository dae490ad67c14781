/** Reads a request: its prompt tokens, the text to generate, and the words that control the engine. */
import { instanceOf } from "./json-instance.ts";
import type { EngineFacts } from "./engine-facts.ts";
import { parseFault, type Fault } from "./faults.ts";

export type Body = Readonly<Record<string, unknown>>;
export type FinishReason = "stop" | "length" | "tool_calls" | "abort";

export interface SimRequest {
  readonly kind: "chat" | "completion";
  readonly id: string;
  readonly body: Body;
  readonly promptTokens: number;
  /** The number of simultaneous answers: `n` times the prompts of a legacy completion. */
  readonly choices: number;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly continuousUsage: boolean;
  readonly script: Script;
  readonly steering: Steering;
}

/** The text of each choice, token by token. */
interface Script {
  readonly length: number;
  readonly reasoning: number;
  readonly finish: FinishReason;
  /** The functions that the answer calls, in order. */
  readonly tools: readonly string[];
  piece(index: number): Piece;
}

interface Piece {
  readonly kind: "reasoning" | "content" | "arguments";
  readonly text: string;
  /** The call that the arguments belong to. */
  readonly call?: number;
  /** Whether the call begins with this piece. */
  readonly opens?: boolean;
}

/** The first word of the last user message: `sim:tokens=50,itl=5,ttft=10,reasoning=3,calls=2,fault=hang:7,mark=8,text`. */
interface Steering {
  readonly tokens?: number;
  readonly reasoning?: number;
  /** The number of simultaneous calls, of the offered functions in turn. Defaults to one. */
  readonly calls?: number;
  readonly itlMs?: number;
  readonly ttftMs?: number;
  readonly fault?: Fault;
  /** A number that the engine's ledger keeps for checkers. */
  readonly mark?: number;
  /** Answers with text although tools were offered. */
  readonly text: boolean;
}

export interface ScriptDefaults extends Pick<EngineFacts, "tokens" | "reasoningTokens" | "contextTokens"> {
  /** Treats a function that is required by name as "auto". */
  readonly ignoresNamedTool: boolean;
  /** Answers nonsense, as an engine without reloaded weights does. */
  readonly gibberish: boolean;
}

const bytesPerToken = 4;
const messageTokens = 4;
const imageTokens = 280;

/** Counts one token per four characters or part of them. */
export function countTokens(text: string): number {
  return Math.ceil(text.length / bytesPerToken);
}

export function countChatTokens(body: Body): number {
  let tokens = 3;
  for (const message of asArray(body["messages"])) {
    tokens += messageTokens;
    for (const part of contentParts(message)) tokens += part.text === undefined ? imageTokens : countTokens(part.text);
  }
  return tokens + (body["tools"] === undefined ? 0 : countTokens(JSON.stringify(body["tools"])));
}

export function readChat(id: string, body: Body, defaults: ScriptDefaults): SimRequest {
  const lastUser = asArray(body["messages"]).findLast((message) => field(message, "role") === "user");
  const steering = parseSteering(contentParts(lastUser).find((part) => part.text !== undefined)?.text ?? "");
  const given = { kind: "chat", id, body, promptTokens: countChatTokens(body), steering } as const;
  return read(given, 1, chatPieces(body, steering, defaults), defaults);
}

export function readCompletion(id: string, body: Body, defaults: ScriptDefaults): SimRequest {
  const prompts = isTokenList(body["prompt"]) ? [body["prompt"]] : [body["prompt"]].flat();
  const promptTokens = prompts.reduce<number>((sum, prompt) => sum + inputTokens(prompt), 0);
  const steering = parseSteering(text(prompts[0]));
  const given = { kind: "completion", id, body, promptTokens, steering } as const;
  return read(given, prompts.length, textPieces(0, steering, defaults), defaults);
}

/** Counts the tokens of an input, which is a text or a list of token ids. */
export function inputTokens(input: unknown): number {
  return Array.isArray(input) ? input.length : Math.max(1, countTokens(text(input)));
}

export function isTokenList(input: unknown): input is number[] {
  return Array.isArray(input) && typeof input[0] === "number";
}

/**
 * Finds the steering word at the start of a text. With `anywhere`, finds it after an instruction in the first 1,000
 * characters.
 */
export function parseSteering(text: string, anywhere = false): Steering {
  const word = (anywhere ? /(?:^|\s)sim:(\S*)/ : /^\s*sim:(\S*)/).exec(text.slice(0, 1_000))?.[1];
  if (word === undefined) return { text: false };
  const given = new Map(word.split(",").map((pair) => pair.split("=", 2) as [string, string | undefined]));
  const number = (name: string) => (given.has(name) ? Number(given.get(name)) : undefined);
  return {
    text: given.has("text"),
    tokens: number("tokens"),
    reasoning: number("reasoning"),
    calls: number("calls"),
    itlMs: number("itl"),
    ttftMs: number("ttft"),
    mark: number("mark"),
    fault: given.has("fault") ? parseFault(given.get("fault") ?? "") : undefined,
  };
}

type Pieces = Omit<Script, "finish"> & { readonly natural: FinishReason };

function read(
  given: Pick<SimRequest, "kind" | "id" | "body" | "promptTokens" | "steering">,
  prompts: number,
  { natural, ...script }: Pieces,
  { contextTokens }: ScriptDefaults,
): SimRequest {
  const { kind, body, promptTokens } = given;
  const asked = body["max_completion_tokens"] ?? body["max_tokens"] ?? (kind === "completion" ? 16 : undefined);
  const bound = asNumber(asked) ?? -1; // -1 means as many as fit
  const limit = Math.max(1, Math.min(bound < 0 ? Infinity : bound, contextTokens - promptTokens));
  const options = body["stream_options"];
  const includeUsage = field(options, "include_usage") === true;
  return {
    ...given,
    choices: prompts * (asNumber(body["n"]) ?? 1),
    stream: body["stream"] === true,
    includeUsage,
    continuousUsage: includeUsage && field(options, "continuous_usage_stats") === true,
    script: endOf(script, natural, limit, body["ignore_eos"] === true && bound >= 0),
  };
}

/** An answer that ignores its end of text goes on to the limit. */
function endOf(script: Omit<Script, "finish">, natural: FinishReason, limit: number, ignoresEnd: boolean): Script {
  if (ignoresEnd || script.length > limit) return { ...script, length: limit, finish: "length" };
  return { ...script, finish: natural };
}

function chatPieces(body: Body, steering: Steering, defaults: ScriptDefaults): Pieces {
  const reasoning = thinks(body) ? (steering.reasoning ?? defaults.reasoningTokens) : 0;
  const { ignoresNamedTool } = defaults;
  const tools = steering.text ? [] : chosenTools(body, steering.calls ?? 1, ignoresNamedTool);
  if (tools.length > 0) {
    const named = !ignoresNamedTool && typeof body["tool_choice"] === "object" && body["tool_choice"] !== null;
    return callPieces(tools, reasoning, named ? "stop" : "tool_calls");
  }
  const format = body["response_format"];
  if (field(format, "type") === "json_schema") {
    const schema = field(field(format, "json_schema"), "schema");
    return jsonPieces(JSON.stringify(instanceOf(schema)), reasoning);
  }
  if (field(format, "type") === "json_object") return jsonPieces('{"answer":"yes"}', reasoning);
  return textPieces(reasoning, steering, defaults);
}

function textPieces(reasoning: number, steering: Steering, { tokens, gibberish }: ScriptDefaults): Pieces {
  const length = steering.tokens ?? tokens;
  if (gibberish) return pieces(reasoning + length, 0, () => ({ kind: "content", text: "!" }));
  return pieces(length, reasoning, (index) => ({ kind: "content", text: `t${index} ` }));
}

function jsonPieces(text: string, reasoning: number): Pieces {
  const said = tokensOf(text);
  return pieces(said.length, reasoning, (index) => ({ kind: "content", text: said[index]! }));
}

function callPieces(tools: readonly Body[], reasoning: number, natural: FinishReason): Pieces {
  const said = tools.flatMap((tool, call) =>
    tokensOf(JSON.stringify(instanceOf(tool["parameters"] ?? {}) ?? {})).map((text, at): Piece => {
      return { kind: "arguments", text, call, opens: at === 0 };
    }),
  );
  const names = tools.map((tool) => String(tool["name"]));
  return { ...pieces(said.length, reasoning, (index) => said[index]!), natural, tools: names };
}

/** Returns the pieces of reasoning, then `length` other pieces. */
function pieces(length: number, reasoning: number, said: (index: number) => Piece): Pieces {
  return {
    ...{ length: reasoning + length, reasoning, natural: "stop", tools: [] },
    piece: (index) => (index < reasoning ? { kind: "reasoning", text: `r${index} ` } : said(index - reasoning)),
  };
}

function tokensOf(text: string): string[] {
  return Array.from({ length: countTokens(text) }, (_, at) => text.slice(at * bytesPerToken, (at + 1) * bytesPerToken));
}

/** Returns whether the answer has reasoning, by the template's arguments or else by the reasoning effort. */
function thinks(body: Body): boolean {
  const kwargs = body["chat_template_kwargs"];
  const given = field(kwargs, "enable_thinking") ?? field(kwargs, "thinking");
  if (given !== undefined) return given === true;
  return typeof body["reasoning_effort"] === "string" && body["reasoning_effort"] !== "none";
}

/** Returns the functions to call: the named one, or else the first `calls`, or none after a tool's result. */
function chosenTools(body: Body, calls: number, ignoresNamed: boolean): Body[] {
  const tools = asArray(body["tools"]).map((tool) => field(tool, "function") as Body);
  if (tools.length === 0 || body["tool_choice"] === "none") return [];
  if (field(asArray(body["messages"]).at(-1), "role") === "tool") return [];
  const name = field(field(body["tool_choice"], "function"), "name");
  if (name !== undefined && !ignoresNamed) return tools.filter((tool) => tool["name"] === name).slice(0, 1);
  return Array.from({ length: calls }, (_, at) => tools[at % tools.length]!);
}

function contentParts(message: unknown): { readonly text?: string }[] {
  const content = field(message, "content");
  if (typeof content === "string") return [{ text: content }];
  return asArray(content).map((part) => {
    const text = field(part, "text");
    return typeof text === "string" ? { text } : {};
  });
}

export function field(value: unknown, name: string): unknown {
  return value !== null && typeof value === "object" ? (value as Record<string, unknown>)[name] : undefined;
}

export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns any value as text. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

export function asNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
