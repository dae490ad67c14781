/** Reads the inputs of a request: a text or token ids, or an array of them. */
import { invalid } from "@weiche/shared/errors.ts";

export type Text = string | readonly number[];

export function readTexts(value: unknown, param: string, most: number): readonly Text[] {
  if (value == null) throw invalid(param, "is required");
  const texts: readonly unknown[] = Array.isArray(value) && !isTokens(value) ? value : [value];
  if (texts.length > 0 && texts.length <= most && texts.every(isText)) return texts;
  throw invalid(param, `must be a text that is not empty, or token ids, or an array of at most ${most} of them`);
}

function isText(value: unknown): value is Text {
  return typeof value === "string" ? value !== "" : isTokens(value);
}

function isTokens(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.length > 0 && value.every((token) => Number.isInteger(token) && token >= 0);
}
