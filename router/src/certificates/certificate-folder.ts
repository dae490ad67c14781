/**
 * The folder of an authority: `ca.{pem,key}`, and `router-NAME.{pem,key}` and `node-NAME.{pem,key}` of the certificates that
 * it signed. Keys have mode 0600, certificates 0644.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { StartError, unwritable } from "@weiche/shared/files/start-error.ts";
import { daysUntil } from "@weiche/shared/http/certificates.ts";
import { issueAuthority, issueCertificate, type Authority, type Issued } from "./issue.ts";

type CertificateKind = "ca" | "router" | "node";

/** One certificate of the folder. */
export interface CertificateView {
  readonly kind: CertificateKind;
  /** The name of its files without `.pem` and `.key`. */
  readonly file: string;
  /** Host names and addresses. The authority has none. */
  readonly names: readonly string[];
  /** ISO 8601. */
  readonly expiresAt: string;
  /** Whole days until it expires; negative if it has expired. */
  readonly daysLeft: number;
  /** True if the authority of this folder signed it. */
  readonly ofThisAuthority: boolean;
}

export interface Making {
  readonly folder: string;
  /** Wall time in ms. */
  readonly nowMs: number;
  /** For how many days it is valid. Defaults to 397, for an authority to ten years. */
  readonly days?: number;
}

const certificateDays = 397;
const authorityDays = 3_650;

export function makeAuthority({ folder, nowMs, days = authorityDays }: Making): CertificateView {
  if (existsSync(join(folder, "ca.key")))
    throw new StartError(`${join(folder, "ca.key")} exists: a new authority would invalidate all certificates`);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw unwritable(folder, error);
  }
  write(folder, "ca", issueAuthority({ fromMs: nowMs, days }));
  return view(folder, "ca", nowMs);
}

/**
 * `names`: for a router, all names and addresses that agents dial; for a node, its name in `agent.yaml`. Throws
 * `StartError` if the folder has such a certificate or key, unless `replace` is true.
 */
export function makeCertificate(
  making: Making,
  kind: "router" | "node",
  names: readonly [string, ...string[]],
  { replace = false }: { readonly replace?: boolean | undefined } = {},
): CertificateView {
  const { folder, nowMs, days = certificateDays } = making;
  const wrong = names.find((name) => !isIP(name) && !/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name));
  if (wrong !== undefined) throw new StartError(`"${wrong}" is neither a host name nor an address`);
  const file = `${kind}-${names[0]}`;
  const found = replace ? undefined : [`${file}.pem`, `${file}.key`].find((each) => existsSync(join(folder, each)));
  if (found !== undefined)
    throw new StartError(
      `${join(folder, found)} exists: renew it with "weiche certificates renew ${file} --dir ${folder}", or replace certificate and key with --replace`,
    );
  write(folder, file, issueCertificate(readAuthority(folder), names, { fromMs: nowMs, days }));
  return view(folder, file, nowMs);
}

/** Lists all certificates of the folder, the authority first. */
export function listCertificates(folder: string, nowMs: number): readonly CertificateView[] {
  if (!existsSync(join(folder, "ca.pem"))) throw noAuthority(folder);
  const files = readdirSync(folder).flatMap((file) => /^((?:router|node)-.+)\.pem$/.exec(file)?.[1] ?? []);
  return ["ca", ...files.toSorted()].map((file) => view(folder, file, nowMs));
}

/**
 * Renews certificates with a new key and the same names: those in `files`, or all that expire within `withinDays`. The
 * authority is never renewed, because every host would have to trust the new one first.
 */
export function renewCertificates(
  making: Making,
  files: readonly string[],
  withinDays: number,
): readonly CertificateView[] {
  const issued = listCertificates(making.folder, making.nowMs).filter(({ kind }) => kind !== "ca");
  const unknown = files.find((file) => !issued.some((each) => each.file === file));
  if (unknown !== undefined)
    throw new StartError(
      `there is no ${unknown} in ${making.folder}: choose one of ${issued.map(({ file }) => file).join(", ")}`,
    );
  return issued
    .filter(({ file, daysLeft }) => (files.length > 0 ? files.includes(file) : daysLeft < withinDays))
    .map(({ kind, names }) =>
      makeCertificate(making, kind as "router" | "node", names as [string, ...string[]], { replace: true }),
    );
}

function readAuthority(folder: string): Authority {
  if (!existsSync(join(folder, "ca.key"))) throw noAuthority(folder);
  const cert = new X509Certificate(readFileSync(join(folder, "ca.pem")));
  const key = createPrivateKey(readFileSync(join(folder, "ca.key")));
  if (!cert.checkPrivateKey(key)) throw new StartError(`ca.pem and ca.key in ${folder} do not belong together`);
  return { cert, key };
}

function noAuthority(folder: string): StartError {
  return new StartError(`no authority in ${folder}: make one with "weiche certificates ca --dir ${folder}"`);
}

/** Replaces each file as a whole, the key last. A program that reads meanwhile finds a pair that does not match, and waits. */
function write(folder: string, file: string, { cert, key }: Issued): void {
  for (const [ending, text, mode] of [
    ["pem", cert, 0o644],
    ["key", key, 0o600],
  ] as const) {
    const path = join(folder, `${file}.${ending}`);
    writeFileSync(`${path}.new`, text, { mode, flush: true });
    chmodSync(`${path}.new`, mode); // the umask may have removed bits
    renameSync(`${path}.new`, path);
  }
}

function view(folder: string, file: string, nowMs: number): CertificateView {
  const cert = new X509Certificate(readFileSync(join(folder, `${file}.pem`)));
  const authority = new X509Certificate(readFileSync(join(folder, "ca.pem")));
  const expiresMs = cert.validToDate.getTime();
  return {
    kind: file === "ca" ? "ca" : file.startsWith("router-") ? "router" : "node",
    file,
    names: namesOf(cert),
    expiresAt: new Date(expiresMs).toISOString(),
    daysLeft: daysUntil(expiresMs, nowMs),
    ofThisAuthority: cert.verify(authority.publicKey),
  };
}

function namesOf({ subjectAltName }: X509Certificate): readonly string[] {
  return (subjectAltName ?? "").split(", ").flatMap((name) => /^(?:DNS|IP Address):(.+)$/.exec(name)?.[1] ?? []);
}
