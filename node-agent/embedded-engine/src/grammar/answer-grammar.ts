/**
 * The grammar (GBNF) of an answer that must be JSON, a tool call, or either. It enforces what a grammar can: names,
 * types, required fields, choices, nesting, short limits. Patterns, formats and number ranges are not enforced. Pure.
 */
import { branchesOf, literalTrie, type LiteralTrie } from "@weiche/shared/literal-trie.ts";
import type { Tool } from "../request/chat-request.ts";
import { isObject, type Json } from "@weiche/shared/json.ts";
import { toolCallTags } from "../output/output-parser.ts";
import { invalid } from "../request/request-error.ts";

interface AnswerShape {
  /** The JSON Schema of the content. If undefined, there is no content. */
  readonly schema?: unknown;
  /** The calls that may be made instead of content. */
  readonly tools: readonly Tool[];
  readonly calls: "one" | "many";
  /** Reasoning comes before the answer. Models begin a new line after it. */
  readonly afterThought: boolean;
}

/** A schema that unfolds to more rules is refused, because a client could otherwise keep the engine busy with it. */
const rulesMax = 4_000;
const depthMax = 64;
const textLengthMax = 1_000_000;
/** The limit of alternatives at one place of the answer, because each is tried for each token. */
const choicesMax = 256;
const valuesMax = 2_000;
/** The limit of visited schemas plus members that are copied when schemas are merged. */
const stepsMax = 200_000;
/** Longer limits would cost too much grammar, and are not enforced. */
const repetitionsMax = 256;

/** White space is limited, because a model in a loop would otherwise never end. */
const basics = String.raw`
ws ::= | " " | "\n" [ \t]{0,20}
char ::= [^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
string ::= "\"" char* "\""
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?
boolean ::= "true" | "false"
null ::= "null"
value ::= object | array | string | number | boolean | null
member ::= string ":" ws value
object ::= "{" ws (member (ws "," ws member)* ws)? "}"
array ::= "[" ws (value (ws "," ws value)* ws)? "]"
`;

export function answerGrammar(shape: AnswerShape): string {
  const builder = new Builder();
  const answers: string[] = [];
  if (shape.tools.length > 0) {
    const calls = shape.tools.map((tool) => builder.rule("call", toolCall(tool, new Schema(tool.parameters, builder))));
    const call = builder.rule("calls", calls.join(" | "));
    answers.push(shape.calls === "one" ? call : `${call} ("\\n" ${call})*`);
  }
  if (shape.schema !== undefined) answers.push(new Schema(shape.schema, builder).root());
  return `root ::= ${shape.afterThought ? "[ \\n]{0,2} " : ""}(${answers.join(" | ")})${basics}${builder.text()}`;
}

function toolCall(tool: Tool, parameters: Schema): string {
  const opening = `${toolCallTags.open}\n{"name": ${JSON.stringify(tool.name)}, "arguments": `;
  return `${literal(opening)} ${parameters.root("object")} ${literal(`}\n${toolCallTags.close}`)}`;
}

function literal(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}

class Builder {
  readonly #rules: string[] = [];
  #textLength = 0;
  #steps = 0;

  rule(what: string, body: string): string {
    const name = this.reserve(what);
    this.define(name, body);
    return name;
  }

