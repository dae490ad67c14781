/** Files with secrets: nobody else on the host may read or change them. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { readForStart, StartError } from "./start-error.ts";

/**
 * Throws `StartError` with the command that corrects the mode. `what`: such as "a private key". `uid`: who reads it. A
 * file of another owner may be readable by its group: so root passes files, and systemd credentials, to a service.
 */
export function checkPrivate(file: string, what: string, uid: number | "other" = process.geteuid?.() ?? "other"): void {
  const stat = statSync(file);
  const isOwn = stat.uid === uid;
  if ((stat.mode & (isOwn ? 0o077 : 0o007)) === 0) return;
  const mode = (stat.mode & 0o777).toString(8).padStart(4, "0");
  throw new StartError(
    `${file} holds ${what} and its mode ${mode} lets others of this host at it: chmod ${isOwn ? "go=" : "o="} ${file}`,
  );
}

/** Whether systemd, or one of our units, makes the file, which is there only while its service runs. */
export function isCredential(file: string): boolean {
  return /^\/run\/(credentials|weiche)\//.test(file);
}

/**
 * A credential that systemd hands to another unit is closed to this one: in its place the one of the same name that this
 * unit is given. Other files are as they are. Throws `StartError` if it is given none.
 */
export function ownCredential(file: string, env: NodeJS.ProcessEnv): string {
  const [, unit, name] = /^\/run\/credentials\/([^/]+)\/([^/]+)$/.exec(file) ?? [];
  if (name === undefined || existsSync(file)) return file;
  const given = env["CREDENTIALS_DIRECTORY"];
  if (given !== undefined && existsSync(join(given, name))) return join(given, name);
  throw new StartError(
    `${file} is only for ${unit}: give LoadCredential=${name}:FILE to this unit, such as weiche-backup.service, too`,
  );
}

/** Reads a secret, the single line of a file. Throws `StartError`, which does not quote it. `uid`: who reads it. */
export function readSecret(file: string, what: string, uid?: number | "other"): string {
  const text = readForStart(file).toString();
  checkPrivate(file, what, uid);
  const secret = text.replace(/\r?\n$/, "");
  if (secret === "" || secret.includes("\n")) throw new StartError(`${file} must hold ${what} in one line`);
  return secret;
}

/** Whether a URL such as `postgres://user:password@host` holds a password, even if it is malformed. */
export function holdsPassword(url: string): boolean {
  return /^[^/]*\/\/[^/@]*:[^/@]+@/.test(url) || /[?&]password=./i.test(url);
}

/** Returns the URL with the password. `key`: the setting that holds the URL, named in the `StartError`. */
export function withPassword(url: string, password: string, key: string): string {
  if (holdsPassword(url)) throw new StartError(`${key}.url holds a password: remove it or ${key}.passwordFile`);
  const parsed = URL.parse(url);
  if (!parsed) throw new StartError(`${key}.url is no URL`);
  parsed.password = encodeURIComponent(password);
  // A URL without a host cannot have a password.
  if (parsed.password === "") throw new StartError(`${key}.url has no host, as ${key}.passwordFile needs`);
  return parsed.href;
}
