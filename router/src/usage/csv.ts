/** Writes one line of CSV: commas, quotes where needed, CRLF. */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

/**
 * Places where a spreadsheet could read a formula: at the start of a text, and after a semicolon, tab or line break.
 * Excel with German settings splits lines at semicolons and ignores our quotes, because they do not begin its cell.
 */
const formulaStart = /(^|[;\t\r\n])(?=(?:(?![\t\r\n])["\s\p{Cc}\p{Cf}])*[=+\-@＝＋－＠])/gu;
/** OWASP also lists these characters as risky at the start of a cell. */
const riskyFirst = /^[\t\r\n\0]/;

function csvCell(cell: string | number | null): string {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  const text = cell.replace(formulaStart, "$1'").replace(riskyFirst, "'$&");
  return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
