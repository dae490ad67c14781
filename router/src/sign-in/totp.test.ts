import { generateSync } from "otplib";
import { expect, test } from "vitest";
import { hashRecoveryCode, makeRecoveryCodes, makeTotpSecret, totpStep } from "./totp.ts";

const nowMs = Date.parse("2026-11-14T10:30:07Z");
const now = BigInt(Math.floor(nowMs / 30_000));
const { secret, uri } = makeTotpSecret("ada@example.com");
const codeAt = (ms: number) => generateSync({ secret, epoch: Math.floor(ms / 1000) });

test("the secret is what authenticators read from its URI", () => {
  expect(secret).toMatch(/^[A-Z2-7]{32}$/);
  const read = new URL(uri);
  expect([read.protocol, read.host, decodeURIComponent(read.pathname)]).toEqual([
    "otpauth:",
    "totp",
    "/Weiche:ada@example.com",
  ]);
  expect(read.searchParams.get("secret")).toBe(secret);
});

test("agrees with the example of RFC 6238", () => {
  const rfc = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"; // 12345678901234567890; RFC 6238 lists eight digits: 94287082
  expect(totpStep(rfc, "287082", 59_000, null)).toBe(1n);
});

test.each([
  ["of the step before", -30_000, now - 1n],
  ["of now", 0, now],
  ["of the next step", 30_000, now + 1n],
  ["of two steps before", -60_000, undefined],
  ["of two steps later", 60_000, undefined],
])("a code %s", (_name, offMs, step) => {
  expect(totpStep(secret, codeAt(nowMs + offMs), nowMs, null)).toBe(step);
});

test("a step that was taken, and all before it, are over", () => {
  expect(totpStep(secret, codeAt(nowMs), nowMs, now)).toBeUndefined();
  expect(totpStep(secret, codeAt(nowMs - 30_000), nowMs, now)).toBeUndefined();
  expect(totpStep(secret, codeAt(nowMs + 30_000), nowMs, now)).toBe(now + 1n);
});

test.each(["", "12345", "1234567", "abcdef", "１２３４５６", " 123456"])("%j is no code", (code) => {
  expect(totpStep(secret, code, nowMs, null)).toBeUndefined();
});

test("recovery codes are many, all different, and found however they are typed", () => {
  const codes = makeRecoveryCodes();
  expect(new Set(codes).size).toBe(10);
  for (const code of codes) expect(code).toMatch(/^([0-9a-f]{5}-){3}[0-9a-f]{5}$/);
  expect(hashRecoveryCode(codes[0]!.toUpperCase().replaceAll("-", " "))).toBe(hashRecoveryCode(codes[0]!));
});
