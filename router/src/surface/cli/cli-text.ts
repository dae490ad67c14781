/** The texts that `weiche` prints: a list as a table, an item as its fields. Removes terminal sequences from texts. */
import { plainText } from "@weiche/shared/program/plain-text.ts";
import { formatTable, type Cell } from "@weiche/shared/program/table.ts";

/** How options name an account, a user and a key. */
export const accountHelp = "the account's id, the start of its id, or its name";
export const userHelp = "the user's id, the start of their id, or their e-mail address";

/** A table of the named columns of each item, narrowed to the width. */
export function listText(items: readonly object[], columns: readonly string[], width?: number): string {
  if (items.length === 0) return "none";
  return formatTable(
    columns.map((column) => column.replace(/([A-Z])/g, " $1").toUpperCase()),
    items.map((item) => columns.map((column) => cell((item as Record<string, unknown>)[column]))),
    width,
  );
}

/** The fields of an item that have a value, one per line. */
export function itemText(item: object): string {
  const fields = Object.entries(item).filter(([, value]) => value !== null && value !== undefined);
  const width = Math.max(0, ...fields.map(([name]) => name.length));
  return fields.map(([name, value]) => `${name.padEnd(width)}  ${cell(value)}`).join("\n");
}

/** Breaks a line between words. Further lines begin with `indent`. */
export function wrapped(line: string, indent = "", width: number = 80): string {
  const lines: string[] = [];
  for (const word of line.split(/(?<=\S) /)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(last === undefined ? word : indent + word);
  }
  return lines.join("\n");
}

/** Keeps numbers as numbers, because the table aligns them to the right. */
function cell(value: unknown): Cell {
  if (value === null || value === undefined || typeof value === "number") return value;
  if (Array.isArray(value)) return value.map(cell).join(", ");
  if (typeof value === "object")
    return Object.entries(value)
      .map(([name, part]) => `${name} ${cell(part)}`)
      .join(" ");
  return plainText(typeof value === "string" ? value : JSON.stringify(value));
}
