/** The formats of trace files. A file shows its format in its first line. */
import { nearest } from "@weiche/shared/files/config-file.ts";
import { continuedConversations } from "./prompt-blocks.ts";
import { duration, instant, LineFault, optionalWord, tokens, word, type TraceRow } from "./trace-row.ts";

/** Reads a line after the heading. Returns undefined for a request that failed. Throws `LineFault`. */
type LineReader = (line: string) => TraceRow | undefined;

export interface TraceFormat {
  readonly name: string;
  /** Whether the first line names the columns. */
  readonly hasHeading: boolean;
  /** Whether times are instants, so that the hour of the day is known. */
  readonly hasInstants: boolean;
  /** Makes a reader for one pass through the file. */
  readonly reader: () => LineReader;
}

type Fields = Readonly<Record<string, unknown>>;

/** Returns the format, or a message about the mistake in the first line. */
export function formatOf(firstLine: string): TraceFormat | string {
  if (!firstLine.startsWith("{")) return csvFormat(firstLine.split(",").map((name) => name.trim()));
  let fields: Fields;
  try {
    fields = fieldsOf(firstLine);
  } catch (error) {
    return (error as LineFault).message;
  }
  const has = (name: string) => fields[name] !== undefined || nearest(name, Object.keys(fields)) !== undefined;
  return has("input_length") || !has("at") ? blocksFormat : ownFormat;
}

/** Whether a file with this first line is a trace, and surely no YAML. */
export function seemsTrace(firstLine: string): boolean {
  const format = formatOf(firstLine);
  return typeof format !== "string" && (format.hasHeading || /"(timestamp|at)":/.test(firstLine));
}

const csvFormats: readonly { readonly columns: readonly string[]; readonly of: (has: Set<string>) => CsvFormat }[] = [
  { columns: ["TIMESTAMP", "ContextTokens", "GeneratedTokens"], of: () => azure },
  {
    columns: ["Timestamp", "Model", "Request tokens", "Response tokens"],
    of: (has) => burstGpt(has.has("Session ID")),
  },
];

interface CsvFormat {
  readonly name: string;
  readonly hasInstants: boolean;
  readonly row: (fields: Fields) => TraceRow | undefined;
}

function csvFormat(names: readonly string[]): TraceFormat | string {
  const found = csvFormats.find(({ columns }) => columns.every((column) => names.includes(column)));
  if (!found) return unknownColumns(names);
  const { name, hasInstants, row } = found.of(new Set(names));
  const reader = (): LineReader => (line) => {
    const cells = line.split(",");
    if (cells.length !== names.length)
      throw new LineFault(`the line has ${cells.length} fields, but the heading has ${names.length}`);
    return row(Object.fromEntries(cells.map((cell, index) => [names[index]!, cell])));
  };
  return { name, hasHeading: true, hasInstants, reader };
}

/** Names the column that is missing from the format with most columns in common. */
function unknownColumns(names: readonly string[]): string {
  const missing = ({ columns }: (typeof csvFormats)[number]) => columns.filter((column) => !names.includes(column));
  const closest = csvFormats.toSorted((a, b) => missing(a).length - missing(b).length)[0]!;
  const [column] = missing(closest);
  if (missing(closest).length === closest.columns.length)
    return "unknown format: a trace is CSV with the columns of Azure or BurstGPT, or has a JSON object per line";
  const near = nearest(column!, names);
  return `the column "${column}" is missing${near === undefined ? "" : `; is "${near}" meant?`}`;
}

/** Azure's public traces name neither accounts nor models. */
const azure: CsvFormat = {
  name: "Azure CSV",
  hasInstants: true,
  row: (fields) => ({
    timeMs: instant(fields, "TIMESTAMP"),
    inputTokens: tokens(fields, "ContextTokens"),
    outputTokens: tokens(fields, "GeneratedTokens"),
  }),
};

/** Times are seconds since the midnight before the trace. A request without response tokens has failed. */
function burstGpt(hasSessions: boolean): CsvFormat {
  return {
    name: "BurstGPT CSV",
    hasInstants: true,
    row: (fields) => {
      const outputTokens = tokens(fields, "Response tokens");
      const timeMs = duration(fields, "Timestamp") * 1_000;
      const inputTokens = tokens(fields, "Request tokens");
      const session = hasSessions && fields["Session ID"] !== "" ? word(fields, "Session ID") : undefined;
      if (outputTokens === 0) return undefined;
      return {
        timeMs,
        model: word(fields, "Model"),
        account: session,
        inputTokens,
        outputTokens,
        conversation: session,
      };
    },
  };
}

/** Mooncake's format, and traces with its fields and those of accounts and models. Times are milliseconds. */
const blocksFormat: TraceFormat = {
  name: "JSON lines with lengths",
  hasHeading: false,
  hasInstants: false,
  reader: () => {
    const conversationOf = continuedConversations();
    return (line) => {
      const fields = fieldsOf(line);
      const inputTokens = tokens(fields, "input_length");
      return {
        timeMs: duration(fields, "timestamp"),
        ...{ account: optionalWord(fields, "account"), model: optionalWord(fields, "model") },
        ...{ inputTokens, outputTokens: tokens(fields, "output_length") },
        conversation: fields["hash_ids"] === undefined ? undefined : conversationOf(blocks(fields), inputTokens),
      };
    };
  },
};

function blocks(fields: Fields): readonly number[] {
  const ids = fields["hash_ids"];
  if (Array.isArray(ids) && ids.every((id) => Number.isSafeInteger(id))) return ids as number[];
  throw new LineFault('"hash_ids" must be a list of whole numbers');
}

/** What `weiche usage export --trace` writes. */
const ownFormat: TraceFormat = {
  name: "Weiche's trace",
  hasHeading: false,
  hasInstants: true,
  reader: () => (line) => {
    const fields = fieldsOf(line);
    return {
      timeMs: instant(fields, "at"),
      ...{ account: word(fields, "account"), model: word(fields, "model") },
      inputTokens: tokens(fields, "inputTokens"),
      outputTokens: tokens(fields, "outputTokens"),
    };
  },
};

function fieldsOf(line: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new LineFault("the line is not JSON");
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw new LineFault("the line is not a JSON object");
}
