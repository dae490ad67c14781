/** `--gguf FILE`: a wrong file is reported at the start, not at the first chat. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeGgufConfig } from "./gguf-config.ts";

const whole = join(import.meta.dirname, "../../node-agent/models/weiche-tiny.gguf");
const { size } = statSync(whole);
let directory: string;
let file: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "weiche-gguf-"));
  file = join(directory, "my model.gguf");
});
afterAll(() => rmSync(directory, { recursive: true }));

function start(): string {
  return writeGgufConfig(file, directory).model;
}

function truncatedTo(bytes: number): void {
  copyFileSync(whole, file);
  truncateSync(file, bytes);
}

test("a complete file is accepted, also with bytes after its last tensor", () => {
  copyFileSync(whole, file);
  expect(start()).toBe("my-model");
  writeFileSync(file, Buffer.alloc(100), { flag: "a" });
  expect(start()).toBe("my-model");
});

test("a file that lacks a single byte is reported as cut off, with both sizes", () => {
  truncatedTo(size - 1);
  expect(start).toThrow(`${file} is cut off: it has ${size - 1} of its ${size} bytes`);
  truncatedTo(size / 2);
  expect(start).toThrow(/is cut off: it has \d+ of its \d+ bytes/);
});

test("a file that ends anywhere within its header is reported as cut off", () => {
  for (const bytes of [0, 3, 4, 20, 1_000]) {
    truncatedTo(bytes);
    expect(start, `${bytes} bytes`).toThrow(`${file} is cut off within its header`);
  }
});

test("a file that is no GGUF, has another version or is damaged is reported as such", () => {
  const bytes = readFileSync(whole);
  const written = (change: (copy: Buffer) => unknown) => {
    const copy = Buffer.from(bytes);
    change(copy);
    writeFileSync(file, copy);
  };
  written((copy) => copy.write("PK"));
  expect(start).toThrow(`${file} is not a GGUF file`);
  written((copy) => copy.writeUInt32LE(1, 4));
  expect(start).toThrow(`${file} is GGUF of version 1, but only 2 and 3 can be read`);
  written((copy) => copy.writeBigUInt64LE(2n ** 63n, 8));
  expect(start).toThrow(`${file} is damaged: its header has an impossible number`);
});

test("a missing file is reported in one line", () => {
  rmSync(file);
  expect(start).toThrow(`cannot read ${file}: it does not exist (ENOENT)`);
});
