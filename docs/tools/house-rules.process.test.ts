/** Rules about the source code. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter((file) => /\.tsx?$/.test(file) && !file.startsWith("proto/gen/") && existsSync(join(root, file)));
const source = new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]));
/** Tests of the whole system and what only they use. */
const wholeSystem = /^e2e\/(billing|clients|engines|links|operation|routers)\//;
const production = files.filter(
  (file) => !isTest(file) && /^(shared|router(\/portal-web)?|node-agent(\/embedded-engine)?)\/src\//.test(file),
);

function isTest(file: string): boolean {
  return file.endsWith(".test.ts") || /\/(test|testing|fixtures)\//.test(file) || wholeSystem.test(file);
}

/** Lists the imports of a file as paths from the root, and packages by their names. */
function importsOf(file: string, pattern = /(?:from|import)\s*\(?\s*["']([^"']+)["']/g): string[] {
  return [...source.get(file)!.matchAll(pattern)].map(([, specifier]) => {
    if (specifier!.startsWith(".")) return relative(root, resolve(root, dirname(file), specifier!));
    if (specifier === "@weiche/proto/words.ts") return "proto/words.ts";
    if (specifier!.startsWith("@weiche/proto/")) return specifier!.replace("@weiche/proto/", "proto/gen/");
    const workspace = /^@weiche\/([a-z-]+)\/(.*)$/.exec(specifier!);
    return workspace ? `${workspace[1]}/${workspace[1] === "shared" ? "src/" : ""}${workspace[2]}` : specifier!;
  });
}

test("imports run one way: proto and shared, then node-agent and embedded engine, then router, of which the simulator alone imports the agent's slots, then e2e, then benchmarks", () => {
  const forbidden: Record<string, RegExp> = {
    shared: /^(router|node-agent|benchmarks|e2e|deploy|docs|proto)\//,
    // The simulator runs the production slot, so it may import what the slot and its reports are made of.
    router: /^(node-agent|benchmarks|e2e|deploy|docs)\//,
    "router/portal-web": /^(shared|proto|node-agent|benchmarks|e2e|deploy|docs)\//,
    "node-agent": /^(router|benchmarks|e2e|deploy|docs|node-agent\/embedded-engine)\//,
    "node-agent/embedded-engine": /^(proto|router|benchmarks|e2e|deploy|docs|node-agent\/(?!embedded-engine))\//,
  };
  const workspaceOf = (file: string) => file.slice(0, file.indexOf("/src/"));
  const isOfSlot = (to: string) =>
    /^node-agent\/src\/(slots|engines\/engine|config\/config|links\/load|profile\/(profile-file|step-fit))\b/.test(to);
  const maySimulate = (file: string, to: string) => file.startsWith("router/src/simulate/") && isOfSlot(to);
  const against = production.flatMap((file) =>
    importsOf(file)
      .filter((to) => forbidden[workspaceOf(file)]!.test(to) && !maySimulate(file, to))
      .map((to) => `${file} -> ${to}`),
  );
  const fromWholeSystem = files
    .filter((file) => file.startsWith("e2e/"))
    .flatMap((file) => importsOf(file).map((to) => `${file} -> ${to}`))
    .filter((arrow) => arrow.includes("-> benchmarks/"));
  expect([...against, ...fromWholeSystem]).toEqual([]);
});

test("slot and placement exist once, so that the simulator answers with the code that decides", () => {
  const simulating = files.filter((file) => /^(shared|router|node-agent|e2e|benchmarks)\//.test(file));
  const declares = (file: string) => /\bfunction (transition|place)\b/.test(source.get(file)!);
  const declared = simulating.filter(declares);
  expect(declared.toSorted()).toEqual(["node-agent/src/slots/slot.ts", "router/src/nodes/placement.ts"]);
});

test("the pages in the browser import only types, route addresses and usage columns from the router", () => {
  const data = ["router/src/surface/contract/addresses.ts", "router/src/usage/usage-columns.ts"];
  expect(data.flatMap((file) => importsOf(file))).toEqual([]);
  const statements = /^(?:import|export)\s(?!type\b)[^;]*?from\s*"([^"]*)"/gm;
  const pages = files.filter((file) => file.startsWith("router/portal-web/src/"));
  expect(pages.length).toBeGreaterThan(20);
  const taken = pages.flatMap((file) => importsOf(file, statements).filter((to) => to.startsWith("router/src/")));
  expect([...new Set(taken)].toSorted()).toEqual(data);
});

