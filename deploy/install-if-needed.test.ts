import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

let project: string;

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "weiche-install-"));
  mkdirSync(join(project, "deploy"));
  cpSync(join(import.meta.dirname, "install-if-needed.mjs"), join(project, "deploy/install-if-needed.mjs"));
  writeFileSync(join(project, "package-lock.json"), "{}");
});
afterEach(() => rmSync(project, { recursive: true }));

/** Installs with an npm that says its version; npm and npx repeat what they are asked for. */
function install(npmVersion: string) {
  const npm = `#!/bin/sh\n[ "$1" = --version ] && echo ${npmVersion} || echo "npm $@"\n`;
  writeFileSync(join(project, "npm"), npm, { mode: 0o755 });
  writeFileSync(join(project, "npx"), `#!/bin/sh\necho "npx $@"\n`, { mode: 0o755 });
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(project, "deploy/install-if-needed.mjs")], {
    encoding: "utf8",
    env: { PATH: `${project}:/bin:/usr/bin` },
  });
  return { status, asked: stdout.split("\n").filter((line) => /^np[mx] /.test(line)), stderr };
}

/** Newer than what is installed, as after a checkout. */
function lockFile(packages: object): void {
  writeFileSync(join(project, "package-lock.json"), JSON.stringify({ packages }));
}
function installed(packages: object): void {
  mkdirSync(join(project, "node_modules"));
  const file = join(project, "node_modules/.package-lock.json");
  writeFileSync(file, JSON.stringify({ packages }));
  utimesSync(file, 1, 1);
}

const byNpm = "npm ci --loglevel=error --omit=dev";
const byNpx = "npx --yes npm@11 ci --loglevel=error --omit=dev";

test.each([
  ["11.16.0", byNpm],
  ["11.19.1", byNpm],
  ["12.0.0", byNpm],
  ["11.15.0", byNpx],
  ["10.8.2", byNpx],
  ["9.2.0", byNpx],
])("npm %s installs by a version that runs no script but the allowed ones", (version, command) => {
  expect(install(version)).toEqual({ status: 0, asked: [command], stderr: "" });
});

test("without npm it says what is needed", () => {
  expect(install("")).toEqual({
    status: 1,
    asked: [],
    stderr: "npm is needed, 11.16 or newer at best; this is none\n",
  });
});

const [a1, a2] = [1, 2].map((major) => ({ version: `${major}.0.0`, integrity: `sha512-${major}` }));

test.each<[what: string, wanted: object, there: object, commands: string[]]>([
  ["the same is installed", { "": {}, "node_modules/a": a1 }, { "node_modules/a": a1 }, []],
  ["development packages are there, too", { "node_modules/a": { ...a1, dev: true } }, { "node_modules/a": a1 }, []],
  ["development packages are missing", { "node_modules/a": { ...a1, dev: true } }, {}, []],
  ["those of another platform are missing", { "node_modules/a": { ...a1, optional: true } }, {}, []],
  ["another version is installed", { "node_modules/a": a2 }, { "node_modules/a": a1 }, [byNpm]],
  ["a package is missing", { "node_modules/a": a1 }, {}, [byNpm]],
  ["one too many is installed", {}, { "node_modules/a": a1 }, [byNpm]],
])("a newer lock file is no reason by itself: %s", (_what, wanted, there, commands) => {
  lockFile(wanted);
  installed(there);
  expect(install("11.19.1").asked).toEqual(commands);
});
