/** The contents of a release before packing, built twice in different folders. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, normalize } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { filesBelow } from "./copy.ts";
import { debianPackages, stagePackage } from "./debian-packages.ts";
import { arches, root } from "./lock-file.ts";
import { parts } from "./parts.ts";
import { archOf, filesOfOthers } from "./processor.ts";
import { maintainer } from "./release.ts";
import { buildTree, unitFor, type Release } from "./tree.ts";

const release: Release = {
  version: "7.8.9",
  made: new Date("2026-01-01T00:00:00Z"),
  maintainer: "Ada <ada@example.com>",
};
const arch = archOf(process.arch);
const folder = mkdtempSync(join(tmpdir(), "weiche-release-"));
const trees = [join(folder, "one"), join(folder, "elsewhere/two")];
const [tree] = trees as [string, string];

beforeAll(async () => {
  for (const each of trees) await buildTree(each, release, arch);
});
afterAll(() => rmSync(folder, { recursive: true }));

function describeFile(file: string): string {
  const stat = lstatSync(file);
  if (stat.isSymbolicLink()) return readlinkSync(file);
  return `${(stat.mode & 0o777).toString(8)} ${createHash("sha256").update(readFileSync(file)).digest("hex")}`;
}

function contents(folder: string): readonly (readonly [string, string])[] {
  return filesBelow(folder).map((file) => [file, describeFile(join(folder, file))]);
}

test("a checkout gives the same files, whatever folder it is built in [G7]", () => {
  const [one, two] = trees.map(contents);
  expect(one!.length).toBeGreaterThan(1000);
  expect(two).toEqual(one);
  expect(filesBelow(tree).filter((file) => readdirSync(join(tree, file, "..")).length === 0)).toEqual([]);
  const code = filesBelow(tree).filter((file) => /^[\w-]+\/lib\/[\w-]+\.js(\.map)?$/.test(file));
  expect(code.filter((file) => readFileSync(join(tree, file), "utf8").includes(folder))).toEqual([]);
  for (const { folder: part, programs } of Object.values(parts))
    for (const name of Object.keys(programs)) expect(code).toContain(`${part}/lib/${name}.js.map`);
});

test("every command runs through a link, without variables, on the release's own Node.js", () => {
  const commands = Object.values(parts).flatMap(({ commands: each }) => Object.keys(each));
  const links = join(folder, "links");
  for (const name of commands.filter((each) => each !== "weiche-embedded-engine")) {
    symlinkSync(join(tree, "bin", name), `${links}-${name}`);
    const { status, stdout, stderr } = spawnSync(`${links}-${name}`, ["--version"], {
      encoding: "utf8",
      cwd: "/",
      env: { PATH: "/usr/bin:/bin" },
    });
    expect([name, status, stdout, stderr]).toEqual([name, 0, "7.8.9\n", ""]);
  }
});

test("a release alone answers the plan of the page on capacity as the page shows", () => {
  const page = readFileSync(join(tree, "docs/capacity.md"), "utf8");
  const [, plan] = /^```yaml\n(models:\n.*?)^```$/ms.exec(page)!;
  const [, goals, shown] = /^\$ weiche simulate plan\.yaml (--goal[^\n]*)\n(.*?)^```$/ms.exec(page)!;
  const work = mkdtempSync(join(folder, "capacity-"));
  writeFileSync(join(work, "plan.yaml"), plan!);
  const { status, stdout } = spawnSync("sh", ["-c", `"${join(tree, "bin/weiche")}" simulate plan.yaml ${goals}`], {
    ...{ encoding: "utf8", cwd: work, env: { PATH: "/usr/bin:/bin" } },
  });
  expect(status).toBe(0);
  expect(stdout.slice(0, shown!.length)).toBe(shown);
  // The thread of the console's page on capacity.
  expect(existsSync(join(tree, "router/lib/own-worker.js"))).toBe(true);
});

test.each(["/opt/weiche", "/usr/lib/weiche"])("units for %s start programs that exist there", (prefix) => {
  for (const unit of ["weiche-router.service", "weiche-node-agent.service"]) {
    const [, node, program] = /^ExecStart=(\S+) (\S+)$/m.exec(unitFor(prefix, unit))!;
    expect(node).toBe(`${prefix}/node/bin/node`);
    expect(unitFor(prefix, unit)).toContain(`WorkingDirectory=${prefix}\n`);
    expect(existsSync(join(tree, node!.slice(prefix.length)))).toBe(true);
    expect(existsSync(join(tree, program!))).toBe(true);
  }
  const [, reload] = /^ExecReload=(\S+) catalogue reload$/m.exec(unitFor(prefix, "weiche-router.service"))!;
  expect(existsSync(join(tree, reload!.slice(prefix.length)))).toBe(true);
});

test("every link of a page points to a file of its package, and the pages for operators and clients lose no link", () => {
  const pages = filesBelow(tree).filter((file) => file.endsWith(".md"));
  const links = pages.flatMap((page) => {
    const text = readFileSync(join(tree, page), "utf8");
    return [...text.matchAll(/\]\((?!https?:|mailto:|#)([^)#\s]+)/g)].map(([, file]) => [page, file!] as const);
  });
  expect(links.length).toBeGreaterThan(100);
  expect(links).toContainEqual(["docs/install.md", "../deploy/haproxy.cfg"]);
  const runtime = debianPackages.find(({ name }) => name === "weiche-runtime")!;
  const isThere = (file: string) => existsSync(join(tree, file)) && runtime.owns(file);
  expect(pages.filter((page) => !runtime.owns(page))).toEqual([]);
  expect(links.filter(([page, file]) => !isThere(normalize(join(page, "..", file))))).toEqual([]);
  const whole = ["install", "configuration", "runbook", "api", "metrics"].map((name) => `docs/${name}.md`);
  for (const page of [...whole, "CHANGELOG.md"]) {
    const [here, there] = [root, tree].map((folder) => readFileSync(join(folder, page), "utf8"));
    expect([page, there === here]).toEqual([page, true]);
  }
});

test("programs and libraries are for this processor, and the build refuses others [G7]", () => {
  const [other] = arches.filter((one) => one !== arch);
  const binaries = filesOfOthers(tree, filesBelow(tree), other!);
  for (const file of ["node/bin/node", /\/native\/bin\/postgres$/, /\/llama-addon\.node$/])
    expect(binaries).toContainEqual(expect.stringMatching(file));
  expect(filesOfOthers(tree, filesBelow(tree), arch)).toEqual([]);
});

test("every file of the tree is in exactly one Debian package", () => {
  const owners = filesBelow(tree).map(
    (file) => [file, debianPackages.filter(({ owns }) => owns(file)).length] as const,
  );
  expect(owners.filter(([, count]) => count !== 1)).toEqual([]);
});

test("a Debian package has its units, its users, its examples as conffiles, and scripts without syntax errors", () => {
  for (const one of debianPackages) {
    const staged = join(folder, "debian", one.name);
    stagePackage(one, tree, staged, release, arch);
    const files = filesBelow(staged);
    const control = readFileSync(join(staged, "DEBIAN/control"), "utf8");
    expect(control).toMatch(/^Package: .*\nVersion: 7\.8\.9\nArchitecture: (amd64|arm64)\n/);
    expect(control).toContain("\nMaintainer: Ada <ada@example.com>\n");
    expect(control).not.toContain("$");
    for (const unit of one.units ?? []) expect(files).toContain(`usr/lib/systemd/system/${unit}`);
    const conffiles = files.includes("DEBIAN/conffiles") ? readFileSync(join(staged, "DEBIAN/conffiles"), "utf8") : "";
    expect(conffiles.split("\n").filter(Boolean).toSorted()).toEqual(
      files.filter((file) => file.startsWith("etc/")).map((file) => `/${file}`),
    );
    for (const script of files.filter((file) => /^DEBIAN\/p(re|ost)(inst|rm)$/.test(file))) {
      expect(spawnSync("sh", ["-n", join(staged, script)], { encoding: "utf8" }).stderr).toBe("");
      expect(readFileSync(join(staged, script), "utf8")).not.toMatch(/^\s*systemctl[^\n]* (start|enable) /m);
    }
  }
});

test("the maintainer is a name with an address, and cannot contain further fields", () => {
  expect(maintainer("Ada Lovelace <ada@example.com>")).toBe("Ada Lovelace <ada@example.com>");
  expect(maintainer()).toMatch(/\.invalid>$/);
  for (const wrong of ["", "ada@example.com", "Ada <ada>", "Ada <ada@example.com>\nDepends: x"])
    expect(() => maintainer(wrong)).toThrow("WEICHE_MAINTAINER");
});

test("the bill of materials lists every package once, with its digest from the lock file", () => {
  const { components } = JSON.parse(readFileSync(join(tree, "sbom.cdx.json"), "utf8")) as {
    components: { "bom-ref": string; name: string; version: string; hashes?: { content: string }[] }[];
  };
  expect(new Set(components.map((one) => one["bom-ref"])).size).toBe(components.length);
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, { integrity: string }>;
  };
  const fastify = components.find(({ name }) => name === "fastify")!;
  const digest = Buffer.from(fastify.hashes![0]!.content, "hex").toString("base64");
  expect(`sha512-${digest}`).toBe(lock.packages["node_modules/fastify"]!.integrity);
});

test("every third party in the tree has a licence text, or a note that it contains none", () => {
  const texts = readdirSync(join(tree, "licenses"));
  expect(texts.length).toBeGreaterThan(150);
  for (const file of texts)
    expect([file, readFileSync(join(tree, "licenses", file), "utf8").length > 40]).toEqual([file, true]);
  expect(readFileSync(join(tree, "node/LICENSE"), "utf8")).toContain("V8");
});