describe("folders import only folders that precede them", () => {
  const page = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
  /**
   * Reads the folders of a workspace from the page's table. A step that is not a folder's name means the files beside
   * the folders, `.`.
   */
  const foldersOf = (workspace: string) =>
    new RegExp(`^\\| \`${workspace}\` \\| (.*) \\|$`, "m")
      .exec(page)![1]!
      .split(";")[0]!
      .split(" → ")
      .map((step) => /^`([\w-]+)`$/.exec(step)?.[1] ?? ".");
  const order = ["shared", "router", "router/portal-web", "node-agent"].map(
    (name) => [`${name}/src`, foldersOf(name)] as const,
  );
  test.each(order)("%s: %j", (base, folders) => {
    const folderOf = (file: string) => relative(base, file).split("/").slice(0, -1)[0] ?? ".";
    const place = (file: string) => folders.indexOf(folderOf(file));
    const inside = production.filter((file) => file.startsWith(`${base}/`) && !isTest(file));
    expect(inside.filter((file) => place(file) < 0)).toEqual([]);
    const against = inside.flatMap((file) =>
      importsOf(file)
        .filter((to) => to.startsWith(`${base}/`) && place(to) > place(file))
        .map((to) => `${file} -> ${to}`),
    );
    expect(against).toEqual([]);
  });
});

test("functions in ARCHITECTURE.md exist in the files beside them", () => {
  const page = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
  const named = [...page.matchAll(/\]\(([\w/.-]+\.ts)\) `(#?\w+)`/g)].map(([, file, name]) => [file!, name!] as const);
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter(([file, name]) => !new RegExp(`(?<!\\w)${name}\\b`).test(source.get(file) ?? ""))).toEqual([]);
});

test("the code names every rule of a slot in ARCHITECTURE.md by its number, and no other", () => {
  const page = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
  const begin = page.indexOf("\n### The rules of a slot\n");
  const section = page.slice(begin, page.indexOf("\n## ", begin));
  const rules = [...section.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number));
  expect(rules.length).toBeGreaterThan(10);
  expect(rules).toEqual(rules.map((_, index) => index + 1));
  const slot = production.filter((file) => /^node-agent\/src\/slots\/slot[^/]*\.ts$/.test(file));
  const named = new Set(
    slot.flatMap((file) => [...source.get(file)!.matchAll(/\brule (\d+)\b/gi)].map(([, n]) => Number(n))),
  );
  expect([...named].toSorted((a, b) => a - b)).toEqual(rules);
});

test("no files import each other in a circle, not even types", () => {
  // A file that is imported later by `import()` may import its importer.
  const pattern = /(?:from|import)\s*["']([^"']+)["']/g;
  const importing = new Map(files.map((file) => [file, importsOf(file, pattern).filter((to) => source.has(to))]));
  // A file without remaining imports or importers is in no circle.
  for (let size = -1; size !== importing.size;) {
    size = importing.size;
    const imported = new Set([...importing.values()].flat());
    for (const [file, to] of importing)
      if (!imported.has(file) || !to.some((each) => importing.has(each))) importing.delete(file);
  }
  expect([...importing.keys()]).toEqual([]);
});

test("the top folders are the eight of ARCHITECTURE.md, and hidden ones that tools require", () => {
  const all = execFileSync("git", ["ls-files"], { cwd: root, encoding: "utf8" }).split("\n");
  const folders = new Set(all.filter((file) => file.includes("/")).map((file) => file.split("/")[0]!));
  const ours = ["benchmarks", "deploy", "docs", "e2e", "node-agent", "proto", "router", "shared"];
  expect([...folders].filter((folder) => !folder.startsWith(".")).toSorted()).toEqual(ours);
});

test("no folder has more than 23 source files", () => {
  const sizes = Map.groupBy(
    production.filter((file) => !isTest(file)),
    dirname,
  );
  expect([...sizes].filter(([, inside]) => inside.length > 23).map(([folder]) => folder)).toEqual([]);
});

