/** Checks files with secrets: no other user of the host may read or change them. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { readForStart, StartError } from "./start-error.ts";

/**
 * Throws `StartError` with the command that corrects the mode. `what`: such as "a private key". `uid`: the reader. The
 * group may read another owner's file, because root and systemd pass files and credentials to a service this way.
 */
export function checkPrivate(file: string, what: string, uid: number | "other" = process.geteuid?.() ?? "other"): void {
  const stat = statSync(file);
  const isOwn = stat.uid === uid;
  if ((stat.mode & (isOwn ? 0o077 : 0o007)) === 0) return;
  const mode = (stat.mode & 0o777).toString(8).padStart(4, "0");
  throw new StartError(
    `${file} holds ${what}, but its mode ${mode} gives other users access: chmod ${isOwn ? "go=" : "o="} ${file}`,
  );
}

/**
 * Returns this unit's own credential in place of another unit's credential of the same name, which it cannot read.
 * Returns other files unchanged. Throws `StartError` if this unit has no such credential.
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

/** Reads a secret, the single line of a file. Throws `StartError`, which does not quote it. `uid`: the reader. */
export function readSecret(file: string, what: string, uid?: number | "other"): string {
  const text = readForStart(file).toString();
  checkPrivate(file, what, uid);
  const secret = text.replace(/\r?\n$/, "");
  if (secret === "" || secret.includes("\n")) throw new StartError(`${file} must hold ${what} in one line`);
  return secret;
}

/** Returns whether a URL such as `postgres://user:password@host` contains a password, even if it is malformed. */
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
