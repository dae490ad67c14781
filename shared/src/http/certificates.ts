/** Reads certificates in PEM files. */
import { X509Certificate } from "node:crypto";

/** With fewer days left, Weiche warns operators to renew the certificate. */
export const endingDays = 30;

/** Returns the certificates of a PEM file, possibly none. Throws if one cannot be read. */
export function certificatesIn(pem: Buffer): readonly X509Certificate[] {
  const blocks = String(pem).match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

/** Returns the whole days between two wall times in ms. Negative if the first is earlier. */
export function daysUntil(thenMs: number, nowMs: number): number {
  return Math.floor((thenMs - nowMs) / 86_400_000);
}
