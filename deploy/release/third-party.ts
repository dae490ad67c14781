/**
 * Lists third-party software in a release: packages of router, agent and embedded engine, packages that are built into
 * the portal's pages, and software inside binaries. `node deploy/release/third-party.ts` writes THIRD-PARTY.md.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { compare, dependenciesOfWorkspace, packagesOf, root, type Arch, type LockedPackage } from "./lock-file.ts";

export interface ThirdParty extends LockedPackage {
  /** Parts of Weiche that use it. */
  readonly parts: readonly string[];
}

interface InsideBinary {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly source: string;
  /** The package that contains it. */
  readonly package: string;
  readonly files?: readonly string[];
  /** Digests of Node.js's npm packages, which an install script fetches. */
  readonly integrity?: Readonly<Record<Arch, string>>;
  readonly note?: string;
}

const page = join(import.meta.dirname, "THIRD-PARTY.md");

/** The workspaces of each part. */
const workspacesOf: Readonly<Record<string, readonly string[]>> = {
  router: ["", "proto", "shared", "router"],
  "node-agent": ["", "proto", "shared", "node-agent"],
  "embedded engine": ["shared", "node-agent/embedded-engine"],
};

export function thirdParties(): readonly ThirdParty[] {
  const byPart: [part: string, packages: readonly LockedPackage[]][] = [
    ...Object.entries(workspacesOf).map(([part, workspaces]): [string, readonly LockedPackage[]] => [
      part,
      workspaces.flatMap((path) => packagesOf(path === "" ? ["node", "yaml"] : dependenciesOfWorkspace(path), path)),
    ]),
    ["portal", packagesOf(importedByPages(), "router")],
  ];
  const all = new Map<string, ThirdParty>();
  for (const [part, packages] of byPart)
    for (const each of packages) {
      const key = `${each.name}@${each.version}`;
      const parts = new Set([...(all.get(key)?.parts ?? []), part]);
      all.set(key, { ...(all.get(key) ?? each), parts: [...parts] });
    }
  return [...all.values()].toSorted((a, b) => compare(a.name, b.name) || compare(a.version, b.version));
}

export function insideBinaries(): readonly InsideBinary[] {
  return parse(readFileSync(join(import.meta.dirname, "inside-binaries.yaml"), "utf8")) as InsideBinary[];
}

/** Returns the text of THIRD-PARTY.md. */
export function thirdPartyPage(): string {
  const row = (...cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    "# Software of others in a release",
    "",
    "Made by `node deploy/release/third-party.ts` from package-lock.json and `inside-binaries.yaml`; `npm test` checks that it is fresh and that no licence demands that changes or users of Weiche be under it (copyleft). A release holds the texts in `licenses/`.",
    "",
    "## Packages",
    "",
    row("package", "version", "licence", "in"),
    row("---", "---", "---", "---"),
    ...thirdParties().map(({ name, version, license, parts }) => row(name, version, license, parts.join(", "))),
    "",
    "## Inside binaries",
    "",
    row("software", "version", "licence", "brought by", ""),
    row("---", "---", "---", "---", "---"),
    ...insideBinaries().map((one) =>
      row(`[${one.name}](${one.source})`, one.version, one.license, one.package, one.note ?? ""),
    ),
    "",
  ].join("\n");
}

/** Finds the packages that the portal's pages import, which are built into its files. */
function importedByPages(): ReadonlySet<string> {
  const pages = globSync("router/portal-web/src/**/*.{ts,tsx}", { cwd: root }).filter(
    (file) => !file.includes(".test."),
  );
  const texts = pages.map((file) => readFileSync(join(root, file), "utf8"));
  const imported = texts.flatMap((text) => [...text.matchAll(/^(?:import|export)\s[^;]*?from\s*"([^".][^"]*)";$/gm)]);
  return new Set(imported.map(([, specifier]) => /^(@[^/]+\/)?[^/]+/.exec(specifier!)![0]));
}

if (import.meta.main) writeFileSync(page, thirdPartyPage());
