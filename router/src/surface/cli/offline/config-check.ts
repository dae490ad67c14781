/** Checks a router.yaml and the files that it names, as the router reads them at its start. */
import { isIP } from "node:net";
import { readFileSync } from "node:fs";
import type { X509Certificate } from "node:crypto";
import { dirname, join, resolve } from "node:path";
import { parseCatalogue } from "@weiche/shared/catalogue.ts";
import {
  checkYaml,
  locate,
  whatFails,
  type Finding,
  type Mistake,
  type Verdict,
} from "@weiche/shared/files/config-file.ts";
import { checkPrivate, readSecret } from "@weiche/shared/files/private-file.ts";
import { readerOf } from "@weiche/shared/files/service-reader.ts";
import { mayBeMade, readServiceUnit, type ServiceUnit } from "@weiche/shared/files/service-unit.ts";
import { readFault, readForStart } from "@weiche/shared/files/start-error.ts";
import { firstOpenPort, parseListen } from "@weiche/shared/http/listen.ts";
import { judgeTls, type TlsFinding, type TlsJudging } from "@weiche/shared/http/tls-check.ts";
import type { TlsPaths } from "@weiche/shared/http/tls-files.ts";
import { readToken } from "@weiche/shared/program/ops-access.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import type { PackageEntry } from "@weiche/shared/packages.ts";
import { catalogueFileOf, loadDatabaseUrl } from "../../../config/config.ts";
import { contradictions, passwordsIn } from "../../../config/config-rules.ts";
import { routerSchema, type RawRouter } from "../../../config/config-schema.ts";
import { createClientAddress } from "../../../edge/client-address.ts";
import { askDatabase } from "./database-check.ts";

interface RouterVerdict extends Verdict {
  /** Undefined if router.yaml names no catalogue. */
  readonly catalogue?: Verdict;
}

/**
 * Throws `StartError` if the file cannot be read. `dataDir`: the data directory, if the file names none. `unit`: the unit
 * that will start the router, if this host has one.
 */
export async function checkRouterConfig(
  file: string,
  dataDir: string,
  unit = readServiceUnit("weiche-router.service"),
): Promise<RouterVerdict> {
  const text = readForStart(file).toString();
  const { value: raw, mistakes } = checkYaml(text, routerSchema, contradictions);
  if (!raw) return { file, mistakes, warnings: [] };
  const found = { mistakes: [] as Finding[], warnings: [] as Finding[] };
  const baseDir = dirname(resolve(file));
  const reader = readerOf(file, "WEICHE_CONFIG", unit);
  found.mistakes.push(...otherMistakes(file, raw, reader.uid));
  if (unit && reader.isOfUnit) found.mistakes.push(...closedPorts(raw, unit));
  const secrets = [...secretFiles(raw, baseDir)];
  for (const { path, file: named, read } of secrets) {
    const from = unit?.sources.get(named);
    const isMadeLater = from === undefined && mayBeMade(named, unit);
    found[isMadeLater ? "warnings" : "mistakes"].push(...whatFails(path, () => read(from ?? named, reader.uid)));
  }
  const uses = [...tlsUses(raw, baseDir)];
  for (const [path, { kind, message }] of tlsFindings(uses, { nowMs: systemClock.now(), uid: reader.uid, unit }))
    found[kind === "warning" ? "warnings" : "mistakes"].push([path, message]);
  const catalogueFile = catalogueFileOf(raw, baseDir);
  const read: (readonly [Finding[0], string])[] = [
    [[], resolve(file)],
    [["catalogue"], catalogueFile],
    ...secrets.map(({ path, file: named }) => [path, named] as const),
    ...uses.flatMap(({ path, paths }) => Object.entries(paths).map(([key, at]) => [[...path, key], at] as const)),
  ];
  found.mistakes.push(...reader.findings(read));
  const { packages, ...catalogue } = checkCatalogue(catalogueFile);
  if (packages && found.mistakes.length === 0) {
    const url = loadDatabaseUrl(file, (secret) => unit?.sources.get(secret) ?? secret);
    const stateDir = join(raw.dataDir === undefined ? dataDir : resolve(baseDir, raw.dataDir), "router");
    const asked = await askDatabase({ url, stateDir }, packages, systemClock.now());
    const toFinding = (message: string): Finding => [["database", "url"], message];
    found.mistakes.push(...asked.mistakes.map(toFinding));
    found.warnings.push(...asked.warnings.map(toFinding));
    const indexOf = (name: string) => packages.findIndex((each) => each.name === name);
    const refused = asked.refused.map(({ name, message }): Finding => [["packages", indexOf(name)], message]);
    catalogue.mistakes.push(...locate(readFileSync(catalogueFile, "utf8"), refused));
  }
  return { file, mistakes: locate(text, found.mistakes), warnings: locate(text, found.warnings), catalogue };
}

