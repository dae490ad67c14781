/** The router's configuration: one pure function from YAML text and environment, checked once, before anything listens. */
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { formatMistakes, loadYaml } from "@weiche/shared/files/config-file.ts";
import { parseCatalogue, type Catalogue } from "@weiche/shared/catalogue.ts";
import type { ServiceChange } from "@weiche/shared/changelog.ts";
import { dataDirectory } from "@weiche/shared/files/data-directory.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { formatListen, isLoopback, parseListen, type ListenAddress } from "@weiche/shared/http/listen.ts";
import { readOpsConfig } from "@weiche/shared/program/ops-access.ts";
import { checkPrivate, holdsPassword, readSecret, withPassword } from "@weiche/shared/files/private-file.ts";
import { routerSchema, type RawRouter } from "./config-schema.ts";

export type RouterConfig = ReturnType<typeof toConfig>;

/** Reads and checks the file that `WEICHE_CONFIG` names; variables win over the file. Throws `StartError`. */
export function loadRouterConfig(file: string, env: NodeJS.ProcessEnv): RouterConfig {
  const raw = loadYaml(file, routerSchema);
  for (const key of ["database", "smtp"] as const) {
    const { url, passwordFile } = raw[key] ?? {};
    if (holdsPassword(url ?? "")) checkPrivate(file, `a password (${key}.url)`);
    if (passwordFile !== undefined && !url) throw new StartError(`${file}: ${key}.passwordFile needs ${key}.url`);
  }
  const config = toConfig(raw, dirname(resolve(file)), env);
  for (const what of ["nodes", "data"] as const) {
    if (!config.nodesTls && !isLoopback(config.listen[what].host)) {
      throw new StartError(
        `${file}: listen.${what} ${formatListen(config.listen[what])} is not loopback: it needs nodes.tls (cert, key, ca)`,
      );
    }
  }
  const { console: ofConsole } = config.listen;
  if (ofConsole && !config.tls && !isLoopback(ofConsole.host))
    throw new StartError(
      `${file}: listen.console ${formatListen(ofConsole)} is not loopback: it needs tls (cert, key), or listen on 127.0.0.1, or turn it off`,
    );
  return config;
}

export interface CatalogueFile {
  readonly catalogue: Catalogue;
  /** The changelog for customers, the youngest entry first. */
  readonly changes: readonly ServiceChange[];
}

/** Reads the catalogue file. Throws `StartError` with every mistake and its line. */
export function loadCatalogue(file: string): CatalogueFile {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new StartError(`cannot read the catalogue ${file}: ${(error as NodeJS.ErrnoException).code}`);
  }
  const { mistakes, ...read } = parseCatalogue(text);
  if (!read.catalogue) throw new StartError(formatMistakes(file, mistakes).join("; "));
  return read;
}

function toConfig(raw: RawRouter, baseDir: string, env: NodeJS.ProcessEnv) {
  const dataDir = dataDirectory(env, raw.dataDir === undefined ? undefined : resolve(baseDir, raw.dataDir));
  const files = <T extends Record<string, string>>(tls: T) =>
    Object.fromEntries(Object.entries(tls).map(([key, path]) => [key, resolve(baseDir, path)])) as T;
  const fullUrl = (key: string, url: string, passwordFile: string | undefined) =>
    passwordFile === undefined ? url : withPassword(url, readSecret(resolve(baseDir, passwordFile), "a password"), key);
  return {
    listen: {
      api: parseListen(env["WEICHE_API_LISTEN"] ?? raw.listen?.api ?? "127.0.0.1:8080", "listen.api"),
      portal: parseListen(env["WEICHE_PORTAL_LISTEN"] ?? raw.listen?.portal ?? "127.0.0.1:8081", "listen.portal"),
      /** Absent: it is off. */
      console: readConsoleListen(env["WEICHE_CONSOLE_LISTEN"] ?? raw.listen?.console ?? "127.0.0.1:8082"),
      nodes: parseListen(env["WEICHE_NODES_LISTEN"] ?? raw.listen?.nodes ?? "127.0.0.1:7443", "listen.nodes"),
      data: parseListen(env["WEICHE_DATA_LISTEN"] ?? raw.listen?.data ?? "127.0.0.1:7444", "listen.data"),
    },
    ops: readOpsConfig(
      parseListen(env["WEICHE_OPS_LISTEN"] ?? raw.listen?.ops ?? "127.0.0.1:9464", "listen.ops"),
      raw.ops,
      baseDir,
    ),
    /** `router/` in the data directory: lock, admin socket, embedded database. */
    stateDir: join(dataDir, "router"),
    /** Addresses for people: snippets, links, invitations. Absent: where the router listens. */
    publicApi: raw.public?.api,
    publicPortal: raw.public?.portal,
    publicConsole: raw.public?.console,
    /** Whether anybody may open an account in the portal. */
    registration: raw.portal?.registration ?? "closed",
    /** Absent: links for people are shown to whoever makes them. The URL may hold a password. */
    smtp: raw.smtp && { url: fullUrl("smtp", raw.smtp.url, raw.smtp.passwordFile), from: raw.smtp.from },
    catalogueFile: resolve(baseDir, raw.catalogue),
    /** Absent: the embedded server. */
    databaseUrl: raw.database?.url && fullUrl("database", raw.database.url, raw.database.passwordFile),
    /** API and portal; absent: plain HTTP behind a proxy. */
    tls: raw.tls && files(raw.tls),
    nodesTls: raw.nodes?.tls && files(raw.nodes.tls),
    /** host:port that agents dial for data connections. Absent: where the router listens for them. */
    dataAdvertise: raw.nodes?.dataAdvertise,
    /** How many days of usage records are kept. */
    usageDays: raw.retention?.usageDays ?? 400,
    /** How many days of the audit log are kept. */
    auditDays: raw.retention?.auditDays ?? 3_650,
    /** How often usage is compared with quotas and limits. */
    evaluateMs: (raw.credits?.evaluateSeconds ?? 60) * 1000,
    limits: {
      /** 0 turns the limit off. */
      perIpPerSecond: raw.limits?.perIpPerSecond ?? 10,
      perIpBurst: raw.limits?.perIpBurst ?? 20,
      trustedProxies: raw.limits?.trustedProxies ?? [],
    },
    requestMsMax: (raw.requestSeconds ?? 600) * 1000,
    /** At SIGTERM, how long running streams may go on. */
    shutdownMsMax: (raw.shutdownSeconds ?? 600) * 1000,
    logLevel: env["WEICHE_LOG_LEVEL"] ?? raw.logLevel ?? "info",
  };
}

function readConsoleListen(text: string): ListenAddress | undefined {
  return text === "off" ? undefined : parseListen(text, "listen.console");
}
