/**
 * Finds the tests that prove a claim. Their titles end with the claim's id: "a key counts once [A1 S3.2]". A title of
 * `describe` covers all tests inside, and a row of a table may have ids too. Only sources are read, and no test runs.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";

/** `title`: with the titles of its blocks, without ids. `…` stands for what is not in the source. */
export interface ClaimedTest {
  readonly file: string;
  readonly title: string;
  readonly ids: readonly string[];
}

interface ClaimedTests {
  readonly tests: readonly ClaimedTest[];
  /** Texts with ids that are no title of a test. */
  readonly mistakes: readonly string[];
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** A call of `test` or `describe`. `table`: the rows for `each` or `for`. */
interface Block {
  readonly call: Node;
  readonly title: Node;
  readonly table: Node | undefined;
}

const ids = / \[((?:[A-Z]\d+(?:\.\d+)?(?: |(?=\])))+)\]/;
const root = join(import.meta.dirname, "../..");

export function claimedTests(): ClaimedTests {
  const files = ["benchmarks", "deploy", "docs", "e2e", "node-agent", "router", "shared"]
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((file) => join(folder, file)),
    )
    .filter((file) => /\.tsx?$/.test(file) && !file.includes("node_modules"))
    .sort();
  const found = files.map((file) => claimedIn(file, readFileSync(join(root, file), "utf8")));
  return { tests: found.flatMap(({ tests }) => tests), mistakes: found.flatMap(({ mistakes }) => mistakes) };
}

export function claimedIn(file: string, source: string): ClaimedTests {
  if (!ids.test(source)) return { tests: [], mistakes: [] };
  const nodes = nodesOf(parseAst(source, { lang: file.endsWith("x") ? "tsx" : "ts" }) as unknown as Node);
  const blocks = nodes.flatMap((node) => blockOf(node, nodes) ?? []);
  const tests: ClaimedTest[] = [];
  const mistakes: string[] = [];
  for (const text of nodes.filter(({ type }) => type === "Literal" || type === "TemplateLiteral")) {
    const words = textOf(text);
    const named = ids.exec(words)?.[1]?.split(" ");
    if (named === undefined) continue;
    const block = blocks.find(({ title, table }) => title === text || (table !== undefined && isIn(text, table)));
    if (block === undefined) mistakes.push(`no test has this title in ${file}: ${words}`);
    else tests.push({ file, title: titleOf(block, text, blocks), ids: named });
  }
  return { tests, mistakes };
}

function titleOf(block: Block, text: Node, blocks: readonly Block[]): string {
  const around = blocks.filter((other) => other !== block && isIn(block.call, other.call));
  const own = textOf(block.title);
  const ofRow = text === block.title ? own : own.replace(/%s|\$\w+|^%\w/, () => textOf(text));
  return [...around.map(({ title }) => textOf(title)), ofRow].map(shown).join(" > ");
}

function shown(title: string): string {
  return title.replace(new RegExp(ids, "g"), "").replaceAll(/%[sijdfo]|\$\w+/g, "…");
}

function blockOf(node: Node, nodes: readonly Node[]): Block | undefined {
  if (node.type !== "CallExpression") return undefined;
  const [title] = node["arguments"] as readonly Node[];
  if (title?.type !== "Literal" && title?.type !== "TemplateLiteral") return undefined;
  const callee = node["callee"] as Node;
  if (!/^(test|it|describe)\b/.test(nameOf(callee))) return undefined;
  const [table] = callee.type === "CallExpression" ? (callee["arguments"] as readonly Node[]) : [];
  return { call: node, title, table: table?.type === "Identifier" ? constantOf(table, nodes) : table };
}

/** Returns `test.each` for the callee of `test.each(rows)("title", …)`. */
function nameOf(callee: Node): string {
  if (callee.type === "Identifier") return callee["name"] as string;
  if (callee.type === "MemberExpression") return nameOf(callee["object"] as Node);
  return callee.type === "CallExpression" ? nameOf(callee["callee"] as Node) : "";
}

function constantOf({ name }: Node, nodes: readonly Node[]): Node | undefined {
  return nodes.find(({ type, id }) => type === "VariableDeclarator" && (id as Node)["name"] === name);
}

function textOf(text: Node): string {
  if (text.type === "Literal") return String(text["value"]);
  return (text["quasis"] as readonly { value: { cooked: string } }[]).map(({ value }) => value.cooked).join("…");
}

function isIn(inner: Node, outer: Node): boolean {
  return outer.start <= inner.start && inner.end <= outer.end;
}

function nodesOf(value: unknown): Node[] {
  if (Array.isArray(value)) return value.flatMap(nodesOf);
  if (typeof value !== "object" || value === null || !("type" in value)) return [];
  return [value as Node, ...Object.values(value).flatMap(nodesOf)];
}
