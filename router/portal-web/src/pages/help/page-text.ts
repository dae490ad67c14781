/** Parses docs/api.md into blocks for the portal, for the subset of Markdown that this page uses. */

export type Inline =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "link"; readonly to: string; readonly words: readonly Inline[] };

export type Block =
  | { readonly kind: "heading"; readonly level: number; readonly id: string; readonly text: string }
  | { readonly kind: "paragraph"; readonly words: readonly Inline[] }
  | { readonly kind: "list"; readonly items: readonly (readonly Inline[])[] }
  | {
      readonly kind: "table";
      readonly columns: readonly string[];
      readonly rows: readonly (readonly (readonly Inline[])[])[];
    };

/** A link to the document that the portal serves stays. A link to another file becomes its text. */
const served: Readonly<Record<string, string>> = { "openapi.yaml": "/openapi.json" };

/** Parses the text. Throws for unknown Markdown, so that the portal never shows it as plain text. */
export function readPage(markdown: string): readonly Block[] {
  const withoutMarks = markdown.replaceAll(/^<!-- .* -->$/gm, "");
  const chunks = withoutMarks.split(/\n{2,}/).map((chunk) => chunk.trim());
  return chunks.filter((chunk) => chunk !== "").map(readBlock);
}

function readBlock(chunk: string): Block {
  const lines = chunk.split("\n");
  const heading = /^(#{1,3}) (.+)$/.exec(chunk);
  if (heading) return { kind: "heading", level: heading[1]!.length, id: anchorOf(heading[2]!), text: heading[2]! };
  if (lines.every((line) => line.startsWith("- ")))
    return { kind: "list", items: lines.map((line) => readWords(line.slice(2))) };
  if (lines.length > 2 && lines.every((line) => /^\|.*\|$/.test(line))) return readTable(lines);
  if (lines.length === 1 && /^[\p{L}\d`[]/u.test(chunk) && !/^\d+\. /.test(chunk))
    return { kind: "paragraph", words: readWords(chunk) };
  throw new Error(`the portal cannot show this part of api.md: ${chunk}`);
}

function readTable([head, , ...rows]: readonly string[]): Block {
  const cellsOf = (row: string) =>
    row
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll("\\|", "|"));
  return { kind: "table", columns: cellsOf(head!), rows: rows.map((row) => cellsOf(row).map(readWords)) };
}

function readWords(text: string): readonly Inline[] {
  if (text.includes("**")) throw new Error(`the portal cannot show this part of api.md: ${text}`);
  const parts = text.split(/(`[^`]+`|\[[^\]]+\]\([^)]+\))/).filter((part) => part !== "");
  return parts.flatMap((part): readonly Inline[] => {
    if (part.startsWith("`")) return [{ kind: "code", text: part.slice(1, -1) }];
    const link = /^\[(.+)\]\((.+)\)$/.exec(part);
    if (!link) return [{ kind: "text", text: part }];
    const words = readWords(link[1]!);
    const to = link[2]!.startsWith("#") ? link[2] : served[link[2]!];
    return to === undefined ? words : [{ kind: "link", to, words }];
  });
}

/** Returns a heading's anchor, as in Markdown links. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\d -]/gu, "")
    .replaceAll(" ", "-");
}
