/** The router's configuration: one pure function from YAML text and environment, checked once, before anything listens. */
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Type, type Static } from "typebox";
import { formatMistakes, loadYaml } from "@weiche/shared/files/config-file.ts";
import { parseCatalogue, type Catalogue } from "@weiche/shared/catalogue.ts";
import type { ServiceChange } from "@weiche/shared/changelog.ts";
import { dataDirectory } from "@weiche/shared/files/data-directory.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { formatListen, isLoopback, parseListen, type ListenAddress } from "@weiche/shared/http/listen.ts";
import { checkPrivate, holdsPassword, readSecret, withPassword } from "@weiche/shared/files/private-file.ts";

export interface RouterConfig {
  readonly listen: {
    readonly api: ListenAddress;
    readonly portal: ListenAddress;
    readonly nodes: ListenAddress;
    readonly data: ListenAddress;
    readonly ops: ListenAddress;
  };
  /** `router/` in the data directory: lock, admin socket, embedded database. */
  readonly stateDir: string;
  /** Addresses for people: snippets, links, invitations. Absent: where the router listens. */
  readonly publicApi?: string;
  readonly publicPortal?: string;
  /** Whether anybody may open an account in the portal. */
  readonly registration: "open" | "closed";
  /** Absent: links for people are shown to whoever makes them. The URL may hold a password. */
  readonly smtp?: { readonly url: string; readonly from: string };
  readonly catalogueFile: string;
  /** Absent: the embedded server. */
  readonly databaseUrl?: string;
  /** API and portal; absent: plain HTTP behind a proxy. */
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly nodesTls?: { readonly cert: string; readonly key: string; readonly ca: string };
  /** host:port that agents dial for data connections. Absent: where the router listens for them. */
  readonly dataAdvertise?: string;
  /** How many days of usage records are kept. */
  readonly usageDays: number;
  /** How many days of the audit log. */
  readonly auditDays: number;
  /** How often usage is compared with quotas and limits. */
  readonly evaluateMs: number;
  readonly limits: {
    /** 0 turns the limit off. */
    readonly perIpPerSecond: number;
    readonly perIpBurst: number;
    readonly trustedProxies: readonly string[];
  };
  readonly requestMsMax: number;
  /** At SIGTERM, how long running streams may go on. */
  readonly shutdownMsMax: number;
  readonly logLevel: string;
}

const closed = { additionalProperties: false } as const;
const optionalString = Type.Optional(Type.String());

const routerSchema = Type.Object(
  {
    listen: Type.Optional(
      Type.Object(
        {
          api: optionalString,
          portal: optionalString,
          nodes: optionalString,
          data: optionalString,
          ops: optionalString,
        },
        closed,
      ),
    ),
    dataDir: optionalString,
    public: Type.Optional(Type.Object({ api: optionalString, portal: optionalString }, closed)),
    portal: Type.Optional(Type.Object({ registration: Type.Optional(Type.Enum(["closed", "open"])) }, closed)),
    retention: Type.Optional(
      Type.Object(
        {
          usageDays: Type.Optional(Type.Integer({ minimum: 1 })),
          auditDays: Type.Optional(Type.Integer({ minimum: 1 })),
        },
        closed,
      ),
    ),
    catalogue: Type.String(),
    database: Type.Optional(Type.Object({ url: optionalString, passwordFile: optionalString }, closed)),
    tls: Type.Optional(Type.Object({ cert: Type.String(), key: Type.String() }, closed)),
    nodes: Type.Optional(
      Type.Object(
        {
          tls: Type.Optional(Type.Object({ cert: Type.String(), key: Type.String(), ca: Type.String() }, closed)),
          dataAdvertise: optionalString,
        },
        closed,
      ),
    ),
    credits: Type.Optional(Type.Object({ evaluateSeconds: Type.Optional(Type.Number({ minimum: 1 })) }, closed)),
    limits: Type.Optional(
      Type.Object(
        {
          perIpPerSecond: Type.Optional(Type.Number({ minimum: 0 })),
          perIpBurst: Type.Optional(Type.Integer({ minimum: 1 })),
          trustedProxies: Type.Optional(Type.Array(Type.String())),
        },
        closed,
      ),
    ),
    smtp: Type.Optional(
      Type.Object(
        {
          url: Type.String({ pattern: "^smtps?://" }),
          passwordFile: optionalString,
          from: Type.String({ pattern: "@" }),
        },
        closed,
      ),
    ),
    requestSeconds: Type.Optional(Type.Number({ minimum: 1 })),
    shutdownSeconds: Type.Optional(Type.Number({ minimum: 0 })),
    logLevel: Type.Optional(Type.Enum(["trace", "debug", "info", "warn", "error", "fatal"])),
  },
  closed,
);

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
  return config;
}

