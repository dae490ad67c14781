/** Compares YAML files by their content. */
import { hash } from "node:crypto";
import { parse } from "yaml";

/**
 * Returns 12 hexadecimal digits, the same for two texts with the same content, whatever their comments, order of keys
 * and format. Every version returns the same, because defaults of missing keys do not count.
 */
export function contentDigest(yaml: string): string {
  return hash("sha256", JSON.stringify(sorted(parse(yaml)))).slice(0, 12);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, sorted(each)]));
}
