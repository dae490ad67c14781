/**
 * Required tool calls, for an engine that enforces a JSON Schema but allows text before a call. The engine writes calls
 * as JSON text, `{"name": …, "arguments": {…}}` or a list of them. This file parses the text as it arrives.
 */
import { isRawJson } from "@weiche/shared/http/kept-json.ts";
import type { ChatRequest, ChoiceDelta, Tool, ToolCallPiece } from "./dialect.ts";
import { EngineFault } from "./engine-fault.ts";
import { JsonEnd } from "./json-end.ts";
import { positionWithin, type SchemaPosition } from "./schema-positions.ts";

/**
 * The most characters before the arguments of a call, which are matched again with every piece. Longer text is not a
 * call.
 */
const headCharactersMax = 4 << 10;

/** Returns a `response_format` for at least one call of these functions, or for exactly one of the named function. */
export function requiredCallsFormat({
  tools,
  toolChoice,
  oneCall = false,
}: Pick<ChatRequest, "tools" | "toolChoice" | "oneCall">): object {
  const named = typeof toolChoice === "object" ? toolChoice.name : undefined;
  const callable = tools.filter((tool) => named === undefined || tool.function.name === named);
  const calls = callable.map((tool, index) => ({
    type: "object",
    properties: { name: { const: tool.function.name }, arguments: { $ref: pointerTo(index) } },
    required: ["name", "arguments"],
    additionalProperties: false,
  }));
  // A single call needs no list, as in most templates. When restricted to lists, a small model chose wrong functions.
  const list = { type: "array", items: calls.length === 1 ? calls[0] : { anyOf: calls }, minItems: 1 };
  const any = { anyOf: oneCall ? calls : [...calls, list] };
  const schema = {
    ...(named === undefined ? any : calls[0]),
    $defs: Object.fromEntries(callable.map((tool, index) => [index, argumentsOf(tool, pointerTo(index))])),
  };
  return { type: "json_schema", json_schema: { name: "tool_calls", schema } };
}

function pointerTo(index: number): string {
  return `#/$defs/${index}`;
}

function argumentsOf({ function: { parameters } }: Tool, at: string): object {
  if (parameters === undefined) return { type: "object", properties: {}, additionalProperties: false };
  return { type: "object", ...(moved(parameters, at) as object) };
}

/** Rewrites the internal references of a schema that has become a part of another one at `to`. */
function moved(value: unknown, to: string, position: SchemaPosition = "schema"): unknown {
  if (position === "data" || typeof value !== "object" || value === null || isRawJson(value)) return value;
  if (Array.isArray(value)) return value.map((item) => moved(item, to, position));
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      position === "schema" && name === "$ref" && typeof member === "string"
        ? `${to}${member.slice(1)}`
        : moved(member, to, positionWithin(position, name)),
    ]),
  );
}

/** Parses the text of all answers to one request into tool calls. */
export class RequiredCalls {
  readonly #lists = new Map<number, CallList>();

  /** Returns the delta with calls in place of text. Throws an `EngineFault` if the text is not a list of calls. */
  read(delta: ChoiceDelta): ChoiceDelta {
    const { content, ...rest } = delta;
    if (!content) return rest;
    const list = this.#lists.getOrInsertComputed(delta.index, () => new CallList());
    return { ...rest, toolCalls: list.push(content) };
  }
}

/**
 * Matches a call up to its arguments, with the text before it: nothing, the bracket of a list, or the end of a call.
 */
const head =
  /^\s*(?:\[|\}\s*,)?\s*\{\s*"name"\s*:\s*("(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*")\s*,\s*"arguments"\s*:\s*(?=\{)/u;
/** Matches text that may still become such a head: before the first call, and after a call. */
const headBegins = { first: /^\s*(?:\[\s*)?(?:\{\s*(?:"|$)|$)/, next: /^\s*(?:\}\s*(?:,|$)|$)/ };

class CallList {
  #phase: "head" | "arguments" | "closed" = "head";
  /** Unparsed text: a part of a call's head, or the end of the answer. */
  #text = "";
  #calls = 0;
  /** Matches the end of the text: of a list, or of a single call. */
  #closing: RegExp | undefined;
  readonly #value = new JsonEnd();

  push(text: string): ToolCallPiece[] {
    this.#text += text;
    const pieces: ToolCallPiece[] = [];
    for (let before = -1; this.#text.length !== before;) {
      before = this.#text.length;
      if (this.#phase === "arguments") this.#readArguments(pieces);
      else this.#readBetween(pieces);
    }
    return pieces;
  }

  #readBetween(pieces: ToolCallPiece[]): void {
    const end = this.#phase === "head" ? this.#closing?.exec(this.#text) : /^\s*/.exec(this.#text);
    const opens = end ? undefined : head.exec(this.#text);
    if (end) this.#phase = "closed";
    else if (opens) this.#open(opens, pieces);
    else if (!this.#mayBecomeCall()) throw noCalls();
    this.#text = this.#text.slice((end ?? opens)?.[0].length ?? 0);
    if (this.#phase === "closed" && this.#text !== "") throw noCalls();
  }

  #open([text, name]: RegExpExecArray, pieces: ToolCallPiece[]): void {
    this.#closing ??= text.trimStart().startsWith("[") ? /^\s*\}\s*\]\s*/ : /^\s*\}\s*/;
    pieces.push({ index: this.#calls++, name: JSON.parse(name!) as string, arguments: "" });
    this.#phase = "arguments";
  }

  #mayBecomeCall(): boolean {
    const begins = headBegins[this.#calls === 0 ? "first" : "next"];
    return this.#text.length <= headCharactersMax && begins.test(this.#text);
  }

  #readArguments(pieces: ToolCallPiece[]): void {
    const length = this.#value.endIn(this.#text);
    const json = this.#text.slice(0, length);
    if (json !== "") pieces.push({ index: this.#calls - 1, arguments: json });
    this.#text = this.#text.slice(json.length);
    if (length !== undefined) this.#phase = "head";
  }
}

/**
 * Returns the fault of an engine that does not enforce a schema because of the model's chat template. The message gives
 * the operator a remedy.
 */
function noCalls(): EngineFault {
  return new EngineFault("malformed", "text where calls were required: the model needs tools.enforced: false");
}
