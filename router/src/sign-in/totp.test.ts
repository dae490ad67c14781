import { generateSync } from "otplib";
import { expect, test } from "vitest";
import { hashRecoveryCode, makeRecoveryCodes, makeTotpSecret, totpStep } from "./totp.ts";

const nowMs = Date.parse("2026-11-14T10:30:07Z");
const now = BigInt(Math.floor(nowMs / 30_000));
const { secret, uri } = makeTotpSecret("ada@example.com");
const codeAt = (ms: number) => generateSync({ secret, epoch: Math.floor(ms / 1000) });

test("an authenticator reads the secret from its URI", () => {
  expect(secret).toMatch(/^[A-Z2-7]{32}$/);
  const read = new URL(uri);
  expect([read.protocol, read.host, decodeURIComponent(read.pathname)]).toEqual([
    "otpauth:",
    "totp",
    "/Weiche:ada@example.com",
  ]);
  expect(read.searchParams.get("secret")).toBe(secret);
});

test("a code equals the example of RFC 6238", () => {
  const rfc = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"; // 12345678901234567890; RFC 6238 lists eight digits: 94287082
  expect(totpStep(rfc, "287082", 59_000, null)).toBe(1n);
});

test.each([
  ["of the step before is right", -30_000, now - 1n],
  ["of the current step is right", 0, now],
  ["of the next step is right", 30_000, now + 1n],
  ["of two steps before is wrong", -60_000, undefined],
  ["of two steps later is wrong", 60_000, undefined],
])("a code %s", (_name, offMs, step) => {
  expect(totpStep(secret, codeAt(nowMs + offMs), nowMs, null)).toBe(step);
});

test("codes of a used step and of all steps before it are refused", () => {
  expect(totpStep(secret, codeAt(nowMs), nowMs, now)).toBeUndefined();
  expect(totpStep(secret, codeAt(nowMs - 30_000), nowMs, now)).toBeUndefined();
  expect(totpStep(secret, codeAt(nowMs + 30_000), nowMs, now)).toBe(now + 1n);
});

test.each(["", "12345", "1234567", "abcdef", "１２３４５６", " 123456"])("the text %j is not a code", (code) => {
  expect(totpStep(secret, code, nowMs, null)).toBeUndefined();
});

test("there are ten different recovery codes, recognized in any case and with any separators", () => {
  const codes = makeRecoveryCodes();
  expect(new Set(codes).size).toBe(10);
  for (const code of codes) expect(code).toMatch(/^([0-9a-f]{5}-){3}[0-9a-f]{5}$/);
  expect(hashRecoveryCode(codes[0]!.toUpperCase().replaceAll("-", " "))).toBe(hashRecoveryCode(codes[0]!));
});
