import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readDemoKey, writeDemo } from "./demo/demo-file.ts";

const directory = mkdtempSync(join(tmpdir(), "weiche-demo-file-"));
const file = join(directory, "demo.json");
afterAll(() => rmSync(directory, { recursive: true }));

test("the key of an earlier start is reused, and a damaged file counts as missing", () => {
  expect(readDemoKey(file)).toBeUndefined();
  const apiKey = "wk-abc_DEF-123";
  writeDemo(file, { apiKey, baseUrl: "http://127.0.0.1:1/v1", portalUrl: "http://127.0.0.1:2" });
  expect(readDemoKey(file)).toBe(apiKey);
  const content = readFileSync(file);
  for (let at = 0; at < content.length - 2; at++) {
    writeFileSync(file, content.subarray(0, at));
    expect(readDemoKey(file)).toBeUndefined();
    const flipped = Buffer.from(content);
    flipped[at]! ^= 0x80;
    writeFileSync(file, flipped);
    expect(readDemoKey(file) ?? apiKey).toBe(apiKey);
  }
  for (const other of ["null", "[]", "7", "{}", '{"apiKey":7}', '{"apiKey":"a\\nb"}', "\0\0\0"]) {
    writeFileSync(file, other);
    expect([other, readDemoKey(file)]).toEqual([other, undefined]);
  }
});
