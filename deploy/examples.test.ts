/** The example files for operators are valid, and agree with each other and with the documentation. */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { loadAgentConfig } from "../node-agent/src/config/config.ts";
import { servedBy } from "../node-agent/src/engines/engine.ts";
import { createProgram } from "../router/src/surface/cli/cli.ts";
import { loadCatalogue, loadRouterConfig } from "../router/src/config/config.ts";
import { createClientAddress } from "../router/src/edge/client-address.ts";

const here = import.meta.dirname;
const root = join(here, "..");

describe.each([
  ["production", here],
  ["npm start", join(here, "demo")],
])("the examples for %s", (_name, folder) => {
  const agent = () => loadAgentConfig(join(folder, "agent.yaml"), {});
  const router = () => loadRouterConfig(join(folder, "router.yaml"), {});

  test("have no mistakes", () => {
    expect(router().catalogueFile).toBe(join(folder, "catalogue.yaml"));
    expect(() => createClientAddress(router().limits.trustedProxies)).not.toThrow();
    expect(agent().slots.length).toBeGreaterThan(1);
  });

  test("serve exactly the catalogue's models, each once", () => {
    const served = agent().slots.flatMap(({ engines }) => engines.map(({ model }) => model));
    expect(served.toSorted()).toEqual([...loadCatalogue(router().catalogueFile).catalogue.keys()].toSorted());
  });
});

test("the example of an engine with LoRA adapters is read without a mistake, and serves all of its models", () => {
  const [slot] = loadAgentConfig(join(here, "examples/agent-lora.yaml"), {}).slots;
  expect(slot!.engines.flatMap(servedBy)).toEqual(["small-24b", "small-24b-sql", "small-24b-letters"]);
});

describe("vLLM in deploy/agent.yaml", () => {
  const { catalogue } = loadCatalogue(join(here, "catalogue.yaml"));
  const engines = loadAgentConfig(join(here, "agent.yaml"), {}).slots.flatMap((slot) => slot.engines);

  test.each(engines.map((engine) => [engine.model, engine] as const))(
    "%s has a command that matches its catalogue entry",
    (model, engine) => {
      const { launcher, sleepLevel, maxConcurrent } = engine;
      const { command, env } = launcher as Extract<typeof launcher, { kind: "process" }>;
      const { contextTokens, category, reasoning } = catalogue.get(model)!;
      expect(command).toContain(`--served-model-name=${model}`);
      expect(command).toContain(`--max-model-len=${contextTokens}`);
      expect(command).toContain(`--max-num-seqs=${maxConcurrent}`);
      expect(command.includes("--enable-sleep-mode")).toBe(sleepLevel !== undefined);
      expect(env["VLLM_SERVER_DEV_MODE"]).toBe(sleepLevel === undefined ? undefined : "1");
      const has = (flag: string) => command.some((part) => part.startsWith(`${flag}=`));
      const chats = category !== "embeddings";
      expect([has("--tool-call-parser"), command.includes("--enable-auto-tool-choice")]).toEqual([chats, chats]);
      expect(has("--reasoning-parser")).toBe(reasoning !== undefined && reasoning.mode !== "unavailable");
    },
  );
});

test("the page for operators has every command of `weiche` with its required options, and no others", () => {
  const page = readFileSync(join(here, "runbook.md"), "utf8");
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
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "deploy/grafana/README.md",
  ],
  ...["README", "INSTALL", "CONFIGURE", "RUNBOOK", "CALLS", "API", "METRICS", "CHANGELOG"].map(
    (name) => `deploy/${name}.md`,
  ),
  ...["router/README.md", "node-agent/README.md", "node-agent/embedded-engine/README.md"],
];

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
