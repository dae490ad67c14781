/** The settings of a chat as they are typed, and the parts of the API's request that they make. Pure. */
/** A part of a message. */
type ContentPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } };

interface SentCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

export type Message =
  | { readonly role: "system"; readonly content: string }
  | { readonly role: "user"; readonly content: string | readonly ContentPart[] }
  | { readonly role: "assistant"; readonly content?: string; readonly tool_calls?: readonly SentCall[] }
  | { readonly role: "tool"; readonly tool_call_id: string; readonly content: string };

/** The parts of a body of `POST /v1/chat/completions` that the playground sends. The router checks them. */
export interface ChatBody {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly temperature?: number | undefined;
  readonly max_tokens?: number | undefined;
  readonly stop?: readonly string[] | undefined;
  readonly tools?: readonly object[] | undefined;
  readonly response_format?: ResponseFormat | undefined;
  readonly reasoning_effort?: string;
  readonly stream: true;
  readonly stream_options: { readonly include_usage: true };
}

interface ResponseFormat {
  readonly type: TypedSettings["format"];
  readonly json_schema?: { readonly name: string; readonly schema: object; readonly strict: boolean };
}

export interface TypedSettings {
  readonly system: string;
  readonly temperature: string;
  readonly maxTokens: string;
  /** One sequence per line. */
  readonly stop: string;
  readonly tools: string;
  readonly format: "text" | "json_object" | "json_schema";
  readonly schema: string;
}

export type SettingName = keyof TypedSettings;

export const noSettings: TypedSettings = {
  ...{ system: "", temperature: "", maxTokens: "", stop: "" },
  ...{ tools: "", format: "text", schema: "" },
};

/** Why a typed setting cannot be sent. */
export type Fault =
  | { readonly kind: "number" | "whole" | "tools" | "object" }
  | { readonly kind: "stops"; readonly max: number }
  /** `position`: from 1. */
  | { readonly kind: "tool"; readonly position: number }
  /** The place of the first mistake, if the browser names it. */
  | { readonly kind: "json"; readonly line?: string; readonly column?: string };

type Parts = Pick<ChatBody, "temperature" | "max_tokens" | "stop" | "tools" | "response_format"> & {
  readonly system?: string;
};

export interface ReadSettings {
  /** Without the settings that are empty or faulty. */
  readonly parts: Parts;
  readonly faults: Readonly<Partial<Record<SettingName, Fault>>>;
}

type Read<T> = { readonly value: T } | { readonly fault: Fault };

const stopsMax = 64;

export function readSettings(typed: TypedSettings): ReadSettings {
  const faults: Partial<Record<SettingName, Fault>> = {};
  const read = <T>(name: SettingName, reader: (text: string) => Read<T>): T | undefined => {
    if (typed[name].trim() === "") return undefined;
    const found = reader(typed[name]);
    if ("value" in found) return found.value;
    faults[name] = found.fault;
    return undefined;
  };
  const { format } = typed;
  const schema = format === "json_schema" ? read("schema", objectIn) : undefined;
  if (format === "json_schema" && typed.schema.trim() === "") faults.schema = { kind: "object" };
  const parts = {
    system: typed.system.trim() === "" ? undefined : typed.system,
    temperature: read("temperature", (text) => numberIn(text.replace(",", "."), "number")),
    max_tokens: read("maxTokens", (text) => numberIn(text, "whole")),
    stop: read("stop", stopsIn),
    tools: read("tools", toolsIn),
    response_format: format === "text" ? undefined : { type: format, ...(schema && { json_schema: named(schema) }) },
  };
  return { parts, faults };
}

function named(schema: object) {
  return { name: "answer", schema, strict: true };
}

/** A temperature, or a whole number from 1 on. */
function numberIn(text: string, kind: "number" | "whole"): Read<number> {
  const value = Number(text);
  const isFine = kind === "number" ? value >= 0 && value <= 2 : Number.isSafeInteger(value) && value >= 1;
  return isFine ? { value } : { fault: { kind } };
}

function stopsIn(text: string): Read<readonly string[]> {
  const stops = text.split("\n").filter((line) => line !== "");
  return stops.length > stopsMax ? { fault: { kind: "stops", max: stopsMax } } : { value: stops };
}

function toolsIn(text: string): Read<readonly object[]> {
  const json = jsonIn(text);
  if ("fault" in json) return json;
  if (!Array.isArray(json.value)) return { fault: { kind: "tools" } };
  const wrong = json.value.findIndex((tool) => !isTool(tool));
  return wrong >= 0 ? { fault: { kind: "tool", position: wrong + 1 } } : { value: json.value as object[] };
}

function isTool(tool: unknown): boolean {
  const { type, function: called } = (tool ?? {}) as { readonly type?: unknown; readonly function?: unknown };
  const { name } = (called ?? {}) as { readonly name?: unknown };
  return type === "function" && typeof name === "string" && name !== "";
}

function objectIn(text: string): Read<object> {
  const json = jsonIn(text);
  if ("fault" in json) return json;
  const { value } = json;
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? { value }
    : { fault: { kind: "object" } };
}

function jsonIn(text: string): Read<unknown> {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    const [, line, column] = /line (\d+) column (\d+)/.exec((error as Error).message) ?? [];
    return { fault: { kind: "json", ...(line && { line, column }) } };
  }
}

const places: readonly (readonly [string, SettingName])[] = [
  ["temperature", "temperature"],
  ["max_tokens", "maxTokens"],
  ["stop", "stop"],
  ["tools", "tools"],
  ["response_format", "schema"],
];

/** The setting that a parameter of the API's refusal is about. */
export function settingOf(param: string | null): SettingName | undefined {
  return places.find(([name]) => param === name || param?.startsWith(`${name}.`) || param?.startsWith(`${name}[`))?.[1];
}
