/** Reads the router's configuration from YAML and environment, and checks it once, before anything listens. */
import { dirname, join, resolve } from "node:path";
import { formatMistakes, loadYaml } from "@weiche/shared/files/config-file.ts";
import { contentDigest } from "@weiche/shared/files/content-digest.ts";
import { parseCatalogue, type Catalogue } from "@weiche/shared/catalogue.ts";
import type { ServiceChange } from "@weiche/shared/changelog.ts";
import { dataDirectory } from "@weiche/shared/files/data-directory.ts";
import { formatListen, parseListen } from "@weiche/shared/http/listen.ts";
import { readForStart, StartError } from "@weiche/shared/files/start-error.ts";
import { readOpsConfig } from "@weiche/shared/program/ops-access.ts";
import { checkPrivate, readSecret, withPassword } from "@weiche/shared/files/private-file.ts";
import type { PackageEntry } from "@weiche/shared/packages.ts";
import { withOneHost } from "./database-url.ts";
import { exposures, passwordsIn, readListen, storeMistakes } from "./config-rules.ts";
import { routerSchema, type RawRouter } from "./config-schema.ts";
import { invoiceMistakes, toInvoiceSettings } from "./invoice-settings.ts";
import { parseStore, type StoreAddress } from "./store-address.ts";

export type RouterConfig = ReturnType<typeof toConfig>;

export interface LimitStoreConfig extends StoreAddress {
  /** Paths of the TLS files. */
  readonly tlsFiles: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  /** The limits of each router while the store does not answer: the whole limits, or its share of them. */
  readonly whenDown: "full" | "share";
}

/** Reads and checks the configuration file. Variables override the file. Throws a `StartError`. */
export function loadRouterConfig(file: string, env: NodeJS.ProcessEnv): RouterConfig {
  const raw = loadYaml(file, routerSchema);
  for (const key of passwordsIn(raw)) checkPrivate(file, `a password (${key})`);
  for (const key of ["database", "smtp"] as const)
    if (raw[key]?.passwordFile !== undefined && !raw[key].url)
      throw new StartError(`${file}: ${key}.passwordFile needs ${key}.url`);
  for (const [, message] of [...storeMistakes(raw), ...(raw.invoices ? invoiceMistakes(raw.invoices) : [])])
    throw new StartError(`${file}: ${message}`);
  const config = toConfig(raw, dirname(resolve(file)), env);
  for (const [, message] of exposures(raw, config.listen)) throw new StartError(`${file}: ${message}`);
  return config;
}

/**
 * Reads the URL of the configured database; undefined for the embedded server. Reads no other password, because commands
 * for the database run in their own units with their own credentials, and may not read others. `placeOf`: finds the file
 * of the password. Throws a `StartError`.
 */
export function loadDatabaseUrl(file: string, placeOf: (secret: string) => string): string | undefined {
  const {
    database: { url, passwordFile },
  } = loadYaml(file, routerSchema);
  if (url === undefined || passwordFile === undefined) return url;
  const baseDir = dirname(resolve(file));
  return fullUrl("database", url, placeOf(resolve(baseDir, passwordFile)), baseDir);
}

export interface CatalogueFile {
  /** The same for two files with the same content, whatever their comments, order of keys and format. */
  readonly digest: string;
  readonly catalogue: Catalogue;
  readonly packages: readonly PackageEntry[];
  /** The changelog for customers, newest first. */
  readonly changes: readonly ServiceChange[];
}

/** Returns the path of the catalogue. `baseDir`: the folder of router.yaml. */
export function catalogueFileOf({ catalogue }: RawRouter, baseDir: string): string {
  return resolve(baseDir, catalogue);
}

/** Reads the catalogue file. Throws a `StartError` with every mistake and its line. */
export function loadCatalogue(file: string): CatalogueFile {
  const text = readForStart(file).toString();
  const { mistakes, ...read } = parseCatalogue(text);
  if (!read.catalogue) throw new StartError(formatMistakes(file, mistakes).join("; "));
  return { ...read, digest: contentDigest(text) };
}

