/** Text tables: columns padded to their widest cell, numbers aligned to the right. */
import { plainText } from "./plain-text.ts";

export type Cell = string | number | undefined | null;

/** A column is not narrowed below this. */
const narrowest = 6;

/**
 * Absent values are shown as `–`. `width`: of the terminal, in characters. A table that is wider has its widest columns
 * narrowed first, where `…` stands for what is left out; what still does not fit is cut.
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

/** `text` with at most `width` characters; a text that is longer ends with `…`. */
export function shortened(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

/** The widths of columns, the widest narrowed until all fit or none can be narrowed further. */
function fitted(widths: number[], width: number): readonly number[] {
  const gaps = 2 * (widths.length - 1);
  for (let over = widths.reduce((all, one) => all + one, gaps) - width; over > 0; over--) {
    const widest = Math.max(...widths);
    if (widest <= narrowest) break;
    widths[widths.indexOf(widest)]!--;
  }
  return widths;
}
