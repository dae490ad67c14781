/** Reports when the certificates in use expire: as a metric, in tables, and as warnings at the start. */
import type { Gauge } from "prom-client";
import { certificatesIn, daysUntil, endingDays } from "../http/certificates.ts";
import type { TlsFiles } from "../http/tls-files.ts";

/** Certificates by their use. A use without TLS is undefined. */
export type CertificatesInUse<Use extends string> = Readonly<
  Record<Use, Pick<TlsFiles, "current" | "paths"> | undefined>
>;

/** A file in use. */
export interface CertificateFile {
  /** The connections that use it, such as `nodes`. */
  readonly use: string;
  /** `ca`: the authority of the other end. */
  readonly file: "cert" | "ca";
  readonly path: string;
  /** When the first of its certificates expires, in ISO 8601. */
  readonly expiresAt: string;
  /** Whole days until then. Negative if it has expired. */
  readonly daysLeft: number;
}

/** Lists the files in use, as they were last read. */
export function certificateFiles(certificates: CertificatesInUse<string>, nowMs: number): readonly CertificateFile[] {
  return Object.entries(certificates).flatMap(([use, files]) =>
    (["cert", "ca"] as const).flatMap((file) => {
      const [pem, path] = [files?.current[file], files?.paths[file]];
      if (!pem || path === undefined) return [];
      const expiresMs = firstExpiryMs(pem);
      if (!Number.isFinite(expiresMs)) return [];
      const expiresAt = new Date(expiresMs).toISOString();
      return { use, file, path, expiresAt, daysLeft: daysUntil(expiresMs, nowMs) };
    }),
  );
}

export const isEnding = ({ daysLeft }: CertificateFile): boolean => daysLeft < endingDays;

export interface CertificateEvents {
  certificateEnding(file: CertificateFile): void;
}

/** Reports each file that expires soon or has expired. */
export function tellEnding(certificates: CertificatesInUse<string>, nowMs: number, events: CertificateEvents): void {
  for (const file of certificateFiles(certificates, nowMs)) if (isEnding(file)) events.certificateEnding(file);
}

/** The text of the log line of `certificateEnding`. */
export const endingMessage = "a certificate expires soon or has expired: renew it";

/** Sets the gauge to the expiry of each file in use. */
export function publishCertificates(gauge: Gauge<"use" | "file">, certificates: CertificatesInUse<string>): void {
  for (const { use, file, expiresAt } of certificateFiles(certificates, 0))
    gauge.set({ use, file }, Date.parse(expiresAt) / 1000);
}

/** Returns when the first of the file's certificates expires, in wall-clock ms. */
export function firstExpiryMs(pem: Buffer): number {
  return Math.min(...certificatesIn(pem).map(({ validToDate }) => validToDate.getTime()));
}
