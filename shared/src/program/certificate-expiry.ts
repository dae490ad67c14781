/** When certificates expire, as a metric. */
import { X509Certificate } from "node:crypto";
import type { Gauge } from "prom-client";
import type { TlsFiles } from "../http/tls-files.ts";

/** Certificates by their use. Absent: that connection goes without TLS. */
export type CertificatesInUse<Use extends string> = Readonly<Record<Use, Pick<TlsFiles, "current"> | undefined>>;

/** Sets the time of expiry of each file in use. */
export function publishCertificates(gauge: Gauge<"use" | "file">, certificates: CertificatesInUse<string>): void {
  for (const [use, files] of Object.entries(certificates)) {
    if (!files) continue;
    const { cert, ca } = files.current;
    for (const [file, pem] of Object.entries({ cert, ca }))
      if (pem) gauge.set({ use, file }, firstExpiryMs(pem) / 1000);
  }
}

/** When the first of the certificates in the file expires. Wall time in ms. */
export function firstExpiryMs(pem: Buffer): number {
  const blocks = String(pem).match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  return Math.min(...blocks.map((block) => new X509Certificate(block).validToDate.getTime()));
}
