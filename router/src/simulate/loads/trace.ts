/** Reads a trace file as a load. The whole file is checked first, so that a simulation never ends at a bad line. */
import { formatMistakes, nearest, type Mistake } from "@weiche/shared/files/config-file.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import type { Load, LoadRequest } from "../load.ts";
import { openLines, type Lines } from "./lines.ts";
import { formatOf, type TraceFormat } from "./trace-formats.ts";
import { LineFault, type TraceRow } from "./trace-row.ts";

export interface TraceOptions {
  /** The model of all requests, if the trace does not name models. */
  readonly model?: string | undefined;
  /** The known models. Undefined if any name is accepted. */
  readonly models?: readonly string[] | undefined;
}

export interface Trace {
  readonly format: string;
  readonly load: Load;
  /** When the load begins, in milliseconds after midnight. 0 if the trace does not contain it. */
  readonly startsAtMs: number;
  /** The time from the first to the last request, and one millisecond. */
  readonly durationMs: number;
  readonly requests: number;
  /** Requests of the trace that have failed and are left out. */
  readonly failed: number;
  /** Sentences that name each fact that the trace lacks. */
  readonly assumed: readonly string[];
}

type CheckedTrace =
  | { readonly trace: Trace; readonly mistakes: readonly [] }
  | { readonly trace?: undefined; readonly mistakes: readonly Mistake[] };

const mistakesMax = 10;
const dayMs = 86_400_000;
/** Times that differ by more than this are a gap, such as a holiday, or a week without records. */
const gapMsMax = dayMs;
const gapsMax = 3;

/** Checks every line. Throws `StartError` with the mistakes. */
export function openTrace(file: string, options: TraceOptions = {}): Trace {
  const { trace, mistakes } = checkTrace(file, options);
  if (!trace) throw new StartError(formatMistakes(file, mistakes).join("; "));
  return trace;
}

/** Throws `StartError` if the file cannot be read. */
export function checkTrace(file: string, options: TraceOptions): CheckedTrace {
  const lines = openLines(file);
  const first = firstOf(lines);
  if (first === undefined || first === "") return { mistakes: [{ line: 1, message: "the file has no requests" }] };
  const format = formatOf(first);
  if (typeof format === "string") return { mistakes: [{ line: 1, message: format }] };
  const check = new TraceCheck(options);
  for (const numbered of rowsOf(lines, format)) if (!check.take(numbered)) break;
  const { mistakes, firstMs, lastMs, requests, failed } = check;
  if (mistakes.length > 0) return { mistakes };
  if (requests === 0) return { mistakes: [{ line: 1, message: "the file has no requests" }] };
  return {
    mistakes: [],
    trace: {
      ...{ format: format.name, durationMs: lastMs - firstMs + 1, requests, failed, assumed: check.assumed(format) },
      startsAtMs: format.hasInstants ? firstMs % dayMs : 0,
      load: { [Symbol.iterator]: () => requestsOf(() => rowsOf(lines, format), { file, firstMs, options }) },
    },
  };
}

interface NumberedRow {
  readonly line: number;
  /** Undefined if the request failed. A text describes a mistake in the line. */
  readonly row: TraceRow | string | undefined;
}

function firstOf(lines: Lines): string | undefined {
  for (const line of lines()) return line;
  return undefined;
}

function* rowsOf(lines: Lines, { hasHeading, reader }: TraceFormat): Generator<NumberedRow, void, undefined> {
  const readLine = reader();
  let line = 0;
  for (const text of lines()) {
    line++;
    if ((hasHeading && line === 1) || text === "") continue;
    yield { line, row: rowOf(readLine, text) };
  }
}

function rowOf(readLine: (text: string) => TraceRow | undefined, text: string): NumberedRow["row"] {
  try {
    return readLine(text);
  } catch (error) {
    if (error instanceof LineFault) return error.message;
    throw error;
  }
}

function* requestsOf(
  rows: () => Iterable<NumberedRow>,
  { file, firstMs, options }: { readonly file: string; readonly firstMs: number; readonly options: TraceOptions },
): Generator<LoadRequest, void, undefined> {
  const { model = "" } = options;
  for (const { line, row } of rows()) {
    if (typeof row === "string") throw new StartError(`${file}:${line}: ${row} (the file has changed since its check)`);
    if (row === undefined) continue;
    const { timeMs, account = "unknown", model: named = model, inputTokens, outputTokens, conversation } = row;
    const request = { atMs: timeMs - firstMs, account, model: named, inputTokens, outputTokens };
    yield conversation === undefined ? request : { ...request, conversation };
  }
}

/** Finds mistakes of a trace row by row. */
class TraceCheck {
  readonly mistakes: Mistake[] = [];
  firstMs = 0;
  lastMs = 0;
  requests = 0;
  failed = 0;
  readonly #options: TraceOptions;
  readonly #unknown = new Set<string>();
  readonly #gaps: string[] = [];
  #hasAccounts = true;
  #hasModels = true;

  constructor(options: TraceOptions) {
    this.#options = options;
  }

  /** Returns whether further mistakes are collected. */
  take({ line, row }: NumberedRow): boolean {
    const found = typeof row === "string" ? [row] : row === undefined ? this.#fail() : [...this.#judge(row, line)];
    for (const message of found) this.mistakes.push({ line, message });
    return this.mistakes.length < mistakesMax;
  }

  assumed({ name }: TraceFormat): string[] {
    return [
      ...(this.#hasModels ? [] : [`${name} names no models: every request is for ${this.#options.model}`]),
      ...(this.#hasAccounts ? [] : [`${name} names no accounts: all requests come from one account`]),
      ...this.#gaps,
    ];
  }

  #fail(): [] {
    this.failed++;
    return [];
  }

  *#judge(row: TraceRow, line: number): Generator<string, void, undefined> {
    const { timeMs, account, model } = row;
    if (this.requests++ === 0) this.firstMs = timeMs;
    else if (timeMs < this.lastMs)
      yield `the time goes back by ${seconds(this.lastMs - timeMs)}: sort the lines by time`;
    else if (timeMs - this.lastMs > gapMsMax && this.#gaps.length < gapsMax)
      this.#gaps.push(
        `nothing happens for ${((timeMs - this.lastMs) / dayMs).toFixed(1)} days before line ${line}: nobody asked for anything`,
      );
    this.lastMs = timeMs;
    this.#hasAccounts &&= account !== undefined;
    this.#hasModels &&= model !== undefined;
    const fault = this.#faultOfModel(model ?? this.#options.model);
    if (fault !== undefined) yield fault;
  }

  /** Reports each unknown model once. */
  #faultOfModel(model: string | undefined): string | undefined {
    const known = this.#options.models;
    if (model === undefined)
      return this.requests > 1
        ? undefined
        : "the trace names no model: give one with --model, or with `model` of the load in the plan";
    if (known === undefined || known.includes(model) || this.#unknown.has(model)) return undefined;
    this.#unknown.add(model);
    const near = nearest(model, known);
    return `unknown model "${model}"; ${near === undefined ? `known are ${known.join(", ")}` : `did you mean "${near}"?`}`;
  }
}

function seconds(ms: number): string {
  return `${Number((ms / 1_000).toFixed(3))} s`;
}
