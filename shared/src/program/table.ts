/** Text tables: columns padded to their widest cell, numbers aligned to the right. */
import { plainText } from "./plain-text.ts";

export type Cell = string | number | undefined | null;

/** A column is not narrowed below this. */
const narrowest = 6;

/**
 * Formats a table. Missing values are shown as `–`. `width`: the terminal's, in characters. In a wider table the widest
 * columns are narrowed first, with `…` for omitted text. Lines that still do not fit are cut.
 */
export function formatTable(
  headers: readonly string[],
  rows: readonly (readonly Cell[])[],
  width: number = Infinity,
): string {
  const text = rows.map((row) =>
    row.map((cell) => (cell === undefined || cell === null || cell === "" ? "–" : plainText(String(cell)))),
  );
  const numeric = headers.map((_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === "number"));
  const widths = fitted(
    headers.map((header, column) => Math.max(header.length, ...text.map((row) => row[column]?.length ?? 0))),
    width,
  );
  const line = (cells: readonly string[]) => {
    const padded = cells.map((cell, column) => {
      const shown = shortened(cell, widths[column]!);
      return numeric[column] ? shown.padStart(widths[column]!) : shown.padEnd(widths[column]!);
    });
    return shortened(padded.join("  ").trimEnd(), width);
  };
  return [line(headers), line(widths.map((each) => "─".repeat(each))), ...text.map(line)].join("\n");
}

/** Cuts a text to `width` characters. A cut text ends with `…`. */
export function shortened(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

/** Narrows the widest columns until all fit or none can be narrowed further. */
function fitted(widths: number[], width: number): readonly number[] {
  const gaps = 2 * (widths.length - 1);
  for (let over = widths.reduce((all, one) => all + one, gaps) - width; over > 0; over--) {
    const widest = Math.max(...widths);
    if (widest <= narrowest) break;
    widths[widths.indexOf(widest)]!--;
  }
  return widths;
}