// The agent's state machine and the router's placement share the protocol's words for a slot, which saves a type on
// either
// side. Texts for people and files on disk have their own words.
test("generated types are used only by slots, nodes and links", () => {
  const users = production.filter((file) => importsOf(file).some((to) => to.startsWith("proto/gen/")));
  expect(users.filter((file) => !/^(router\/src\/nodes|node-agent\/src\/(slots|links))\//.test(file))).toEqual([]);
});

test("every file is imported by another or started by name", () => {
  const imported = new Set(files.flatMap((file) => importsOf(file)));
  const started = [
    ...source.values(),
    readFileSync(join(root, "package.json"), "utf8"),
    ...texts(/\.(ya?ml|js|mjs|service|sh|md)$/),
  ].join("\n");
  const alone = files.filter(
    (file) =>
      !isTest(file) &&
      !imported.has(file) &&
      !started.includes(file) &&
      !started.includes(file.split("/").slice(1).join("/")),
  );
  const starts = ["vite.config.ts", "src/main.tsx", "src/console/main.tsx"].map((file) => `router/portal-web/${file}`);
  const named = ["vitest.config.ts", ...starts];
  expect(alone.filter((file) => !named.includes(file) && !file.endsWith(".d.ts"))).toEqual([]);
});

test("every export is used by a file that imports it", () => {
  const importers = new Map<string, string[]>();
  for (const file of files)
    for (const to of importsOf(file)) importers.set(to, [...(importers.get(to) ?? []), source.get(file)!]);
  const exported = /^export (?:async |abstract )*(?:function\*?|class|const|let|interface|type) (\w+)/gm;
  const unused = files.flatMap((file) =>
    [...source.get(file)!.matchAll(exported)]
      .map(([, name]) => name!)
      .filter((name) => !importers.get(file)?.some((importer) => new RegExp(`\\b${name}\\b`).test(importer)))
      .map((name) => `${file}: ${name}`),
  );
  expect(unused).toEqual([]);
});

describe("time and chance are arguments", () => {
  const edge = /(^shared\/src\/time\/clock\.ts|\/main\.ts|^node-agent\/embedded-engine\/|^router\/portal-web\/)/;
  test.each(["Date.now(", "Math.random(", "new Date()", "setInterval("])("%s appears in edge files only", (call) => {
    expect(production.filter((file) => !edge.test(file) && source.get(file)!.includes(call))).toEqual([]);
  });
  test("setTimeout appears in edge files only", () => {
    expect(production.filter((file) => !edge.test(file) && /(?<![.\w])setTimeout\(/.test(source.get(file)!))).toEqual(
      [],
    );
  });
});

test("a timer or run that is kept with ??= is a SingleFlight, or is listed here with the code that clears it", () => {
  // If it is not cleared in time, wishes during the work are forgotten, and the timer is never armed again.
  const cleared: Record<string, string> = {
    "node-agent/src/answer/engine-connections.ts":
      "the callback clears it, and arms it anew while a connection is kept",
    "node-agent/src/links/data-link.ts": "the callback clears it, then looks again",
    "node-agent/src/links/router-links.ts": "the callback clears it, and the work is done in the same turn",
    "node-agent/src/outbox/outbox-writer.ts": "the callback clears it, and each sync waits for the one before",
    "shared/src/http/request-turns.ts": "it ends the connection",
    "shared/src/time/patience.ts":
      "the callback and stop() clear it, and start() arms it again while somebody is waited for",
    "shared/src/time/silence.ts": "it is armed anew until the peer has fallen silent, or nobody listens any more",
    "shared/src/program/systemd-notify.ts": "it continues until the program ends",
  };
  const kept = /\?\?=[^;]*?(\.after\(|\bevery\(|\.finally\()/;
  expect(production.filter((file) => kept.test(source.get(file)!)).toSorted()).toEqual(Object.keys(cleared).toSorted());
});

test("a test has one of the kinds that run in its file's name, or none", () => {
  const kind = /^[\w-]+(\.(process|database|e2e|browser|nightly))?\.test\.ts$/;
  expect(files.filter((file) => file.includes(".test.ts") && !kind.test(file.split("/").at(-1)!))).toEqual([]);
});

test("every variable of the environment is documented", () => {
  const documented = texts(/\.md$/).join("\n");
  const used = new Set(production.flatMap((file) => source.get(file)!.match(/WEICHE_[A-Z_]+/g) ?? []));
  expect([...used].filter((name) => !documented.includes(name))).toEqual([]);
});

test("every error code is documented", () => {
  const documented = texts(/\.md$/).join("\n");
  const codes = [...source.get("shared/src/errors.ts")!.matchAll(/code: "([a-z_]+)"/g)].map(([, code]) => code!);
  expect(codes.length).toBeGreaterThan(5);
  expect(codes.filter((code) => !documented.includes(code))).toEqual([]);
});

test("files stay short and have telling names", () => {
  const linesMax = (file: string) => (isTest(file) ? 450 : 320);
  expect(files.filter((file) => source.get(file)!.trimEnd().split("\n").length > linesMax(file))).toEqual([]);
  expect(files.filter((file) => /(^|\/)(utils?|helpers?|types|common|misc)(\/|\.tsx?$)/.test(file))).toEqual([]);
});

test("every decision has its own number, which its title contains", () => {
  const pages = readdirSync(join(root, "docs/decisions")).filter((name) => /^\d{4}-/.test(name));
  const numbers = pages.map((name) => name.slice(0, 4));
  expect(numbers.filter((number, at) => numbers.indexOf(number) !== at)).toEqual([]);
  const title = (name: string) => readFileSync(join(root, "docs/decisions", name), "utf8").split("\n")[0]!;
  expect(pages.filter((name) => !title(name).startsWith(`# ${Number(name.slice(0, 4))}. `))).toEqual([]);
});

function texts(pattern: RegExp): string[] {
  const names = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  }).split("\n");
  return names
    .filter((name) => pattern.test(name) && existsSync(join(root, name)))
    .map((name) => readFileSync(join(root, name), "utf8"));
}
