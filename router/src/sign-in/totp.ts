/** One-time codes of an authenticator (TOTP, RFC 6238: SHA-1, six digits, 30 s), and recovery codes for a lost one. */
import { hash, randomBytes } from "node:crypto";
import { generateSecret, generateURI, verifySync } from "otplib";

const stepSeconds = 30;
const issuer = "Weiche";
const recoveryCodeCount = 10;

export function makeTotpSecret(email: string): { readonly secret: string; readonly uri: string } {
  const secret = generateSecret();
  return { secret, uri: generateURI({ issuer, label: email, secret }) };
}

/**
 * Returns the time step of a right code: the current step or a neighbour, so that clocks may differ by 30 s. Returns
 * undefined if the code is wrong or its step is not after `lastStep`.
 */
export function totpStep(secret: string, code: string, nowMs: number, lastStep: bigint | null): bigint | undefined {
  if (!/^\d{6}$/.test(code)) return undefined;
  const epoch = Math.floor(nowMs / 1000);
  const result = verifySync({ secret, token: code, epoch, epochTolerance: stepSeconds, strategy: "totp" });
  if (!result.valid || !("timeStep" in result)) return undefined;
  const step = BigInt(result.timeStep);
  return lastStep !== null && step <= lastStep ? undefined : step;
}

/** Makes recovery codes with 80 random bits each, in groups that are easy to copy. */
export function makeRecoveryCodes(): string[] {
  return Array.from({ length: recoveryCodeCount }, () => randomBytes(10).toString("hex").match(/.{5}/g)!.join("-"));
}

/** Returns the SHA-256 in hex, which is stored in place of a recovery code. Ignores case and separators. */
export function hashRecoveryCode(code: string): string {
  return hash("sha256", code.toLowerCase().replace(/[^0-9a-f]/g, ""), "hex");
}
