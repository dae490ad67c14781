/** Checks a router.yaml and the files that it names, as the router reads them at its start. */
import { isIP } from "node:net";
import { readFileSync } from "node:fs";
import type { X509Certificate } from "node:crypto";
import { dirname, resolve } from "node:path";
import { parseCatalogue } from "@weiche/shared/catalogue.ts";
import { checkYaml, locate, whatFails, type Finding, type Verdict } from "@weiche/shared/files/config-file.ts";
import { checkPrivate, isCredential, readSecret } from "@weiche/shared/files/private-file.ts";
import { readForStart } from "@weiche/shared/files/start-error.ts";
import { parseListen } from "@weiche/shared/http/listen.ts";
import { judgeTls, type TlsFinding, type TlsJudging } from "@weiche/shared/http/tls-check.ts";
import type { TlsPaths } from "@weiche/shared/http/tls-files.ts";
import { readToken } from "@weiche/shared/program/ops-access.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { catalogueFileOf } from "../../../config/config.ts";
import { contradictions, passwordsIn } from "../../../config/config-rules.ts";
import { routerSchema, type RawRouter } from "../../../config/config-schema.ts";
import { createClientAddress } from "../../../edge/client-address.ts";

interface RouterVerdict extends Verdict {
  /** Undefined if router.yaml names no catalogue. */
  readonly catalogue?: Verdict;
}

/** Throws `StartError` if the file cannot be read. */
export function checkRouterConfig(file: string): RouterVerdict {
  const text = readForStart(file).toString();
  const { value: raw, mistakes } = checkYaml(text, routerSchema, contradictions);
  if (!raw) return { file, mistakes, warnings: [] };
  const found = { mistakes: [] as Finding[], warnings: [] as Finding[] };
  const baseDir = dirname(resolve(file));
  found.mistakes.push(...otherMistakes(file, raw));
  for (const [path, secret] of secretFiles(raw, baseDir))
    found[isCredential(secret.file) ? "warnings" : "mistakes"].push(...whatFails(path, secret.read));
  for (const [path, { kind, message }] of tlsFindings(raw, baseDir))
    found[kind === "warning" ? "warnings" : "mistakes"].push([path, message]);
  const catalogue = checkCatalogue(catalogueFileOf(raw, baseDir));
  return { file, mistakes: locate(text, found.mistakes), warnings: locate(text, found.warnings), catalogue };
}

/** If root runs the check, it checks for the service's user, which may read files of root through its group. */
const uid: number | "other" = process.geteuid?.() || "other";

function* otherMistakes(file: string, raw: RawRouter): Iterable<Finding> {
  for (const key of passwordsIn(raw))
    yield* whatFails(key.split("."), () => checkPrivate(file, `a password (${key})`, uid));
  yield* whatFails(["limits", "trustedProxies"], () => createClientAddress(raw.limits.trustedProxies));
}

function* secretFiles(
  raw: RawRouter,
  baseDir: string,
): Iterable<readonly [Finding[0], { readonly file: string; readonly read: () => string }]> {
  const passwords: [path: string[], file: string | undefined][] = [
    [["database", "passwordFile"], raw.database.passwordFile],
    [["smtp", "passwordFile"], raw.smtp?.passwordFile],
    [["limits", "storePasswordFile"], raw.limits.storePasswordFile],
  ];
  for (const [path, passwordFile] of passwords) {
    if (passwordFile === undefined) continue;
    const file = resolve(baseDir, passwordFile);
    yield [path, { file, read: () => readSecret(file, "a password", uid) }];
  }
  if (raw.ops?.tokenFile === undefined) return;
  const file = resolve(baseDir, raw.ops.tokenFile);
  yield [["ops", "tokenFile"], { file, read: () => readToken(file, uid) }];
}

/** A nodes certificate without the names that agents dial is a mistake. */
function* tlsFindings(raw: RawRouter, baseDir: string): Iterable<readonly [Finding[0], TlsFinding]> {
  const nowMs = systemClock.now();
  const uses: [path: string[], paths: Partial<TlsPaths> | undefined, names: string[]][] = [
    [["tls"], raw.tls, []],
    [["nodes", "tls"], raw.nodes.tls, dialledNames(raw)],
    [["ops", "tls"], raw.ops?.tls, []],
    [["limits", "storeTls"], raw.limits.storeTls, []],
  ];
  for (const [path, paths, names] of uses) {
    if (!paths) continue;
    const judging = { nowMs, uid, judgeNames: missingName(names) } satisfies TlsJudging;
    const absolute = Object.fromEntries(
      Object.entries(paths).map(([file, at]) => [file, resolve(baseDir, at as string)]),
    ) as Partial<TlsPaths>;
    for (const finding of judgeTls(absolute, judging)) yield [[...path, finding.file], finding];
  }
}

/** The host names that agents dial, as far as the file gives them. */
function dialledNames({ nodes }: RawRouter): string[] {
  return [nodes.announce, nodes.dataAdvertise].flatMap((text) =>
    text === undefined ? [] : [parseListen(text, "nodes").host],
  );
}

function missingName(names: readonly string[]) {
  return (certificate: X509Certificate): string | undefined => {
    const missing = names.filter((name) => !(isIP(name) ? certificate.checkIP(name) : certificate.checkHost(name)));
    return missing.length === 0
      ? undefined
      : `lacks the name ${missing.join(", ")}, which nodes dial (nodes.announce, nodes.dataAdvertise)`;
  };
}

function checkCatalogue(file: string): Verdict {
  try {
    const { mistakes } = parseCatalogue(readFileSync(file, "utf8"));
    return { file, mistakes, warnings: [] };
  } catch (error) {
    const message = `cannot be read: ${(error as NodeJS.ErrnoException).code}`;
    return { file, mistakes: [{ line: 0, message }], warnings: [] };
  }
}