  /** Reserves the name of a rule before its text is known, so that a schema may refer to itself. */
  reserve(what: string): string {
    if (this.#rules.length >= rulesMax) throw tooLarge();
    return `${what}-${this.#rules.push("")}`;
  }

  define(name: string, body: string): void {
    this.#textLength += body.length;
    if (this.#textLength > textLengthMax) throw tooLarge();
    this.#rules[Number(name.slice(name.lastIndexOf("-") + 1)) - 1] = `${name} ::= ${body}\n`;
  }

  step(count: number): void {
    this.#steps += count;
    if (this.#steps > stepsMax) throw tooLarge();
  }

  text(): string {
    return this.#rules.join("");
  }
}

function tooLarge(): Error {
  return invalid("the JSON schema is too large");
}

/** Writes an expression that matches any of the texts. */
function oneOf(trie: LiteralTrie): string {
  const { prefix, ends, next } = trie;
  if (next.length === 0) return literal(prefix);
  return `${prefix === "" ? "" : `${literal(prefix)} `}(${next.map(oneOf).join(" | ")})${ends ? "?" : ""}`;
}

class Schema {
  readonly #document: unknown;
  readonly #builder: Builder;
  readonly #references = new Map<string, string>();
  /** The references that are being resolved for the current value. One that occurs again would never end. */
  #entered = new Set<string>();

  constructor(document: unknown, builder: Builder) {
    this.#document = document;
    this.#builder = builder;
  }

  /** Returns the rule of the whole document. `otherwise`: the rule if the document names no type. */
  root(otherwise = "value"): string {
    const rule = this.#visit(this.#document, 0);
    return rule === "value" ? otherwise : rule;
  }

  #visit(schema: unknown, depth: number): string {
    this.#builder.step(1);
    if (depth > depthMax) throw invalid("the JSON schema is nested too deeply");
    if (schema === true) return "value";
    if (!isObject(schema)) throw invalid("the JSON schema must be an object");
    if (typeof schema["$ref"] === "string") return this.#reference(schema["$ref"], depth);
    const only = onlyType(schema["oneOf"]);
    if (only !== undefined) return this.#visit(only, depth + 1);
    if (Array.isArray(schema["allOf"])) return this.#visit(this.#merged(schema, schema["allOf"]), depth + 1);
    if (schema["const"] !== undefined) return this.#values([schema["const"]]);
    if (Array.isArray(schema["enum"])) return this.#values(schema["enum"]);
    const either = schema["anyOf"] ?? schema["oneOf"];
    if (Array.isArray(either) && !isObject(schema["properties"]))
      return this.#choice(either.map((one) => this.#visit(one, depth + 1)));
    const type = schema["type"];
    if (Array.isArray(type)) return this.#choice(type.map((one) => this.#visit({ ...schema, type: one }, depth + 1)));
    return this.#typed(type ?? guessedType(schema), schema, depth);
  }

  #typed(type: unknown, schema: Json, depth: number): string {
    switch (type) {
      case undefined:
        return "value";
      case "object":
        return this.#object(schema, depth);
      case "array":
        return this.#array(schema, depth);
      case "string":
        return this.#string(schema);
      case "integer":
      case "number":
      case "boolean":
      case "null":
        return type;
      default:
        throw invalid("the JSON schema has a type that does not exist");
    }
  }

  #values(values: readonly unknown[]): string {
    if (values.length === 0) throw invalid("the JSON schema allows nothing");
    if (values.length > valuesMax) throw tooLarge();
    const trie = literalTrie(values.map((value) => JSON.stringify(value)));
    if (branchesOf(trie) > choicesMax) throw tooLarge();
    return this.#builder.rule("choice", oneOf(trie));
  }

