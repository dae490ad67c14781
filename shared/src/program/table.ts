/** Text tables: columns padded to their widest cell, numbers aligned to the right. */
import { plainText } from "./plain-text.ts";

export type Cell = string | number | undefined | null;

/** Absent values are shown as `–`. */
export function formatTable(headers: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const text = rows.map((row) =>
    row.map((cell) => (cell === undefined || cell === null || cell === "" ? "–" : plainText(String(cell)))),
  );
  const widths = headers.map((header, column) =>
    Math.max(header.length, ...text.map((row) => row[column]?.length ?? 0)),
  );
  const numeric = headers.map((_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === "number"));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (numeric[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join("  ")
      .trimEnd();
  return [line(headers), line(widths.map((width) => "─".repeat(width))), ...text.map(line)].join("\n");
}
