/**
 * Draws random sentences of the project, for a reader who judges each one alone: comments, test titles, texts in the
 * code and pages. Usage: `node docs/tools/draw-sentences.ts [--seed N] [--count N] [PATH…]`; each PATH is the beginning
 * of a file's path.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createRandom } from "@weiche/shared/random.ts";

interface Sentence {
  readonly where: string;
  readonly kind: "comment" | "title" | "text" | "page";
  readonly words: string;
}

const root = join(import.meta.dirname, "../..");
const { values, positionals: paths } = parseArgs({
  options: { seed: { type: "string", default: "1" }, count: { type: "string", default: "200" } },
  allowPositionals: true,
});

const listed = execFileSync("git", ["ls-files"], { cwd: root, encoding: "utf8" }).split("\n");
const isOurs = (file: string) =>
  /\.(tsx?|mjs|md)$/.test(file) &&
  !/^(proto\/gen|benchmarks\/results)\/|\/(promises|conformance|THIRD-PARTY)\.md$/.test(file);
const files = listed.filter(
  (file) => isOurs(file) && (paths.length === 0 || paths.some((path) => file.startsWith(path))),
);
const random = createRandom(Number(values.seed));
const all = files.flatMap((file) => sentencesOf(file));
const drawn = all
  .map((sentence) => ({ sentence, at: random.next() }))
  .toSorted((a, b) => a.at - b.at)
  .slice(0, Number(values.count));
for (const [index, { sentence }] of drawn.entries())
  console.log(`${index + 1}. ${sentence.words}\n   (${sentence.kind}, ${sentence.where})`);

function sentencesOf(file: string): readonly Sentence[] {
  const content = readFileSync(join(root, file), "utf8");
  if (file.endsWith(".md")) return ofPage(file, content);
  return [...ofComments(file, content), ...ofStrings(file, content)];
}

function ofComments(file: string, content: string): readonly Sentence[] {
  const blocks = content.matchAll(/\/\*\*?([\s\S]*?)\*\/|((?:^[ \t]*\/\/.*\n)+)|[ \t]\/\/ (.+)$/gm);
  return [...blocks].flatMap(({ index, 1: block, 2: lines, 3: end }) => {
    const text = (block ?? lines ?? end ?? "").replaceAll(/^[ \t]*(\*|\/\/) ?/gm, "");
    return split(text).map((words) => ({
      where: `${file}:${lineAt(content, index)}`,
      kind: "comment" as const,
      words,
    }));
  });
}

/** Strings that read as sentences, and the first argument of each test. */
function ofStrings(file: string, content: string): readonly Sentence[] {
  const strings = content.matchAll(/(\b(?:test|describe)[\w.]*(?:\([^()]*\))?\(\s*)?(["`])((?:(?!\2|\n|\\).)+)\2/g);
  return [...strings].flatMap(({ index, 1: call, 3: words }) => {
    if (call === undefined && !/^\S+( \S+){4,}$/.test(words!)) return [];
    const kind = call === undefined ? ("text" as const) : ("title" as const);
    return [{ where: `${file}:${lineAt(content, index)}`, kind, words: words! }];
  });
}

function ofPage(file: string, content: string): readonly Sentence[] {
  const prose = content.replaceAll(/^```[\s\S]*?^```/gm, "");
  return prose
    .split(/\n\s*\n|\n(?=[-*|#\d])|\|/)
    .flatMap((paragraph) => split(paragraph.replaceAll(/\]\([^)]*\)/g, "]")))
    .map((words) => ({ where: file, kind: "page" as const, words }));
}

/** Sentences of four words and more. */
function split(text: string): readonly string[] {
  return text
    .replaceAll(/\s+/g, " ")
    .split(/(?<=[.!?])\s+(?=[A-Z`"])/)
    .map((words) => words.trim())
    .filter((words) => /^\S+( \S+){3,}$/.test(words));
}

function lineAt(content: string, index: number): number {
  return content.slice(0, index).split("\n").length;
}
