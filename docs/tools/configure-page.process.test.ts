/** configuration.md explains every key of the files, with the defaults of the programs. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { loadAgentConfig } from "../../node-agent/src/config/config.ts";
import { loadRouterConfig } from "../../router/src/config/config.ts";
import { parseCatalogue } from "@weiche/shared/catalogue.ts";
import { configureFile, configurePage, isSection, keysOf, schemas, sectionsOf, topSection } from "./configure-page.ts";
import { variables } from "./variables.ts";

const folder = mkdtempSync(join(tmpdir(), "weiche-configure-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Files with every section that has defaults, and only its required keys. */
const engine = { model: "m", dialect: "vllm", command: ["vllm", "{port}"] };
const minimal = {
  "router.yaml": {
    catalogue: "c.yaml",
    ...Object.fromEntries("listen public portal retention credits limits".split(" ").map((name) => [name, {}])),
  },
  "agent.yaml": { node: "n", listen: {}, slots: [{ name: "a", memorySeconds: {}, engines: [engine] }] },
  "catalogue.yaml": {
    models: [
      {
        ...{ id: "m", category: "language", status: "Beta", contextTokens: 1 },
        factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 1 }],
        reasoning: { mode: "optional" },
        images: { max: 1, formats: ["png"] },
      },
    ],
    packages: [
      {
        name: "Solo",
        terms: [
          {
            ...{ validFrom: "2026-01-01T00:00:00+01:00", price: 1, credits: 1 },
            ...{ requestsPerMinute: 1, parallel: 1, support: true },
          },
        ],
      },
    ],
    changes: [{ at: "2026-12-01T00:00:00+01:00", text: { de: "x", en: "x" } }],
  },
};
/** The keys that an example of a section may leave out. */
const required = {
  "router.yaml": { catalogue: "c.yaml" },
  "agent.yaml": { node: "n", slots: minimal["agent.yaml"].slots },
  "catalogue.yaml": { models: minimal["catalogue.yaml"].models },
};
const load = {
  "router.yaml": (file: string) => loadRouterConfig(file, {}),
  "agent.yaml": (file: string) => loadAgentConfig(file, {}),
  "catalogue.yaml": (file: string) => parseCatalogue(readFileSync(file, "utf8")),
};

test("configuration.md is fresh (node docs/tools/configure-page.ts)", () => {
  const page = readFileSync(configureFile, "utf8");
  expect(configurePage(page)).toBe(page);
});

describe.each(["router.yaml", "agent.yaml", "catalogue.yaml"] as const)("%s", (name) => {
  const keys = keysOf(schemas[name]);

  function loaded(value: object): unknown {
    const file = join(folder, name);
    writeFileSync(file, stringify(value));
    return load[name](file);
  }

  test("every key has a description and a default", () => {
    expect(keys.length).toBeGreaterThan(25);
    const silent = keys.filter((key) => !isSection(key) && (key.schema.description?.length ?? 0) < 5);
    expect(silent.map(({ path }) => path)).toEqual([]);
    const unsaid = keys.filter(({ isRequired, schema }) => {
      const isSaid = schema.absent !== undefined || schema.default !== undefined;
      return schema.description !== undefined && !isRequired && !isSaid;
    });
    expect(unsaid.map(({ path }) => path)).toEqual([]);
    const withStop = keys.filter(({ schema }) => schema.description?.endsWith("."));
    expect(withStop.map(({ path }) => path)).toEqual([]);
  });

  test.each([...sectionsOf(schemas[name]).keys()])("the example of %s is accepted, and has the section", (section) => {
    const example = exampleOf(name, section);
    for (const secret of JSON.stringify(example).match(/[a-z]+-(password|token)(?=")/g) ?? [])
      writeFileSync(join(folder, secret), "0123456789abcdef", { mode: 0o600 });
    expect(mistakesIn(() => loaded({ ...required[name], ...example }))).toBe("[]");
    const path = section === topSection ? Object.keys(required[name])[0]! : section.replace(/\[\]$/, "");
    expect(valueAt(example, path)).toBeDefined();
  });

  test("an unknown key is refused in every section", () => {
    const sections = Object.entries<unknown>(minimal[name]).filter(([, value]) => typeof value === "object");
    expect(sections.length).toBeGreaterThan(1);
    const accepted = sections.filter(([section, value]) => {
      const wrong = withUnknownKey(value as object | readonly object[]);
      return !mistakesIn(() => loaded({ ...minimal[name], [section]: wrong })).includes("unknownKey");
    });
    expect(accepted).toEqual([]);
  });
});

/** Reads the example that precedes the list of a section's keys on the page. */
function exampleOf(file: string, section: string): object {
  const page = readFileSync(configureFile, "utf8");
  const before = page.slice(0, page.indexOf(`<!-- begin ${file} ${section}: `));
  const part = before.slice(before.lastIndexOf("\n### "));
  return parse(/```yaml\n(.*?)```/s.exec(part)![1]!) as object;
}

/** Adds a key to the section, or to the first section of a list. */
function withUnknownKey(section: object | readonly object[]): object {
  const [first] = Array.isArray(section) ? section : [];
  return first === undefined ? Object.assign({}, section, { unknownKey: 1 }) : [withUnknownKey(first as object)];
}

/** Reads a file. Returns the mistakes of a catalogue. Throws the mistakes of other files. */
function mistakesIn(read: () => unknown): string {
  try {
    return JSON.stringify((read() as { mistakes?: unknown[] }).mistakes ?? []);
  } catch (error) {
    return String(error);
  }
}

/** Returns the value at a key's path, in the first section of each list. */
function valueAt(file: unknown, path: string): unknown {
  const steps = path.replaceAll("[]", ".0").split(".");
  return steps.reduce((value, step) => (value as Record<string, unknown> | undefined)?.[step], file);
}

test("the page has exactly the variables that the programs read", () => {
  const root = join(import.meta.dirname, "../..");
  const folders = ["router/src", "node-agent/src", "node-agent/embedded-engine/src", "shared/src"];
  const said = execFileSync("git", ["grep", "-hoE", "WEICHE_[A-Z_]+", "--", ...folders, ":!*.test.ts"], {
    cwd: root,
    encoding: "utf8",
  });
  const named = new Set(said.trim().split("\n"));
  expect(Object.keys(variables).toSorted()).toEqual([...named].toSorted());
});