function* otherMistakes(file: string, raw: RawRouter, uid: number | "other"): Iterable<Finding> {
  for (const key of passwordsIn(raw))
    yield* whatFails(key.split("."), () => checkPrivate(file, `a password (${key})`, uid));
  yield* whatFails(["limits", "trustedProxies"], () => createClientAddress(raw.limits.trustedProxies));
}

/** Finds listeners on ports that the unit's user may not use. */
function* closedPorts(raw: RawRouter, unit: ServiceUnit): Iterable<Finding> {
  if (unit.user === undefined || unit.bindsLowPorts) return;
  const open = firstOpenPort();
  for (const [name, text] of Object.entries(raw.listen)) {
    if (text === "off") continue;
    const { port } = parseListen(text, `listen.${name}`);
    if (port > 0 && port < open)
      yield [
        ["listen", name],
        `listen.${name} ${text}: ${unit.name} may not use ports below ${open}: choose another one, or allow it (docs/runbook.md#a-port-below-1024)`,
      ];
  }
}

interface SecretFile {
  readonly path: Finding[0];
  /** Absolute, as the configuration names it. */
  readonly file: string;
  /** Throws `StartError` if the file holds no such secret. */
  readonly read: (from: string, uid: number | "other") => string;
}

function* secretFiles(raw: RawRouter, baseDir: string): Iterable<SecretFile> {
  const passwords: [path: string[], file: string | undefined][] = [
    [["database", "passwordFile"], raw.database.passwordFile],
    [["smtp", "passwordFile"], raw.smtp?.passwordFile],
    [["limits", "storePasswordFile"], raw.limits.storePasswordFile],
  ];
  for (const [path, file] of passwords)
    if (file !== undefined)
      yield { path, file: resolve(baseDir, file), read: (from, uid) => readSecret(from, "a password", uid) };
  if (raw.ops?.tokenFile !== undefined)
    yield { path: ["ops", "tokenFile"], file: resolve(baseDir, raw.ops.tokenFile), read: readToken };
}

interface TlsUse {
  readonly path: Finding[0];
  /** Absolute. */
  readonly paths: Partial<TlsPaths>;
  /** The names that the certificate must have. */
  readonly names: readonly string[];
}

function* tlsUses(raw: RawRouter, baseDir: string): Iterable<TlsUse> {
  const uses: [path: string[], paths: Partial<TlsPaths> | undefined, names: string[]][] = [
    [["tls"], raw.tls, []],
    [["nodes", "tls"], raw.nodes.tls, dialledNames(raw)],
    [["ops", "tls"], raw.ops?.tls, []],
    [["limits", "storeTls"], raw.limits.storeTls, []],
  ];
  for (const [path, paths, names] of uses) {
    if (!paths) continue;
    const absolute = Object.entries(paths).map(([file, at]) => [file, resolve(baseDir, at as string)]);
    yield { path, paths: Object.fromEntries(absolute) as Partial<TlsPaths>, names };
  }
}

/** A nodes certificate without the names that agents dial is a mistake. */
function* tlsFindings(
  uses: readonly TlsUse[],
  judging: Omit<TlsJudging, "judgeNames">,
): Iterable<readonly [Finding[0], TlsFinding]> {
  for (const { path, paths, names } of uses)
    for (const finding of judgeTls(paths, { ...judging, judgeNames: missingName(names) }))
      yield [[...path, finding.file], finding];
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

/** `packages` is undefined if the file has mistakes. */
function checkCatalogue(file: string): {
  file: string;
  mistakes: Mistake[];
  warnings: [];
  packages?: readonly PackageEntry[];
} {
  try {
    const { mistakes, catalogue, packages } = parseCatalogue(readFileSync(file, "utf8"));
    return { file, mistakes: [...mistakes], warnings: [], ...(catalogue && { packages }) };
  } catch (error) {
    return { file, mistakes: [{ line: 0, message: `cannot be read: ${readFault(error)}` }], warnings: [] };
  }
}
