/** The pages that people write agree with the programs and with each other: commands, links and the index of decisions. */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { createProgram } from "../../router/src/surface/cli/cli.ts";

const root = join(import.meta.dirname, "../..");

test("the page for operators has every command of `weiche` with its required options, and no others", () => {
  const page = readFileSync(join(root, "docs/runbook.md"), "utf8");
  const section = page.slice(page.indexOf("\n## Commands\n"), page.indexOf("\n### The agent's commands\n"));
  const usages = [...section.matchAll(/\*\*`([^`]+)`\*\*/g)].flatMap(spelledOut);
  expect(usages.length).toBeGreaterThan(60);
  const commands = commandsOf(createProgram({}));
  const isUsageOf = (usage: string, { name, needs }: CommandName) =>
    `${usage} `.startsWith(`${name} `) && needs.every((option) => usage.includes(`${option} `));
  expect(commands.filter((command) => !usages.some((usage) => isUsageOf(usage, command)))).toEqual([]);
  expect(usages.filter((usage) => !commands.some((command) => isUsageOf(usage, command)))).toEqual([]);
});

interface CommandName {
  readonly name: string;
  /** Options. */
  readonly needs: readonly string[];
}

function commandsOf({ commands, options }: Command, name = ""): CommandName[] {
  const own = { name: name.trim(), needs: options.filter(({ mandatory }) => mandatory).map(({ long }) => long!) };
  const below = commands.flatMap((command) => commandsOf(command, `${name} ${command.name()}`));
  // `audit` also works without a subcommand.
  return commands.length === 0 || options.length > 0 ? [...(name === "" ? [] : [own]), ...below] : below;
}

/** Splits usages with alternatives, such as `user block|unblock ID`. */
function spelledOut([, usage]: RegExpMatchArray): string[] {
  const [, before, words, after] = /^((?:[a-z-]+ )?)([a-z-]+(?:\|[a-z-]+)+)(.*)$/.exec(usage!) ?? [];
  return words === undefined ? [usage!] : words.split("|").map((word) => `${before}${word}${after}`);
}

const pagesForPeople = [
  ...[
    "README",
    "ARCHITECTURE",
    "CONTRIBUTING",
    "SECURITY",
    "CHANGELOG",
    "benchmarks/README",
    "e2e/README",
    "e2e/sim/README",
  ],
  ...[
    "deploy/README",
    "deploy/grafana/README",
    "router/README",
    "node-agent/README",
    "node-agent/embedded-engine/README",
  ],
  ...["README", "install", "configuration", "runbook", "calls", "api", "metrics"].map((name) => `docs/${name}`),
  "router/portal-web/README",
  ...readdirSync(join(root, "docs/contributors")).map((name) => `docs/contributors/${name.replace(/\.md$/, "")}`),
].map((page) => `${page}.md`);

test("files that the pages for operators and contributors link to exist", () => {
  const missing = pagesForPeople.flatMap((page) => {
    const text = readFileSync(join(root, page), "utf8");
    const links = [...text.matchAll(/\]\((?!https?:)([^)#]+)[^)]*\)/g)].map(([, to]) =>
      resolve(root, dirname(page), to!),
    );
    // `node_modules` exists only after an installation, `node/` and `bin/` only in the tarball.
    const installed = [...text.matchAll(/\/opt\/weiche\/((?!node_modules|node\/|bin\b)[\w./@-]+)/g)].map(([, to]) =>
      join(root, to!),
    );
    return [...links, ...installed].filter((file) => !existsSync(file)).map((file) => `${page}: ${file}`);
  });
  expect(missing).toEqual([]);
});

test("every link to a heading finds that heading", () => {
  const headings = new Map<string, ReadonlySet<string>>();
  const headingsOf = (file: string) => headings.getOrInsertComputed(file, () => anchorsOf(readFileSync(file, "utf8")));
  const links = pagesForPeople.flatMap((page) =>
    [...readFileSync(join(root, page), "utf8").matchAll(/\]\(([\w./-]*\.md)?#([^)]+)\)/g)].map(([, to, anchor]) => ({
      from: page,
      to: to === undefined ? join(root, page) : resolve(root, dirname(page), to),
      anchor: anchor!,
    })),
  );
  expect(links.filter(({ to, anchor }) => !headingsOf(to).has(anchor))).toEqual([]);
  expect(links.length).toBeGreaterThan(30);
});

/** Returns GitHub's anchors of headings: lower case, without punctuation, with hyphens for spaces. */
function anchorsOf(page: string): ReadonlySet<string> {
  const headings = [...page.replaceAll(/^```.*?^```$/gms, "").matchAll(/^#+ (.+)$/gm)];
  return new Set(
    headings.map(([, text]) =>
      text!
        .toLowerCase()
        .replaceAll(/[^\w -]/g, "")
        .replaceAll(" ", "-"),
    ),
  );
}

test("the index of decisions has each decision once, by its title", () => {
  const folder = join(root, "docs/decisions");
  const index = readFileSync(join(folder, "README.md"), "utf8");
  const named = [...index.matchAll(/^- (\d+): \[(.+)\]\((\S+)\)$/gm)].map(
    ([, id, title, file]) => `${file}: # ${id}. ${title}`,
  );
  const there = readdirSync(folder)
    .filter((file) => /^\d/.test(file))
    .map((file) => `${file}: ${readFileSync(join(folder, file), "utf8").split("\n")[0]}`);
  expect(named.toSorted()).toEqual(there.toSorted());
});
