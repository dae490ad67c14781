/** Certificates in PEM files. */
import { X509Certificate } from "node:crypto";

/** With fewer days left it is time to renew: operators are warned. */
export const endingDays = 30;

/** Throws if one cannot be read. Empty: there is none. */
export function certificatesIn(pem: Buffer): readonly X509Certificate[] {
  const blocks = String(pem).match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

/** Whole days until then, both as wall time in ms; negative: it is over. */
export function daysUntil(thenMs: number, nowMs: number): number {
  return Math.floor((thenMs - nowMs) / 86_400_000);
}