  #choice(alternatives: readonly string[]): string {
    if (alternatives.length === 0) throw invalid("the JSON schema allows nothing");
    if (alternatives.length > choicesMax) throw tooLarge();
    return this.#builder.rule("choice", alternatives.join(" | "));
  }

  #string(schema: Json): string {
    const bounds = repetition(schema["minLength"], schema["maxLength"]);
    return bounds === "*" ? "string" : this.#builder.rule("string", `"\\"" char${bounds} "\\""`);
  }

  #array(schema: Json, depth: number): string {
    const item = this.#inside(schema["items"] ?? true, depth);
    const minimum = count(schema["minItems"]) ?? 0;
    const maximum = count(schema["maxItems"]);
    if (maximum === 0) return `"[]"`;
    const more = repetition(Math.max(0, minimum - 1), maximum === undefined ? undefined : maximum - 1);
    const items = `${item} (ws "," ws ${item})${more} ws`;
    return this.#builder.rule("array", `"[" ws ${minimum > 0 ? items : `(${items})?`} "]"`);
  }

  /**
   * Returns the rule of an object: declared properties in their order, optional or not, then others if the schema has
   * rules for them.
   */
  #object(schema: Json, depth: number): string {
    const properties = Object.entries(isObject(schema["properties"]) ? schema["properties"] : {});
    const others = schema["additionalProperties"];
    if (schema["properties"] === undefined && (others === undefined || others === true)) return "object";
    const required = new Set(Array.isArray(schema["required"]) ? (schema["required"] as unknown[]) : []);
    // Two chains of rules, built from the end: what may follow the start, and what may follow a member.
    let [first, next] = this.#others(others, depth);
    if (properties.filter(([name]) => !required.has(name)).length > choicesMax) throw tooLarge();
    for (const [name, property] of properties.toReversed()) {
      const member = `${literal(JSON.stringify(name))} ":" ws ${this.#inside(property, depth)}`;
      const [firstWithout, nextWithout] = required.has(name) ? ["", ""] : [` | ${first}`, ` | ${next}`];
      first = this.#builder.rule("first", `${member} ${next}${firstWithout}`);
      next = this.#builder.rule("next", `ws "," ws ${member} ${next}${nextWithout}`);
    }
    return this.#builder.rule("object", `"{" ws ${first} ws "}"`);
  }

  #others(schema: unknown, depth: number): [string, string] {
    if (schema === undefined || schema === false) return [`""`, `""`];
    const member = schema === true ? "member" : `(string ":" ws ${this.#inside(schema, depth)})`;
    const next = this.#builder.rule("others", `(ws "," ws ${member})*`);
    return [this.#builder.rule("others", `(${member} ${next})?`), next];
  }

  /** Returns the rule of a value inside an object or an array. */
  #inside(schema: unknown, depth: number): string {
    const outside = this.#entered;
    this.#entered = new Set();
    const rule = this.#visit(schema, depth + 1);
    this.#entered = outside;
    return rule;
  }

  /** Returns the rule of a reference. Its name exists before its text, because a schema may contain itself. */
  #reference(pointer: string, depth: number): string {
    if (this.#entered.has(pointer)) throw invalid("a $ref of the JSON schema leads to itself");
    const known = this.#references.get(pointer);
    if (known !== undefined) return known;
    const name = this.#builder.reserve("ref");
    this.#references.set(pointer, name);
    this.#entered.add(pointer);
    this.#builder.define(name, this.#visit(this.#resolve(pointer), depth + 1));
    this.#entered.delete(pointer);
    return name;
  }

  #resolve(pointer: string): unknown {
    if (pointer !== "#" && !pointer.startsWith("#/")) throw invalid("a $ref of the JSON schema leads out of it");
    let at = this.#document;
    for (const part of pointer.split("/").slice(1)) {
      const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
      at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
    }
    if (at === undefined) throw invalid("a $ref of the JSON schema leads nowhere");
    return at;
  }

  #merged(schema: Json, parts: readonly unknown[]): Json {
    const { allOf: _, ...own } = schema;
    let merged: Json = own;
    for (const part of parts) {
      const other = isObject(part) && typeof part["$ref"] === "string" ? this.#resolve(part["$ref"]) : part;
      if (!isObject(other)) throw invalid("the JSON schema must be an object");
      this.#builder.step(membersOf(merged) + membersOf(other));
      merged = {
        ...merged,
        ...other,
        ...(isObject(merged["properties"]) && {
          properties: { ...merged["properties"], ...(other["properties"] as object) },
        }),
        ...(Array.isArray(merged["required"]) && {
          required: [...(merged["required"] as unknown[]), ...((other["required"] as unknown[] | undefined) ?? [])],
        }),
      };
    }
    return merged;
  }
}

/**
 * Returns the only alternative of a `oneOf` if it is a bare type or, with a comment alone, any value. The rest of the
 * schema is for the model, and would cost too much as a grammar.
 */
function onlyType(either: unknown): Json | undefined {
  if (!Array.isArray(either) || either.length !== 1 || !isObject(either[0])) return undefined;
  return ["type", "$comment"].includes(Object.keys(either[0]).join()) ? either[0] : undefined;
}

/** Returns the number of members that are copied when the schema is merged with another one. */
function membersOf({ properties, required, ...others }: Json): number {
  const named = isObject(properties) ? Object.keys(properties).length : 0;
  return Object.keys(others).length + named + (Array.isArray(required) ? required.length : 0);
}

function guessedType(schema: Json): string | undefined {
  if (isObject(schema["properties"])) return "object";
  return schema["items"] === undefined ? undefined : "array";
}

function count(value: unknown): number | undefined {
  return Number.isInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

function repetition(minimum: unknown, maximum: unknown): string {
  const least = Math.min(count(minimum) ?? 0, repetitionsMax);
  const most = count(maximum);
  if (most === undefined || most > repetitionsMax) return least === 0 ? "*" : `{${least},}`;
  if (most < least) throw invalid("the JSON schema has a maximum below its minimum");
  return `{${least},${most}}`;
}
