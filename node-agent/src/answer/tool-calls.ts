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
 * | no id, or the id of another call                      | Ollama, engines that use the name      | gets our own id     |
 * | arguments at an index that no call has                | Cerebras, Nebius                       | of the last call    |
 * | alternating ids, and no indexes                       | gateways                               | by id               |
 * | no arguments, blank ones, or `null`                   | vLLM, SGLang, Ollama                   | `{}`                |
 * | repeated arguments, or an extra brace                 | vLLM's xlam and Qwen parsers           | dropped             |
 */
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import type { ToolCallPiece } from "../engines/dialects/dialect.ts";
import { JsonEnd } from "../engines/dialects/json-end.ts";
import { AnswerFull } from "./answer-full.ts";

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
  readonly end: JsonEnd;
  /** The beginning of the arguments, held while it may still turn out to be blank or `null`. */
  held: string;
  hasArguments: boolean;
  isComplete: boolean;
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
    const known = piece.index === undefined ? this.#without(piece) : this.#byIndex.get(piece.index);
    if (piece.name && (!known || isAnother(known, piece))) return this.#open(piece, piece.name, text);
    const call = known ?? this.#calls.at(-1);
    if (call) return this.#extend(call, text);
    if (text.trim() === "") return undefined;
    throw new EngineFault("malformed", "a tool call without a name");
  }

  /** Returns the arguments of calls that ended without any. */
  *missingArguments(): Iterable<CanonicalToolCall> {
    for (const { index, hasArguments, held } of this.#calls)
      if (!hasArguments) yield { index, arguments: isNothing(held) ? "{}" : held };
  }

  /** Returns the call for a piece without an index: the call with the same id, or the last call. */
  #without({ id }: ToolCallPiece): Call | undefined {
    return (id ? this.#calls.findLast(({ engineId }) => engineId === id) : undefined) ?? this.#calls.at(-1);
  }

  #open({ index, id }: ToolCallPiece, name: string, text: string): CanonicalToolCall {
    if (this.#calls.length >= callsMax) throw new AnswerFull("too many tool calls");
    const call: Call = {
      ...{ index: this.#calls.length, name, engineId: id || undefined },
      ...{ end: new JsonEnd(), held: "", hasArguments: false, isComplete: false },
    };
    this.#calls.push(call);
    if (index !== undefined) this.#byIndex.set(index, call);
    const ownId = !id || this.#ids.has(id) ? `${this.#idPrefix}-${call.index}` : id;
    this.#ids.add(ownId);
    const opening = { id: ownId, name };
    return { index: call.index, opening, arguments: this.#extend(call, text)?.arguments ?? "" };
  }

  /**
   * Appends to the arguments. Blank text before them and anything after their end is dropped, because the client could
   * not parse it. The word `null` means no arguments.
   */
  #extend(call: Call, text: string): CanonicalToolCall | undefined {
    if (call.isComplete) return undefined;
    const begun = call.hasArguments ? text : (call.held + text).trimStart();
    if (!call.hasArguments && "null".startsWith(begun.trimEnd())) {
      call.held = begun;
      return undefined;
    }
    call.hasArguments = true;
    const end = call.end.endIn(begun);
    call.isComplete = end !== undefined;
    return { index: call.index, arguments: begun.slice(0, end) };
  }
}

function isNothing(text: string): boolean {
  const word = text.trim();
  return word === "" || word === "null";
}

/** Returns whether a piece with a name begins another call at an index that has one. */
function isAnother(call: Call, { id, name }: ToolCallPiece): boolean {
  if (name !== call.name) return true;
  if (id && id === call.engineId) return false;
  // Engines that repeat the name send another id with every piece, or none. Then the end of the arguments decides.
  return call.isComplete || (!call.hasArguments && Boolean(id && call.engineId));
}
