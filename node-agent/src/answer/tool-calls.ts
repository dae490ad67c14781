/**
 * Assembles the pieces of one choice's tool calls. Each call gets one id and one name, and calls are numbered in the
 * order in which they begin. Engines differ in everything else:
 *
 * | what an engine sends                                  | seen in                                | what it means       |
 * |-------------------------------------------------------|----------------------------------------|---------------------|
 * | the index of the call before, with a new id or name   | Ollama, SGLang, LMDeploy, Dynamo       | another call        |
 * | no index, or a negative one; or it is in `function`   | Ollama to 0.4, gateways, vLLM parsers  | by id, name and end |
 * | indexes with gaps                                     | parsers that drop a call               | renumbered          |
 * | id and name with every piece                          | SGLang                                 | one call            |
 * | another id with every piece, without a name           | vLLM to 0.8                            | one call            |
 * | the name again after the end, without more arguments  | vLLM to 0.8, forks of vLLM             | one call            |
 * | marks of the template behind the name                 | vLLM with gpt-oss                      | dropped             |
 * | no id, or the id of another call                      | Ollama, engines that use the name      | gets our own id     |
 * | arguments at an index that no call has                | Cerebras, Nebius                       | of the last call    |
 * | alternating ids, and no indexes                       | gateways                               | by id               |
 * | no arguments, blank ones, or `null`                   | vLLM, SGLang, Ollama                   | `{}`                |
 * | repeated arguments, or an extra brace                 | vLLM's xlam and Qwen parsers           | dropped             |
 * | `{}`, and then the arguments                          | Bedrock, Llama Stack                   | the arguments       |
 * | JSON text within a JSON string                        | vLLM's Hermes parser with Granite 4    | unwrapped           |
 * | bare line ends, tabs and backslashes in strings       | parsers that pass what a model wrote   | escaped             |
 * | arguments without the first or the last brace         | Qwen parsers of vLLM and TensorRT-LLM  | completed           |
 * | `tool_calls` for a call that the token limit cut off  | vLLM                                   | `length`            |
 */
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import type { ToolCallPiece } from "../engines/dialects/dialect.ts";
import { JsonText, unwrapped } from "../engines/dialects/json-text.ts";
import { AnswerFull } from "./collected.ts";

export interface CanonicalToolCall {
  readonly index: number;
  /** Only in the first piece of a call. */
  readonly opening?: { readonly id: string; readonly name: string };
  readonly arguments: string;
}

interface Call {
  readonly index: number;
  readonly name: string;
  /** The engine's id, if any. */
  readonly engineId: string | undefined;
  readonly arguments: CallArguments;
}

/** An answer with more tool calls ends. */
const callsMax = 1_024;

export class ToolCalls {
  /** The prefix of the ids of calls without a usable id of the engine. */
  readonly #idPrefix: string;
  readonly #calls: Call[] = [];
  readonly #ids = new Set<string>();
  /** The current call at each index of the engine. */
  readonly #byIndex = new Map<number, Call>();
  /** The last piece that repeats the name of a complete call. Another call begins if arguments follow. */
  #repeated: ToolCallPiece | undefined;

  constructor(idPrefix: string) {
    this.#idPrefix = idPrefix;
  }

  get count(): number {
    return this.#calls.length;
  }

  /**
   * Returns undefined for a piece without content. Throws an `EngineFault` if the piece belongs to no call, or
   * `AnswerFull` if there are too many calls.
   */
  take(piece: ToolCallPiece): CanonicalToolCall | undefined {
    const text = piece.arguments ?? "";
    const name = piece.name && plainName(piece.name);
    const known = piece.index === undefined ? this.#without(piece) : this.#byIndex.get(piece.index);
    if (name && (!known || isAnother(known, { ...piece, name }))) {
      if (name !== known?.name || !known.arguments.isComplete || text.trim() !== "")
        return this.#open(piece, name, text);
      this.#repeated = { ...piece, name };
      return undefined;
    }
    const repeated = this.#repeated;
    if (repeated?.name && repeated.index === piece.index && text.trimStart().startsWith("{"))
      return this.#open(repeated, repeated.name, text);
    const call = known ?? this.#calls.at(-1);
    if (call) return this.#extend(call, text);
    if (text.trim() === "") return undefined;
    throw new EngineFault("malformed", "a tool call without a name");
  }

  /**
   * Returns whether the last call is incomplete at the end of the answer. `isAtLimit`: whether the answer has all tokens
   * that it may have. If undefined, the count of tokens is unknown.
   */
  isCut(isAtLimit: boolean | undefined): boolean {
    return isAtLimit !== false && this.#calls.at(-1)?.arguments.isCut(isAtLimit === true) === true;
  }

  /** Returns what is missing of the arguments at the end. `isCut`: the token limit ended the answer. */
  *missingArguments(isCut = false): Iterable<CanonicalToolCall> {
    for (const call of this.#calls) {
      const rest = call.arguments.rest(isCut);
      if (rest !== "") yield { index: call.index, arguments: rest };
    }
  }

