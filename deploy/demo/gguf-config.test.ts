/** `--gguf FILE`: what is wrong with the file is said at the start, not at the first chat. */
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

test("a whole file is taken, also one with something behind its last tensor", () => {
  copyFileSync(whole, file);
  expect(start()).toBe("my-model");
  writeFileSync(file, Buffer.alloc(100), { flag: "a" });
  expect(start()).toBe("my-model");
});

test("a file that lacks a single byte is cut off, and says how much of it is there", () => {
  truncatedTo(size - 1);
  expect(start).toThrow(`${file} is cut off: ${size - 1} of its ${size} bytes are there`);
  truncatedTo(size / 2);
  expect(start).toThrow(/is cut off: \d+ of its \d+ bytes are there/);
});

test("a file that ends within its header says so, wherever that is", () => {
  for (const bytes of [0, 3, 4, 20, 1_000]) {
    truncatedTo(bytes);
    expect(start, `${bytes} bytes`).toThrow(`${file} is cut off within its header`);
  }
});

test("what is no GGUF, of another version or damaged is told apart", () => {
  const bytes = readFileSync(whole);
  const written = (change: (copy: Buffer) => unknown) => {
    const copy = Buffer.from(bytes);
    change(copy);
    writeFileSync(file, copy);
  };
  written((copy) => copy.write("PK"));
  expect(start).toThrow(`${file} is not a GGUF file`);
  written((copy) => copy.writeUInt32LE(1, 4));
  expect(start).toThrow(`${file} is GGUF of version 1; 2 and 3 can be read`);
  written((copy) => copy.writeBigUInt64LE(2n ** 63n, 8));
  expect(start).toThrow(`${file} is damaged: its header has a number beyond all bounds`);
});

test("a file that is not there is one line, too", () => {
  rmSync(file);
  expect(start).toThrow(`cannot read ${file}: ENOENT`);
});
