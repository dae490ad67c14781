import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
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

/** Installs with an npm that says its version and repeats what it is asked for. */
function install(npmVersion: string) {
  const npm = `#!/bin/sh\n[ "$1" = --version ] && echo ${npmVersion} || echo "npm $@"\n`;
  writeFileSync(join(project, "npm"), npm, { mode: 0o755 });
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(project, "deploy/install-if-needed.mjs")], {
    encoding: "utf8",
    env: { PATH: `${project}:/bin:/usr/bin` },
  });
  return { status, stdout, stderr };
}

test("what is missing is installed", () => {
  expect(install("10.8.2")).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("npm ci --loglevel=error --omit=dev") as string,
  });
});

test("an npm that cannot read the lock file is told from the beginning", () => {
  expect(install("9.2.0")).toEqual({
    status: 1,
    stdout: "",
    stderr: "npm 10 or newer is needed, this is 9.2.0: npm install --global npm@10\n",
  });
});
