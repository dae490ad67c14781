/** Replaces a page's generated parts between their marks. The text around them is written by hand. */

/**
 * Returns the page with these parts in their places, by name: `<!-- begin NAME: made by PROGRAM -->` … `<!-- end NAME
 * -->`. Throws if a part has no place.
 */
export function withMade(page: string, parts: Readonly<Record<string, string>>, program: string): string {
  return Object.entries(parts).reduce((text, [name, part]) => {
    const [begin, end] = [`<!-- begin ${name}: made by ${program} -->`, `<!-- end ${name} -->`];
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`the page has no place for ${name}: ${begin} … ${end}`);
    return `${text.slice(0, from + begin.length)}\n\n${part}\n${text.slice(to)}`;
  }, page);
}

export function list(items: readonly string[]): string {
  return `${items.map((item) => `- ${item}`).join("\n")}\n`;
}
