/**
 * Schema of router.yaml: names, types, ranges, and what each key means, from which `node deploy/configure-page.ts` makes
 * the table in deploy/CONFIGURE.md. A `default` is the value that an absent key has; `absent` says in words what holds then.
 */
import { opsSchema } from "@weiche/shared/program/ops-access.ts";
import { Type, type Static, type TSchema } from "typebox";

const closed = { additionalProperties: false } as const;

interface Described {
  readonly default?: string;
  readonly absent?: string;
}

function text(description: string, options: Described = {}) {
  return Type.String({ description, ...options });
}

function listener(description: string, defaultAddress: string) {
  return text(`\`host:port\` of ${description}`, { default: defaultAddress });
}

/** A part of the file that may be absent, and whose members all may be. */
function section<P extends Record<string, TSchema>>(members: P) {
  return Type.Optional(Type.Partial(Type.Object(members), closed));
}

const listen = section({
  api: listener("the public API", "127.0.0.1:8080"),
  portal: listener("the portal", "127.0.0.1:8081"),
  console: listener(
    "the [operators' console](RUNBOOK.md#console), or `off`. On loopback it is plain HTTP; elsewhere it needs `tls`",
    "127.0.0.1:8082",
  ),
  nodes: listener("links of nodes; beyond loopback it needs `nodes.tls`", "127.0.0.1:7443"),
  data: listener("data connections of nodes; beyond loopback it needs `nodes.tls`", "127.0.0.1:7444"),
  ops: listener(
    "metrics and health (`/metrics`, `/healthz`, `/readyz`); beyond loopback it needs `ops.tls` or `ops.tokenFile`",
    "127.0.0.1:9464",
  ),
});

const addresses = section({
  api: text("address of the API for people: in snippets", { absent: "where `listen.api` is" }),
  portal: text(
    "address of the portal for people: in links and invitations ([behind a proxy](#the-portal-behind-its-name))",
    {
      absent: "where `listen.portal` is",
    },
  ),
  console: text("address of the console for people: in the links of `weiche console`", {
    absent: "where `listen.console` is",
  }),
});

