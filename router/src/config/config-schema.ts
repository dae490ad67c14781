/**
 * Schema of router.yaml: names, types, ranges and descriptions. `node docs/tools/configure-page.ts` makes the table in
 * docs/configuration.md from it. A missing key with a `default` gets this value; `absent` describes in words what applies
 * without a value.
 */
import { opsSchema } from "@weiche/shared/program/ops-access.ts";
import { Type, type Static, type TSchema } from "typebox";
import { invoicesSchema } from "./invoice-settings.ts";

const closed = { additionalProperties: false } as const;

function text(description: string) {
  return Type.String({ description });
}

/** `absent`: what applies without the key. */
function optional(description: string, absent: string) {
  return Type.Optional(Type.String({ description, absent }));
}

function listener(description: string, defaultAddress: string) {
  return Type.String({ description: `\`host:port\` of ${description}`, default: defaultAddress });
}

/** A part of the file that may be missing. Its members are optional or have defaults. */
function section<P extends Record<string, TSchema>>(members: P) {
  return Type.Object(members, { ...closed, default: {} });
}

const listen = section({
  api: listener("the public API", "127.0.0.1:8080"),
  portal: listener("the portal", "127.0.0.1:8081"),
  console: listener(
    "the [operators' console](runbook.md#console), or `off`. On loopback it is plain HTTP; elsewhere it needs `tls`",
    "127.0.0.1:8082",
  ),
  nodes: listener("links of nodes; other addresses than loopback need `nodes.tls`", "127.0.0.1:7443"),
  data: listener("data connections of nodes; other addresses than loopback need `nodes.tls`", "127.0.0.1:7444"),
  ops: listener(
    "metrics and health (`/metrics`, `/healthz`, `/readyz`); other addresses than loopback need `ops.tls` or `ops.tokenFile`",
    "127.0.0.1:9464",
  ),
});

const addresses = section({
  api: optional("public address of the API, shown in code examples", "the address of `listen.api`"),
  portal: optional(
    "public address of the portal, used in links and invitations ([behind a proxy](#the-portal-behind-its-name))",
    "the address of `listen.portal`",
  ),
  console: optional(
    "public address of the console, used in the links of `weiche console`",
    "the address of `listen.console`",
  ),
});

const database = section({
  url: optional(
    "URL of your PostgreSQL (15 or newer, `fsync` on). A router opens at most 15 connections. With standbys, name all hosts (`postgres://weiche@db1.example,db2.example/weiche`): the router uses the primary, also after a failover ([requirements](runbook.md#a-database-with-standbys))",
    "the embedded PostgreSQL",
  ),
  passwordFile: optional(
    "a file with the password of `database.url` in one line, for a URL without a password ([how](install.md#passwords)). `weiche backup` and `weiche restore` read it, too",
    "none",
  ),
});

const tls = Type.Object(
  {
    cert: text("file of the certificate chain"),
    key: text("file of its private key"),
  },
  {
    ...closed,
    description:
      "TLS of API and portal, and of a console that does not listen on loopback: 1.3, and 1.2 only with ECDHE and AES-GCM or ChaCha20, without renegotiation. The files are read again when they change",
    absent: "plain HTTP, behind your proxy",
  },
);

const nodes = section({
  tls: Type.Optional(
    Type.Object(
      {
        cert: text("file of the router's certificate chain"),
        key: text("file of its private key"),
        ca: text("file of the authority that signed the certificates of the nodes"),
      },
      { ...closed, description: "mutual TLS with nodes", absent: "nodes may connect only over loopback" },
    ),
  ),
  dataAdvertise: optional("the `host:port` that nodes dial for data connections", "`listen.data`"),
  announce: optional(
    "the `host:port` that nodes dial for links. Other routers of the database send it to their nodes. The certificate of `nodes.tls` must name the host",
    "the host of `dataAdvertise` with the port of `listen.nodes`, else `listen.nodes`. If that means all addresses, only nodes whose `routers` name this router link to it",
  ),
});

