/** The pages that people write agree with the programs and with each other: commands, links and the index of decisions. */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { createProgram } from "../../router/src/surface/cli/cli.ts";
import { pages } from "./page-list.ts";

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

test("files that the pages link to exist", () => {
  const missing = pages.flatMap((page) => {
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
  const links = pages.flatMap((page) =>
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

describe("decisions", () => {
  const folder = join(root, "docs/decisions");
  const index = readFileSync(join(folder, "README.md"), "utf8");
  const files = readdirSync(folder).filter((file) => /^\d/.test(file));
  const textOf = (file: string) => readFileSync(join(folder, file), "utf8");

  test("the index has each decision once, by its title", () => {
    const named = [...index.matchAll(/^- (\d+): \[(.+)\]\((\S+)\)(?:, (?:changed|overtaken) by .+)?$/gm)].map(
      ([, id, title, file]) => `${file}: # ${id}. ${title}`,
    );
    const there = files.map((file) => `${file}: ${textOf(file).split("\n")[0]}`);
    expect(named.toSorted()).toEqual(there.toSorted());
  });

  /** A line under the title, such as `**Changed by [35](0035-fair-places.md)**: accounts share the places.` */
  const change = /^\*\*(Changed|Overtaken) by (\[.+\]\(.+\))\*\*: .+\.$/;
  const changes = files.map((file) => {
    const lines = textOf(file).split("\n").slice(2);
    const under = lines.slice(0, lines.indexOf(""));
    const named = under.flatMap((line) => [...(change.exec(line)?.[2]!.matchAll(/\[(\d+)\]\(([^)]+)\)/g) ?? [])]);
    return { file, under, later: named.map(([, id, to]) => ({ id: Number(id), to: to! })) };
  });
  const changed = changes.filter(({ later }) => later.length > 0);

  test("a line about a change stands under the title and links to later decisions that exist", () => {
    const wrong = changed.filter(
      ({ file, under, later }) =>
        under.some((line) => !change.test(line)) ||
        later.some(
          ({ id, to }) => id <= Number(file.slice(0, 4)) || id !== Number(to.slice(0, 4)) || !files.includes(to),
        ),
    );
    expect(wrong).toEqual([]);
    const elsewhere = changes.filter(({ file, under }) => {
      const inPage = [...textOf(file).matchAll(/\*\*(Changed|Overtaken) by/g)];
      return inPage.length !== under.filter((line) => change.test(line)).length;
    });
    expect(elsewhere).toEqual([]);
    expect(changed.length).toBeGreaterThan(10);
  });

  test("the index marks the decisions that later ones change, and no others", () => {
    const marked = [...index.matchAll(/\]\((\S+)\), (changed|overtaken) by (.+)$/gm)].map(
      ([, file, kind, ids]) => `${file} ${kind} by ${ids}`,
    );
    const said = changed.map(({ file, under, later }) => {
      const kind = under.some((line) => line.startsWith("**Overtaken")) ? "overtaken" : "changed";
      return `${file} ${kind} by ${later.map(({ id }) => id).join(", ")}`;
    });
    expect(marked.toSorted()).toEqual(said);
  });
});