const database = section({
  url: text(
    "your PostgreSQL (15 or newer, `fsync` on), of which a router takes at most 15 connections. With standbys name all hosts (`postgres://weiche@db1.example,db2.example/weiche`): the primary among them is used, also after a failover ([what it needs](RUNBOOK.md#a-database-with-standbys))",
    { absent: "the embedded PostgreSQL" },
  ),
  passwordFile: text(
    "a file with the password of `database.url`, in one line: for a URL without one ([how](INSTALL.md#passwords)). `weiche backup` and `weiche restore` read it, too",
    { absent: "none" },
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
      "TLS on API and portal, and on a console beyond loopback: 1.3, and 1.2 with ECDHE and AES-GCM or ChaCha20 only, without renegotiation. The files are read again when they change",
    absent: "plain HTTP, behind a proxy of yours",
  },
);

const nodes = section({
  tls: Type.Object(
    {
      cert: text("file of the router's certificate chain"),
      key: text("file of its private key"),
      ca: text("file of the authority that signed the certificates of the nodes"),
    },
    { ...closed, description: "mutual TLS towards nodes", absent: "nodes connect by loopback only" },
  ),
  dataAdvertise: text("the `host:port` that nodes dial for data connections", { absent: "`listen.data`" }),
  announce: text(
    "the `host:port` that nodes dial for links: other routers of the database tell it to their nodes. The certificate of `nodes.tls` names the host",
    {
      absent:
        "the host of `dataAdvertise` with the port of `listen.nodes`, else `listen.nodes`; a router that listens on all addresses without either is linked to by those nodes alone whose `routers` name it",
    },
  ),
});

const limits = section({
  perIpPerSecond: Type.Number({
    minimum: 0,
    default: 10,
    description:
      "requests a second of one address; the addresses of an IPv6 /64 count as one, and a /48 has 16 times as much for all of its own. A request over it gets 503 and its connection is closed. Of connections an address has five times as many, of the portal's pages and their files fifteen times; connections beyond that are reset unanswered. 0 turns the limit off",
  }),
  perIpBurst: Type.Integer({ minimum: 1, default: 20, description: "requests that one address may send at once" }),
  trustedProxies: Type.Array(Type.String(), {
    default: [],
    description:
      "addresses whose `X-Forwarded-For` is believed; their connections are not counted. An entry may have a port, brackets or quotes. A client whose entry names no address (`unknown`) is counted by no limit on addresses, and the log names the proxy once",
  }),
  store: text(
    "where requests per minute and parallel requests of accounts are counted. `memory`: each router counts its own. Several routers share their limits in Valkey or Redis 7: `valkey://USER@HOST:PORT/DATABASE` (user, port and database may be left out; `valkeys://` for TLS), `valkey+sentinel://HOST:PORT,HOST:PORT/NAME` with the Sentinels' addresses and the primary's name there, or `valkey+cluster://HOST:PORT,HOST:PORT` with some nodes of a cluster ([how](INSTALL.md#several-routers))",
    { absent: "`memory`, and the router refuses to start beside another one on its database" },
  ),
  storePasswordFile: text("as `database.passwordFile`, for `limits.store`", { absent: "none" }),
  storeTls: Type.Partial(
    Type.Object({
      ca: text("file of the authority that signed the certificate of `limits.store`", {
        absent: "those that Node.js brings",
      }),
      cert: text("file of a certificate that the store asks its clients for", { absent: "none" }),
      key: text("file of its private key", { absent: "none" }),
    }),
    {
      ...closed,
      description: "for `valkeys://`; the files are read at the start",
      absent: "no certificate of its own, and the authorities that Node.js brings",
    },
  ),
  whenStoreIsDown: Type.Enum(["full", "share"], {
    default: "full",
    description:
      "what each router allows by its own count while `limits.store` does not answer. `full`: the limits, so that nobody is refused wrongly. `share`: the limits divided by the number of routers, so that all of them together allow no more",
  }),
});

const smtp = Type.Object(
  {
    url: Type.String({
      pattern: "^smtps?://",
      description: "the server that sends mail, such as `smtps://user:password@mail.example`",
    }),
    from: Type.String({ pattern: "@", description: "the sender, such as `Weiche <portal@example>`" }),
    passwordFile: Type.Optional(text("as `database.passwordFile`, for `smtp.url`", { absent: "none" })),
  },
  {
    ...closed,
    description: "mail with invitations and links for new passwords",
    absent: "such links are shown to the person who makes them",
  },
);

export const routerSchema = Type.Object(
  {
    catalogue: text("file of the [model catalogue](#catalogueyaml)"),
    listen,
    ops: Type.Optional(opsSchema),
    dataDir: Type.Optional(text("the data directory, as `WEICHE_DATA_DIR`", { absent: "`data` in the project" })),
    public: addresses,
    portal: section({
      registration: Type.Enum(["closed", "open"], {
        default: "closed",
        description:
          "`open`: anybody may open an account and becomes its Owner; nothing proves that the address is theirs",
      }),
    }),
    retention: section({
      usageDays: Type.Integer({
        minimum: 1,
        default: 400,
        description: "days for which single usage records and counts of refusals are kept; totals stay",
      }),
      deadKeyDays: Type.Integer({
        minimum: 1,
        default: 90,
        description:
          "days for which revoked and expired keys stay in lists; of more than 100 of one user the oldest leave earlier. Usage keeps their names",
      }),
      auditDays: Type.Integer({
        minimum: 1,
        default: 3_650,
        description:
          "days for which entries of the audit log are kept; the rest can still be verified by a checkpoint (`weiche audit verify`)",
      }),
    }),
    database,
    tls: Type.Optional(tls),
    nodes,
    credits: section({
      evaluateSeconds: Type.Number({
        minimum: 1,
        default: 60,
        description: "how often quotas and limits are judged, in seconds",
      }),
    }),
    limits,
    smtp: Type.Optional(smtp),
    requestSeconds: Type.Optional(
      Type.Number({ minimum: 1, default: 600, description: "the longest that a request may take, in seconds" }),
    ),
    shutdownAcceptSeconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 60,
        default: 10,
        description:
          "how long new requests are still served after SIGTERM, in seconds, while `/readyz` answers 503: as long as a balancer needs to notice, and some more. 0 for a router without one",
      }),
    ),
    shutdownSeconds: Type.Optional(
      Type.Number({
        minimum: 0,
        default: 600,
        description:
          "how long running answers may go on after that, in seconds; then the database is waited for, 10 s if it does not answer",
      }),
    ),
    logLevel: Type.Optional(
      Type.Enum(["trace", "debug", "info", "warn", "error", "fatal"], {
        default: "info",
        description: "what is logged: this level and those above it",
      }),
    ),
  },
  closed,
);

export type RawRouter = Static<typeof routerSchema>;
