/** Tests the themes, languages and widths of the console's pages that only the nightly run covers. */
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { faultyConsolePages, startVisitedConsole } from "./console-visits.ts";

const visited = await forThisFile(startVisitedConsole());

test.each([
  ["light", "de", 1280],
  ["dark", "en", 1280],
  ["dark", "de", 1280],
  ["light", "de", 1024],
  ["light", "en", 390],
  ["light", "de", 390],
  ["dark", "en", 390],
  ["dark", "de", 390],
  ["light", "en", 320],
  ["light", "de", 320],
  ["dark", "en", 320],
] as const)(
  "in %s, %s, %i pixels wide every page is clean [H9]",
  async (theme, language, width) => {
    expect(await faultyConsolePages(visited, theme, language, width)).toEqual([]);
  },
  60_000,
);
