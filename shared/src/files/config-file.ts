import { distance } from "fastest-levenshtein";
import type { Static, TSchema } from "typebox";
import { Value } from "typebox/value";
import { LineCounter, parseDocument, type Document } from "yaml";
import { readForStart, StartError } from "./start-error.ts";

/** A mistake in a YAML file and how to correct it. `line` counts from 1. It is 0 if the mistake has no line. */
export interface Mistake {
  readonly line: number;
  readonly message: string;
}

export type Checked<T> =
  | { readonly value: T; readonly mistakes: [] }
  | { readonly value?: undefined; readonly mistakes: Mistake[] };

/** A place in the file, as a path of keys and indexes, and the message about it. */
export type Finding = readonly [path: readonly (string | number)[], message: string];

/** Checks rules that a schema cannot express, on a value that matches the schema. */
type Judge<T> = (value: T) => Iterable<Finding>;

/**
 * Fills missing keys with their defaults from the schema, and checks YAML text against it. Finds every mistake with its
 * line, and the nearest known key for an unknown one.
 */
export function checkYaml<Schema extends TSchema>(
  text: string,
  schema: Schema,
  judge: Judge<Static<Schema>> = () => [],
): Checked<Static<Schema>> {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  if (document.errors.length > 0) {
    return {
      mistakes: document.errors.map((error) => ({
        line: error.linePos?.[0].line ?? 0,
        message:
          error.code === "DUPLICATE_KEY"
            ? `the key "${keyAt(text, error.pos[0])}" is written twice`
            : error.message.split("\n")[0]!.replace(/ at line.*$/, ""),
      })),
    };
  }
  const value: unknown = Value.Default(schema, document.toJS() ?? {});
  if (Value.Check(schema, value)) {
    const wrong = locate(text, judge(value as Static<Schema>));
    return wrong.length > 0 ? { mistakes: wrong } : { value: value as Static<Schema>, mistakes: [] };
  }
  const mistakes = new Map<string, Mistake>();
  for (const error of Value.Errors(schema, value) as Iterable<SchemaError>) {
    for (const [path, message] of explain(error, schema, value)) {
      const key = path.join("/");
      if (!mistakes.has(key)) mistakes.set(key, { line: lineOf(document, lines, path), message });
    }
  }
  return { mistakes: [...mistakes.values()].sort((a, b) => a.line - b.line) };
}

function keyAt(text: string, position: number): string {
  return /^[^:\n]*/.exec(text.slice(position))![0].trim();
}

/** Turns findings into mistakes with line numbers, sorted by line. */
export function locate(text: string, findings: Iterable<Finding>): Mistake[] {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const lineAt = (path: Finding[0]) => lineOf(document, lines, path.map(String));
  return [...findings].map(([path, message]) => ({ line: lineAt(path), message })).sort((a, b) => a.line - b.line);
}

/** Reads a file like `checkYaml`. Throws `StartError` if it has mistakes. */
export function loadYaml<Schema extends TSchema>(
  file: string,
  schema: Schema,
  judge?: Judge<Static<Schema>>,
): Static<Schema> {
  const { value, mistakes } = checkYaml(readForStart(file).toString(), schema, judge);
  if (mistakes.length > 0) throw new StartError(formatMistakes(file, mistakes).join("; "));
  return value as Static<Schema>;
}

/** Runs `run`. Returns its `StartError` as a finding at `path`, or nothing. */
export function whatFails(path: Finding[0], run: () => unknown): Finding[] {
  try {
    run();
    return [];
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return [[path, error.message]];
  }
}

/** The findings of `check-config` about one file. */
export interface Verdict {
  readonly file: string;
  readonly mistakes: readonly Mistake[];
  /** Findings that do not prevent the program from starting. */
  readonly warnings: readonly Mistake[];
}

export function verdictLines({ file, mistakes, warnings }: Verdict): readonly string[] {
  const warned = warnings.map(({ line, message }) => ({ line, message: `warning: ${message}` }));
  return [...formatMistakes(file, [...mistakes, ...warned]), ...(mistakes.length === 0 ? [`${file} is fine`] : [])];
}