export interface CatalogueFile {
  readonly catalogue: Catalogue;
  /** What customers are told of it, the youngest first. */
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

function toConfig(raw: Static<typeof routerSchema>, baseDir: string, env: NodeJS.ProcessEnv): RouterConfig {
  const listen = {
    api: parseListen(env["WEICHE_API_LISTEN"] ?? raw.listen?.api ?? "127.0.0.1:8080", "listen.api"),
    portal: parseListen(env["WEICHE_PORTAL_LISTEN"] ?? raw.listen?.portal ?? "127.0.0.1:8081", "listen.portal"),
    nodes: parseListen(env["WEICHE_NODES_LISTEN"] ?? raw.listen?.nodes ?? "127.0.0.1:7443", "listen.nodes"),
    data: parseListen(env["WEICHE_DATA_LISTEN"] ?? raw.listen?.data ?? "127.0.0.1:7444", "listen.data"),
    ops: parseListen(env["WEICHE_OPS_LISTEN"] ?? raw.listen?.ops ?? "127.0.0.1:9464", "listen.ops"),
  };
  const dataDir = dataDirectory(env, raw.dataDir === undefined ? undefined : resolve(baseDir, raw.dataDir));
  const files = <T extends Record<string, string>>(tls: T) =>
    Object.fromEntries(Object.entries(tls).map(([key, path]) => [key, resolve(baseDir, path)])) as T;
  const fullUrl = (key: string, url: string, passwordFile: string | undefined) =>
    passwordFile === undefined ? url : withPassword(url, readSecret(resolve(baseDir, passwordFile), "a password"), key);
  return {
    listen,
    stateDir: join(dataDir, "router"),
    publicApi: raw.public?.api,
    publicPortal: raw.public?.portal,
    registration: raw.portal?.registration ?? "closed",
    smtp: raw.smtp && { url: fullUrl("smtp", raw.smtp.url, raw.smtp.passwordFile), from: raw.smtp.from },
    catalogueFile: resolve(baseDir, raw.catalogue),
    databaseUrl: raw.database?.url && fullUrl("database", raw.database.url, raw.database.passwordFile),
    tls: raw.tls && files(raw.tls),
    nodesTls: raw.nodes?.tls && files(raw.nodes.tls),
    dataAdvertise: raw.nodes?.dataAdvertise,
    usageDays: raw.retention?.usageDays ?? 400,
    auditDays: raw.retention?.auditDays ?? 3_650,
    evaluateMs: (raw.credits?.evaluateSeconds ?? 60) * 1000,
    limits: {
      perIpPerSecond: raw.limits?.perIpPerSecond ?? 10,
      perIpBurst: raw.limits?.perIpBurst ?? 20,
      trustedProxies: raw.limits?.trustedProxies ?? [],
    },
    requestMsMax: (raw.requestSeconds ?? 600) * 1000,
    shutdownMsMax: (raw.shutdownSeconds ?? 600) * 1000,
    logLevel: env["WEICHE_LOG_LEVEL"] ?? raw.logLevel ?? "info",
  };
}