function toConfig(raw: RawRouter, baseDir: string, env: NodeJS.ProcessEnv) {
  const dataDir = dataDirectory(env, raw.dataDir === undefined ? undefined : resolve(baseDir, raw.dataDir));
  const files = <T extends object>(tls: T) => resolved(tls, baseDir);
  const listen = readListen(raw, env);
  const dialled = (key: "announce" | "dataAdvertise") => {
    const text = raw.nodes[key];
    return text === undefined ? undefined : formatListen(parseListen(text, `nodes.${key}`));
  };
  return {
    listen,
    ops: readOpsConfig(listen.ops, raw.ops, baseDir),
    /** `router/` in the data directory, with lock, admin socket and embedded database. */
    stateDir: join(dataDir, "router"),
    /** Public addresses for code examples, links and invitations. If undefined, the listeners' addresses are used. */
    publicApi: raw.public.api,
    publicPortal: raw.public.portal,
    publicConsole: raw.public.console,
    /** `open`: anybody may open an account in the portal. */
    registration: raw.portal.registration,
    terms: raw.portal.terms,
    /** If undefined, links are shown to the person who makes them. The URL may contain a password. */
    smtp: raw.smtp && { url: fullUrl("smtp", raw.smtp.url, raw.smtp.passwordFile, baseDir), from: raw.smtp.from },
    /** If undefined, no invoices are issued. */
    invoices: raw.invoices && toInvoiceSettings(raw.invoices),
    catalogueFile: catalogueFileOf(raw, baseDir),
    /** If undefined, the embedded server is used. */
    databaseUrl: databaseUrlOf(raw, baseDir),
    /** TLS of API and portal. If undefined, they serve plain HTTP behind a proxy. */
    tls: raw.tls && files(raw.tls),
    nodesTls: raw.nodes.tls && files(raw.nodes.tls),
    /** host:port that agents dial for data connections. Defaults to the address of the listener. */
    dataAdvertise: dialled("dataAdvertise"),
    /** host:port that agents dial for links; other routers send it to them. If undefined, `linkAddressOf` decides. */
    announce: dialled("announce"),
    /** For how many days usage records are kept. */
    usageDays: raw.retention.usageDays,
    /** For how many days single requests are listed. */
    requestDays: raw.retention.requestDays,
    /** For how many days dead keys stay in lists. */
    deadKeyDays: raw.retention.deadKeyDays,
    /** For how many days audit entries are kept. */
    auditDays: raw.retention.auditDays,
    /** How often usage is compared with quotas and limits. */
    evaluateMs: raw.credits.evaluateSeconds * 1000,
    limits: {
      /** 0 turns the limit off. */
      perIpPerSecond: raw.limits.perIpPerSecond,
      perIpBurst: raw.limits.perIpBurst,
      trustedProxies: raw.limits.trustedProxies,
    },
    /** The store in which routers share the limits of accounts. If undefined, each router counts in its memory. */
    limitStore: readStore(raw, baseDir),
    /** True if `limits.store` is not set. Then the router must be the only one, because limits would not be shared. */
    mustBeAlone: raw.limits.store === undefined,
    requestMsMax: raw.requestSeconds * 1000,
    /** How long new requests are still served after SIGTERM. */
    shutdownAcceptMs: raw.shutdownAcceptSeconds * 1000,
    /** How long running streams may continue after the router has stopped accepting requests. */
    shutdownMsMax: raw.shutdownSeconds * 1000,
    logLevel: env["WEICHE_LOG_LEVEL"] ?? raw.logLevel,
  };
}

function databaseUrlOf({ database }: RawRouter, baseDir: string): string | undefined {
  return database.url && fullUrl("database", database.url, database.passwordFile, baseDir);
}

function fullUrl(key: string, url: string, passwordFile: string | undefined, baseDir: string): string {
  if (passwordFile === undefined) return url;
  const password = readSecret(resolve(baseDir, passwordFile), "a password");
  return withOneHost(url, (one) => withPassword(one, password, key));
}

function readStore({ limits }: RawRouter, baseDir: string): LimitStoreConfig | undefined {
  const { store = "memory", storePasswordFile: file, storeTls = {}, whenStoreIsDown } = limits;
  const address = parseStore(store);
  if (!address) return undefined;
  const password = file === undefined ? address.password : readSecret(resolve(baseDir, file), "a password");
  const tlsFiles = resolved(storeTls, baseDir);
  return { ...address, ...(password !== undefined && { password }), tlsFiles, whenDown: whenStoreIsDown };
}

/** Returns the paths made absolute. */
function resolved<T extends object>(paths: T, baseDir: string): T {
  return Object.fromEntries(Object.entries(paths).map(([key, path]) => [key, resolve(baseDir, path as string)])) as T;
}