export function formatMistakes(file: string, mistakes: readonly Mistake[]): string[] {
  return mistakes.map(({ line, message }) => (line > 0 ? `${file}:${line}: ${message}` : `${file}: ${message}`));
}

/** Returns the most similar known word, or undefined if none is similar enough. `word` itself is not among them. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const best = known.toSorted((a, b) => distance(word, a) - distance(word, b))[0];
  const distanceMax = Math.min(word.length - 1, Math.max(2, word.length / 3));
  return best !== undefined && distance(word, best) <= distanceMax ? best : undefined;
}

type Path = readonly string[];

interface SchemaError {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: Record<string, unknown>;
  readonly message: string;
}

function* explain(error: SchemaError, schema: TSchema, value: unknown): Iterable<[Path, string]> {
  const path = pathOf(error.instancePath);
  const name = path.join(".");
  switch (error.keyword) {
    case "boolean":
      return;
    case "additionalProperties": {
      const known = Object.keys(
        (valueAt(schema, pathOf(error.schemaPath)) as { properties?: object })?.properties ?? {},
      );
      for (const key of error.params["additionalProperties"] as string[]) {
        const near = nearest(key, known);
        const hint = near ? `did you mean "${near}"?` : `known here: ${known.join(", ")}`;
        yield [[...path, key], `unknown key "${[...path, key].join(".")}"; ${hint}`];
      }
      return;
    }
    case "required":
      for (const key of error.params["requiredProperties"] as string[])
        yield [[...path, key], `"${[...path, key].join(".")}" is missing`];
      return;
    case "enum": {
      const allowed = error.params["allowedValues"] as unknown[];
      const near = nearest(String(valueAt(value, path)), allowed.map(String));
      yield [path, `"${name}" must be one of ${allowed.join(", ")}${near ? `; did you mean "${near}"?` : ""}`];
      return;
    }
    default: {
      const message = error.keyword === "type" ? typeText(error.params["type"], valueAt(value, path)) : error.message;
      yield [path, name === "" ? `the file ${message}` : `"${name}" ${message}`];
    }
  }
}

const typeTexts: Readonly<Record<string, string>> = {
  ...{ object: "must have keys and values", array: "must be a list", boolean: "must be true or false" },
  ...{ number: "must be a number", integer: "must be a whole number", string: "must be a text" },
};

function typeText(type: unknown, value: unknown): string {
  const isUnquoted = type === "string" && (typeof value === "number" || typeof value === "boolean");
  return `${typeTexts[String(type)] ?? `must be ${String(type)}`}${isUnquoted ? ": put it in quotes" : ""}`;
}

function pathOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function valueAt(root: unknown, path: Path): unknown {
  let at = root;
  for (const part of path) at = (at as Record<string, unknown> | undefined)?.[part];
  return at;
}

/** Returns the line of `path`, or of its deepest part that exists. */
function lineOf(document: Document, lines: LineCounter, path: Path): number {
  for (let length = path.length; length > 0; length--) {
    const key = path[length - 1]!;
    const parent = document.getIn(path.slice(0, length - 1).map(indexOrKey), true) as { items?: unknown[] } | undefined;
    const pair = parent?.items?.find((item) => String((item as { key?: { value?: unknown } }).key?.value) === key);
    const range =
      (pair as { key?: { range?: [number, ...number[]] } } | undefined)?.key?.range ??
      nodeRange(document, path.slice(0, length));
    if (range) return lines.linePos(range[0] ?? 0).line;
  }
  return 1;
}

function nodeRange(document: Document, path: Path): readonly number[] | undefined {
  return (document.getIn(path.map(indexOrKey), true) as { range?: readonly number[] } | undefined)?.range ?? undefined;
}

function indexOrKey(part: string): string | number {
  return /^\d+$/.test(part) ? Number(part) : part;
}
