import { expect, test } from "vitest";
import { hashApiKey, isApiKey, makeApiKey } from "./api-key.ts";

test("a key is recognised by its form and checksum", () => {
  for (let n = 0; n < 100; n++) {
    const key = makeApiKey();
    expect(key).toMatch(/^sk-weiche-[0-9A-Za-z]{49}$/);
    expect(isApiKey(key)).toBe(true);
  }
});

test("a key contains 256 random bits", () => {
  const zeros = makeApiKey((bytes) => Buffer.alloc(bytes));
  const ones = makeApiKey((bytes) => Buffer.alloc(bytes, 0xff));
  expect(isApiKey(zeros) && isApiKey(ones)).toBe(true);
  expect(new Set([zeros, ones, makeApiKey(), makeApiKey()]).size).toBe(4);
});

test("a key with one changed, missing or added character is refused", () => {
  const key = makeApiKey();
  for (let at = 0; at < key.length; at++) {
    const other = key[at] === "a" ? "b" : "a";
    expect(isApiKey(key.slice(0, at) + other + key.slice(at + 1))).toBe(false);
    expect(isApiKey(key.slice(0, at) + key.slice(at + 1))).toBe(false);
  }
  for (const text of ["", "sk-weiche-", `${key}0`, ` ${key}`, `${key}\n`, "sk-" + "a".repeat(56)])
    expect(isApiKey(text)).toBe(false);
});

test("the hash of a key is its SHA-256", () => {
  expect(hashApiKey("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});
