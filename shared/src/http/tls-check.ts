/** Checks certificate, key and authority files before a program starts with them. */
import { createPrivateKey, type X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { checkPrivate } from "../files/private-file.ts";
import { mayBeMade, type ServiceUnit } from "../files/service-unit.ts";
import { readFault } from "../files/start-error.ts";
import { certificatesIn, daysUntil, endingDays } from "./certificates.ts";
import type { TlsPaths } from "./tls-files.ts";

export interface TlsFinding {
  /** The file that the finding is about. */
  readonly file: keyof TlsPaths;
  readonly message: string;
  /** `absent`: the file does not exist on this host. */
  readonly kind: "mistake" | "warning" | "absent";
}

export interface TlsJudging {
  /** Wall time in ms. */
  readonly nowMs: number;
  /** The user that will read the key. `other` is a user that does not own the file. */
  readonly uid: number | "other";
  /** Returns the problem of the certificate's names, if any. If undefined, the names are not checked. */
  readonly judgeNames?: (certificate: X509Certificate) => string | undefined;
  /** The unit that hands files over. If undefined, this host has none. */
  readonly unit?: ServiceUnit | undefined;
}

type Kept = { readonly [File in keyof TlsPaths]?: Buffer };

/**
 * Checks the files of `named`, which are absolute. Undefined paths are not checked. In place of a file that the unit
 * makes at its start, the file of root is checked from which the unit makes it.
 */
export function* judgeTls(named: Partial<TlsPaths>, judging: TlsJudging): Iterable<TlsFinding> {
  const { unit } = judging;
  const kept: { -readonly [File in keyof Kept]: Buffer } = {};
  const paths: { -readonly [File in keyof TlsPaths]?: string } = { ...named };
  for (const file of ["cert", "key", "ca"] as const) {
    const path = named[file];
    if (path === undefined) continue;
    const from = unit?.sources.get(path) ?? path;
    paths[file] = from;
    try {
      kept[file] = readFileSync(from);
      if (isOperators(path)) yield { file, kind: "warning", message: `${path} ${renewed}` };
    } catch (error) {
      yield unreadable(file, path, error, unit);
    }
  }
  for (const finding of judgePrivacy(paths, kept, judging.uid))
    // The program reads a private copy, but the key itself is open to others.
    yield paths[finding.file] === named[finding.file] ? finding : { ...finding, kind: "warning" };
  const certificates = yield* readCertificates("cert", paths.cert, kept.cert);
  const authorities = yield* readCertificates("ca", paths.ca, kept.ca);
  yield* judgeDates("cert", paths.cert ?? "", certificates, judging.nowMs);
  yield* judgeAuthorityDates(paths.ca ?? "", authorities, judging.nowMs);
  const [own, ...between] = certificates;
  if (!own) return;
  const wrongName = judging.judgeNames?.(own);
  if (wrongName !== undefined) yield { file: "cert", kind: "mistake", message: `${paths.cert} ${wrongName}` };
  if (kept.key) yield* judgeKey(paths, own, kept.key);
  if (authorities.length > 0 && !isSignedBy(own, between, authorities))
    yield {
      file: "cert",
      kind: "warning",
      message: `${paths.cert} is not signed by ${paths.ca}: the other end must trust another authority`,
    };
}

function unreadable(file: keyof TlsPaths, path: string, error: unknown, unit: ServiceUnit | undefined): TlsFinding {
  const source = unit?.sources.get(path);
  if ((error as NodeJS.ErrnoException).code !== "ENOENT")
    return { file, kind: "warning", message: `cannot read ${source ?? path}: ${readFault(error)}` };
  if (source !== undefined)
    return { file, kind: "absent", message: `${source} is not there; ${unit!.name} makes ${path} of it` };
  if (!mayBeMade(path, unit)) {
    const inVain = mayBeMade(path, undefined) ? `, and no line of ${unit!.name} makes it` : "";
    return { file, kind: "absent", message: `${path} is not there${inVain}` };
  }
  const message = `${path} is not there, as while the service does not run`;
  return { file, kind: "warning", message: isOperators(path) ? `${message}; it ${renewed}` : message };
}

/**
 * Returns whether the operator's own `LoadCredential` line provides the file. Our units renew their own files at a
 * reload.
 */
function isOperators(path: string): boolean {
  const ours = /^\/run\/credentials\/weiche-(router\.service\/router\.key|node-agent\.service\/node\.(pem|key))$/;
  return path.startsWith("/run/credentials/") && !ours.test(path);
}
const renewed = "is renewed by a reload if the unit has an ExecReload line for it, else by a restart (docs/runbook.md)";

function* judgePrivacy(paths: Partial<TlsPaths>, kept: Kept, uid: number | "other"): Iterable<TlsFinding> {
  const holdsKey = kept.cert?.includes("PRIVATE KEY-----");
  for (const file of ["key", ...(holdsKey ? ["cert" as const] : [])] as const) {
    if (!kept[file]) continue;
    try {
      checkPrivate(paths[file]!, "a private key", uid);
    } catch (error) {
      yield { file, kind: "mistake", message: (error as Error).message };
    }
  }
}

function* readCertificates(
  file: "cert" | "ca",
  path: string | undefined,
  pem: Buffer | undefined,
): Generator<TlsFinding, readonly X509Certificate[]> {
  if (!pem) return [];
  try {
    const certificates = certificatesIn(pem);
    if (certificates.length > 0) return certificates;
    yield { file, kind: "mistake", message: `${path} holds no certificate` };
  } catch {
    yield { file, kind: "mistake", message: `${path} holds a certificate that cannot be read` };
  }
  return [];
}

function* judgeDates(
  file: "cert" | "ca",
  path: string,
  certificates: readonly X509Certificate[],
  nowMs: number,
): Iterable<TlsFinding> {
  for (const { validFromDate, validToDate } of certificates) {
    const daysLeft = daysUntil(validToDate.getTime(), nowMs);
    const [from, to] = [validFromDate, validToDate].map((date) => date.toISOString());
    if (validFromDate.getTime() > nowMs)
      yield { file, kind: "mistake", message: `${path} is not valid before ${from}: is the clock right?` };
    else if (validToDate.getTime() <= nowMs)
      yield { file, kind: "mistake", message: `${path} expired at ${to}: renew it` };
    else if (daysLeft < endingDays)
      yield { file, kind: "warning", message: `${path} expires at ${to}, in ${daysLeft} days: renew it` };
  }
}

/**
 * An expired authority is only a warning if a valid one is in the file too, because both exist while authorities are
 * replaced.
 */
function* judgeAuthorityDates(
  path: string,
  authorities: readonly X509Certificate[],
  nowMs: number,
): Iterable<TlsFinding> {
  const findings = authorities.map((one) => [...judgeDates("ca", path, [one], nowMs)]);
  const someValid = findings.some((each) => each.every(({ kind }) => kind !== "mistake"));
  for (const finding of findings.flat()) yield someValid ? { ...finding, kind: "warning" } : finding;
}

function* judgeKey(paths: Partial<TlsPaths>, own: X509Certificate, pem: Buffer): Iterable<TlsFinding> {
  const mistake = (message: string): TlsFinding => ({ file: "key", kind: "mistake", message });
  try {
    if (!own.checkPrivateKey(createPrivateKey(pem))) yield mistake(`${paths.key} is not the key of ${paths.cert}`);
  } catch {
    yield mistake(`${paths.key} holds no private key that can be read: PEM without a passphrase`);
  }
}

/**
 * Returns whether one of the authorities signed the certificate, directly or through the other certificates in its
 * file.
 */
function isSignedBy(
  own: X509Certificate,
  between: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
): boolean {
  const signs = (one: X509Certificate) => (other: X509Certificate) =>
    one.checkIssued(other) && one.verify(other.publicKey);
  let left = [...between];
  for (let at: X509Certificate | undefined = own; at;) {
    const current: X509Certificate = at;
    if (authorities.some((authority) => signs(current)(authority) || authority.raw.equals(current.raw))) return true;
    at = left.find(signs(current));
    left = left.filter((one) => one !== at);
  }
  return false;
}
