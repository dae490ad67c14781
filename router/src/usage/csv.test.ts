import { expect, test } from "vitest";
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
  ["plain-name", "plain-name"],
])("the cell %s is written %s", (cell, written) => {
  expect(csvLine([cell, null, 5])).toBe(`${written},,5\r\n`);
});
