import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findProgram, versionOf } from "./find-program.ts";

let directory: string;
let program: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "weiche-find-"));
  program = join(directory, "bin/engine");
  mkdirSync(join(directory, "bin"));
  writeFileSync(
    program,
    "#!/bin/sh\necho loaded backend 1.2 >&2\necho 'version: 42 (abc)' >&2\necho built with C 12.2\n",
    { mode: 0o755 },
  );
  mkdirSync(join(directory, "first/engine"), { recursive: true });
});
afterAll(() => rmSync(directory, { recursive: true }));

const env = (more: NodeJS.ProcessEnv = {}) => ({ PATH: `${directory}/first:${directory}/bin`, ...more });

test("the first program with the name in PATH is found, and a folder is skipped", () => {
  expect(findProgram("engine", "WEICHE_ENGINE_PROGRAM", env())).toBe(program);
  expect(findProgram("other", "WEICHE_ENGINE_PROGRAM", env())).toBeUndefined();
  expect(findProgram("engine", "WEICHE_ENGINE_PROGRAM", {})).toBeUndefined();
});

test("the variable overrides PATH and must name a program", () => {
  const named = (file: string) => findProgram("other", "WEICHE_ENGINE_PROGRAM", env({ WEICHE_ENGINE_PROGRAM: file }));
  expect(named(program)).toBe(program);
  expect(named("")).toBeUndefined();
  expect(() => named(join(directory, "nothing"))).toThrow(/WEICHE_ENGINE_PROGRAM=.*nothing is not a program/);
  chmodSync(join(directory, "bin"), 0o755);
  expect(() => named(join(directory, "bin"))).toThrow("is not a program");
});

test("a program's version is read from stdout or stderr", () => {
  expect(versionOf(program)).toBe("version: 42 (abc)");
  expect(versionOf(join(directory, "nothing"))).toBe("unknown");
});
