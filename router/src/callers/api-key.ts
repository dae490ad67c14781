/**
 * API keys: `sk-weiche-`, 256 random bits, and a checksum. By the checksum, secret scanners recognise a key, and a mistyped
 * key is refused without a lookup. Only the SHA-256 of a key is stored.
 */
import { hash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";

const prefix = "sk-weiche-";
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const secretLength = 43; // 62 ** 43 > 2 ** 256
const checksumLength = 6; // 62 ** 6 > 2 ** 32
const pattern = new RegExp(`^${prefix}[0-9A-Za-z]{${secretLength + checksumLength}}$`);

export function makeApiKey(random: (bytes: number) => Buffer = randomBytes): string {
  const secret = base62(BigInt(`0x${random(32).toString("hex")}`), secretLength);
  return prefix + secret + checksum(prefix + secret);
}

export function isApiKey(text: string): boolean {
  return pattern.test(text) && checksum(text.slice(0, -checksumLength)) === text.slice(-checksumLength);
}

/** Returns the SHA-256 of a key in hex. The database stores it in place of the key. */
export function hashApiKey(key: string): string {
  return hash("sha256", key, "hex");
}

function checksum(text: string): string {
  return base62(BigInt(crc32(text)), checksumLength);
}

function base62(value: bigint, length: number): string {
  let text = "";
  for (let rest = value; text.length < length; rest /= 62n) text = digits[Number(rest % 62n)]! + text;
  return text;
}
