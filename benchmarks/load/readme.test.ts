import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const read = (path: string) => readFileSync(join(import.meta.dirname, path), "utf8");

test("the README shows the table of the last whole bench, and the charts exist", () => {
  const readme = read("../README.md");
  expect(readme).toContain(read("../results/latest.md"));
  const pictures = [...readme.matchAll(/\]\((results\/[^)]+\.svg)\)/g)].map(([, path]) => path!);
  expect(pictures.length).toBeGreaterThan(0);
  for (const path of pictures) expect(read(`../${path}`)).toContain("<svg");
});
