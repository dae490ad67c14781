import { expect, test } from "vitest";
import { createRandom } from "@weiche/shared/random.ts";
import { csvLine } from "./csv.ts";

test.each([
  ["=1+1", "'=1+1"],
  ["+49", "'+49"],
  ["-x", "'-x"],
  ["@sum", "'@sum"],
  [" =1", "' =1"],
  ["＝1", "'＝1"],
  ['a"b', '"a""b"'],
  ["a,b;c", '"a,b;c"'],
  ["=a,b", `"'=a,b"`],
  ["a;=HYPERLINK(1)", `"a;'=HYPERLINK(1)"`],
  ['a;"=1', `"a;'""=1"`],
  ["a; \u00a0@x;+y", `"a;' \u00a0@x;'+y"`],
  ["a\n-1", `"a\n'-1"`],
  ["a\t＝1", `"a\t'＝1"`],
  ["\u200b=1", "'\u200b=1"],
  ["\ta", `"'\ta"`],
  ["\r=1", `"'\r'=1"`],
  ["\0a", "'\0a"],
  ["a;b-c=d", '"a;b-c=d"'],
  ['{"a":-1,"b":[2,-3]}', '"{""a"":-1,""b"":[2,-3]}"'],
  ["plain-name", "plain-name"],
])("the cell %s is written as %s", (cell, written) => {
  expect(csvLine([cell, null, 5])).toBe(`${written},,5\r\n`);
});

/** Splits a line into cells as a spreadsheet does: quotes count only at the beginning of a cell. */
function cellsOf(text: string, separator: string): string[] {
  const cells = [""];
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    const isDouble = isQuoted && character === '"' && text[at + 1] === '"';
    if (isDouble) at++;
    else if (
      character === '"' &&
      (isQuoted || text[at - 1] === undefined || [separator, "\n"].includes(text[at - 1]!))
    ) {
      isQuoted = !isQuoted;
      continue;
    } else if (!isQuoted && (character === separator || character === "\n" || character === "\r")) {
      cells.push("");
      continue;
    }
    cells[cells.length - 1] += character;
  }
  return cells;
}

test.each([",", ";", "\t"])("no cell begins with a formula in a spreadsheet that splits lines at %j", (separator) => {
  const random = createRandom(7);
  const pieces = ["=", "+", "-", "@", "＝", ";", '"', "'", "\t", "\r", "\n", " ", "\0", "a", "1"];
  const text = () => Array.from({ length: random.below(6) }, () => random.pick(pieces)).join("");
  for (let n = 0; n < 5_000; n++) {
    const cells = ["x", text(), "x", text(), "x"];
    const formulas = cellsOf(csvLine(cells), separator).filter((cell) => /^[\s\p{Cc}]*[=+\-@＝]/u.test(cell));
    expect({ cells, formulas }).toEqual({ cells, formulas: [] });
  }
});
