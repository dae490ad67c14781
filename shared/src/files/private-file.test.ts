import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkPrivate, holdsPassword, readSecret, withPassword } from "./private-file.ts";

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "weiche-private-"))));
afterAll(() => rmSync(folder, { recursive: true }));

function fileOf(mode: number, text = "secret\n"): string {
  const file = join(folder, "secret");
  rmSync(file, { force: true }); // a file of mode 0400 could not be written
  writeFileSync(file, text);
  chmodSync(file, mode);
  return file;
}

test.each([0o600, 0o400])("a file of mode %o is private", (mode) => {
  expect(() => checkPrivate(fileOf(mode), "a password")).not.toThrow();
});

test.each([
  [0o644, "0644"],
  [0o604, "0604"],
  [0o640, "0640"],
  [0o620, "0620"],
])("one's own file of mode %o is refused in one line with the command that mends it [G1]", (mode, shown) => {
  const file = fileOf(mode);
  expect(() => checkPrivate(file, "a password")).toThrow(
    `${file} holds a password, but its mode ${shown} gives other users access: chmod go= ${file}`,
  );
});

test("another owner's file is private if only the reader's group can read it, and not if everybody can [G1]", () => {
  const reader = statSync(folder).uid + 1;
  expect(() => checkPrivate(fileOf(0o640), "a password", reader)).not.toThrow();
  expect(() => checkPrivate(fileOf(0o644), "a password", reader)).toThrow(/: chmod o= /);
});

test("a secret is read from the single line of a private file", () => {
  expect(readSecret(fileOf(0o600, "s e%c:ret@\n"), "the password")).toBe("s e%c:ret@");
  for (const wrong of ["", "\n", "a\nb\n"])
    expect(() => readSecret(fileOf(0o600, wrong), "the password")).toThrow("must hold the password in one line");
  expect(() => readSecret(fileOf(0o644), "the password")).toThrow("mode 0644");
  expect(() => readSecret(join(folder, "missing"), "the password")).toThrow("ENOENT");
});

test.each([
  ["postgres://user:pw@db/weiche", true],
  ["postgres://:pw@db/weiche", true],
  ["postgres://db/weiche?user=u&password=pw", true],
  ["smtps://user:p%40w@mail.example", true],
  ["smtp://user:not encoded@mail", true],
  ["postgres://user@db:5432/weiche", false],
  ["postgres:///weiche?host=/run/postgresql", false],
  ["smtp://mail.example:25", false],
])("%s holds a password: %s", (url, holds) => {
  expect(holdsPassword(url)).toBe(holds);
});

test("a password from a file arrives unchanged, whatever characters it has, and only in one place", () => {
  const password = "p@ss:w/rd%41?#ü";
  for (const url of ["postgres://user@db:5432/weiche?sslmode=verify-full", "smtps://user@mail.example"]) {
    const full = withPassword(url, password, "database");
    expect(decodeURIComponent(new URL(full).password)).toBe(password);
    expect(new URL(full).host).toBe(new URL(url).host);
  }
  expect(() => withPassword("postgres://u:p@db", password, "database")).toThrow("database.url holds a password");
  expect(() => withPassword("postgres:///weiche", password, "database")).toThrow("database.url has no host");
  expect(() => withPassword("db", password, "smtp")).toThrow("smtp.url is no URL");
});