  /** Returns the call for a piece without an index: the call with the same id, or the last call. */
  #without({ id }: ToolCallPiece): Call | undefined {
    return (id ? this.#calls.findLast(({ engineId }) => engineId === id) : undefined) ?? this.#calls.at(-1);
  }

  #open({ index, id }: ToolCallPiece, name: string, text: string): CanonicalToolCall {
    if (this.#calls.length >= callsMax) throw new AnswerFull("too many tool calls");
    this.#repeated = undefined;
    const call: Call = {
      ...{ index: this.#calls.length, name, engineId: id || undefined },
      arguments: new CallArguments(),
    };
    this.#calls.push(call);
    if (index !== undefined) this.#byIndex.set(index, call);
    const ownId = !id || this.#ids.has(id) ? `${this.#idPrefix}-${call.index}` : id;
    this.#ids.add(ownId);
    const opening = { id: ownId, name };
    return { index: call.index, opening, arguments: this.#extend(call, text)?.arguments ?? "" };
  }

  #extend({ index, arguments: given }: Call, text: string): CanonicalToolCall | undefined {
    const told = given.push(text);
    return told === "" ? undefined : { index, arguments: told };
  }
}

/** Returns the name without the marks of a chat template, which parsers of gpt-oss leave behind it. */
function plainName(name: string): string {
  return name.replace(/(?<=.)<\|[^]*$/, "");
}

/** Returns whether a piece with a name begins another call at an index that has one. */
function isAnother(call: Call, { id, name }: ToolCallPiece): boolean {
  if (name !== call.name) return true;
  if (id && id === call.engineId) return false;
  // Engines that repeat the name send another id with every piece, or none. Then the end of the arguments decides.
  return call.arguments.isComplete || (!call.arguments.hasBegun && Boolean(id && call.engineId));
}

/** A beginning that may still mean that there are no arguments, or that they follow. */
const nothingYet = /^(?:n(?:u(?:l(?:l)?)?)?|\{\s*\}?)?\s*$/;
/** No arguments, and then the arguments all the same. */
const nothingFirst = /^(?:null|\{\s*\})\s*(?=\{)/;
/** Longer JSON text within a JSON string is not unwrapped. */
const encodedCharactersMax = 1 << 20;

/** Makes the arguments of a call one JSON object that clients can parse, from the pieces of an engine. */
class CallArguments {
  #json = new JsonText();
  /** The beginning of the arguments, which is not sent yet. */
  #held = "";
  #state: "nothing" | "encoded" | "sent" = "nothing";

  /** Whether a value has begun that is not `null`. */
  get hasBegun(): boolean {
    return this.#state !== "nothing" || this.#held.startsWith("{");
  }

  get isComplete(): boolean {
    return this.#json.isComplete || this.#held === "{}";
  }

  /**
   * Whether more must follow. `isAtLimit`: the token limit may have cut off what an engine then completed itself, such
   * as arguments that have only begun.
   */
  isCut(isAtLimit: boolean): boolean {
    if (this.#json.isOpen) return isAtLimit || this.#json.missingEnd === undefined;
    return isAtLimit && this.#state === "nothing";
  }

  /** Takes a piece and returns what the client gets of it. Text after the end is dropped, because no client parses it. */
  push(text: string): string {
    if (this.#state === "encoded") return this.#readString(text);
    if (this.#json.isComplete) return "";
    if (this.#state === "sent") return this.#json.push(text);
    const begun = (this.#held + text).trimStart();
    if (nothingYet.test(begun)) {
      this.#held = begun.replaceAll(/\s+/g, "");
      return "";
    }
    const given = begun.replace(nothingFirst, "");
    if (/^\{\s*\}/.test(given)) {
      this.#held = "{}";
      return "";
    }
    this.#held = "";
    this.#state = given.startsWith('"') ? "encoded" : "sent";
    return this.#state === "sent" ? this.#json.push(given) : this.#readString(given);
  }

  /** Returns what is missing at the end of the answer. `isCut`: the token limit ended it. */
  rest(isCut: boolean): string {
    if (this.#state === "sent") return isCut ? "" : (this.#json.missingEnd ?? "");
    if (this.#state === "encoded") return unwrapped(this.#held);
    if (isCut) return this.hasBegun ? this.#held : "";
    return this.#held === "" || this.#held === "null" || this.#held === "{" ? "{}" : this.#held;
  }

  /** Reads a string at the beginning: the whole arguments as JSON text, or the name of a member without a brace before. */
  #readString(piece: string): string {
    const wasComplete = this.#json.isComplete;
    if (!wasComplete) this.#held += this.#json.push(piece);
    if (!this.#json.isComplete && this.#held.length <= encodedCharactersMax) return "";
    const given = unwrapped(this.#held);
    const after = (wasComplete ? piece : this.#json.rest).trimStart();
    // A name is followed by a colon, perhaps in the next piece.
    if (this.#json.isComplete && given === this.#held && after === "") return "";
    this.#state = "sent";
    this.#held = "";
    if (!after.startsWith(":")) return given;
    this.#json = new JsonText();
    return this.#json.push(`{${given}${after}`);
  }
}