const limits = section({
  perIpPerSecond: Type.Number({
    minimum: 0,
    default: 10,
    description:
      "requests per second of one address; 0 turns the limit off. A request that exceeds it gets 503 and its connection is closed. An IPv6 /64 counts as one address, and a /48 has 16 times this limit. New connections have five times this limit, the portal's pages and files fifteen times",
  }),
  perIpBurst: Type.Integer({ minimum: 1, default: 20, description: "requests that one address may send at once" }),
  trustedProxies: Type.Array(Type.String(), {
    default: [],
    description:
      "proxies whose `X-Forwarded-For` is trusted and whose connections are not limited. The header's entries may have a port, brackets or quotes. If a client's entry is empty or names no address, the client has no limit per address and the log names the proxy once, because earlier entries may be invented",
  }),
  store: optional(
    "where requests per minute and parallel requests of accounts are counted. `memory`: each router counts its own. An address of Valkey or Redis 7: several routers share their limits ([how](install.md#several-routers))",
    "`memory`, and the router refuses to start if another router uses its database",
  ),
  storePasswordFile: optional("as `database.passwordFile`, for `limits.store`", "none"),
  storeTls: Type.Optional(
    Type.Object(
      {
        ca: optional(
          "file of the authority that signed the certificate of `limits.store`",
          "the authorities of Node.js",
        ),
        cert: optional("file of a client certificate, if the store requires one", "none"),
        key: optional("file of its private key", "none"),
      },
      {
        ...closed,
        description: "for `valkeys://`; the files are read at the start",
        absent: "no client certificate, and the authorities of Node.js",
      },
    ),
  ),
  whenStoreIsDown: Type.Enum(["full", "share"], {
    default: "full",
    description:
      "what each router allows by its own count while `limits.store` does not answer. `full`: the whole limits, so that no request is wrongly refused. `share`: the limits divided by the number of routers",
  }),
});

const smtp = Type.Object(
  {
    url: Type.String({
      pattern: "^smtps?://",
      description: "the server that sends mail, such as `smtps://user:password@mail.example`",
    }),
    from: Type.String({ pattern: "@", description: "the sender, such as `Weiche <portal@example>`" }),
    passwordFile: optional("as `database.passwordFile`, for `smtp.url`", "none"),
  },
  {
    ...closed,
    description: "sends invitations, password reset links, notices and sign-ins from new places by mail",
    absent: "links are shown to the person who makes them, and notices are in the portal only",
  },
);

export const routerSchema = Type.Object(
  {
    catalogue: text("file of the [model catalogue](#catalogueyaml)"),
    listen,
    ops: Type.Optional(opsSchema),
    dataDir: optional("the data directory, like `WEICHE_DATA_DIR`", "`data` in the project"),
    public: addresses,
    portal: section({
      registration: Type.Enum(["closed", "open"], {
        default: "closed",
        description:
          "`open`: anybody may open an account and becomes its Owner. With `smtp`, a mailed link confirms the e-mail address first. Without, the address is not verified",
      }),
      terms: Type.Optional(
        Type.String({
          pattern: "^https?://",
          description: "the address of your terms, which people accept when they open an account",
          absent: "nothing to accept",
        }),
      ),
    }),
    retention: section({
      usageDays: Type.Integer({
        minimum: 1,
        default: 400,
        description: "days for which usage records and counts of refusals are kept. Totals are kept without limit",
      }),
      requestDays: Type.Integer({
        minimum: 1,
        default: 30,
        description:
          "days for which the portal, the console and `weiche requests` list single requests, without content. Refused requests are deleted after them",
      }),
      deadKeyDays: Type.Integer({
        minimum: 1,
        default: 90,
        description:
          "days for which revoked and expired keys stay in lists. If a user has more than 100 such keys, the oldest are removed earlier. Usage keeps their names",
      }),
      auditDays: Type.Integer({
        minimum: 1,
        default: 3_650,
        description:
          "days for which entries of the audit log are kept. The remaining entries can still be verified (`weiche audit verify`)",
      }),
    }),
    database,
    tls: Type.Optional(tls),
    nodes,
    credits: section({
      evaluateSeconds: Type.Number({
        minimum: 1,
        default: 60,
        description: "how often usage is compared with quotas and limits, in seconds",
      }),
    }),
    limits,
    smtp: Type.Optional(smtp),
    invoices: Type.Optional(invoicesSchema),
    requestSeconds: Type.Number({
      minimum: 1,
      default: 600,
      description: "the maximum duration of a request, in seconds",
    }),
    shutdownAcceptSeconds: Type.Number({
      minimum: 0,
      maximum: 60,
      default: 10,
      description:
        "how long new requests are still served after SIGTERM, in seconds, while `/readyz` answers 503. Set it a little longer than your load balancer needs to notice; 0 without a load balancer",
    }),
    shutdownSeconds: Type.Number({
      minimum: 0,
      default: 600,
      description:
        "how long running answers may continue after `shutdownAcceptSeconds`, in seconds. Then the router waits for the database, at most 10 s if it does not answer",
    }),
    logLevel: Type.Enum(["trace", "debug", "info", "warn", "error", "fatal"], {
      default: "info",
      description: "the lowest level that is logged",
    }),
  },
  closed,
);

export type RawRouter = Static<typeof routerSchema>;
