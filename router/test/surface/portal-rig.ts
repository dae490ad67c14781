/**
 * The real portal with a real database and signed-in people of two accounts. Checks every answer against the contract, and
 * fails the test for every bug of the portal.
 */
import { expect } from "vitest";
import { Compile } from "typebox/compile";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { createIdentity } from "../../src/accounts/identity.ts";
import { RecentRequests } from "../../src/api/recent-requests.ts";
import { createLoginThrottle } from "../../src/sign-in/login-throttle.ts";
import { createSessions, startSession } from "../../src/sign-in/sessions.ts";
import { createAccounts, type Accounts } from "../../src/accounts/accounts.ts";
import type { InvoiceSettings } from "../../src/config/invoice-settings.ts";
import { inTransaction, type Database } from "../../src/db/database.ts";
import type { Role } from "../../src/db/schema.ts";
import { cookieName } from "../../src/surface/server/session-cookie.ts";
import type { Handlers } from "../../src/surface/server/add-routes.ts";
import { contract, type Contract } from "../../src/surface/contract/contract.ts";
import type { Route } from "../../src/surface/contract/route.ts";
import { createHandlers } from "../../src/surface/routes/handlers.ts";
import type { HandlerDeps } from "../../src/surface/routes/handler-deps.ts";
import { openPortal, type PortalDeps } from "../../src/surface/portal/portal-server.ts";
import type { Mail } from "../../src/mail/mail.ts";
import { MemoryLimiter } from "../../src/limits/memory-limiter.ts";
import { catalogue } from "../api/api-harness.ts";
import { cheapHashing } from "../accounts/cheap-hashing.ts";
import { testDatabases } from "../db/database-fixture.ts";

export interface Person {
  readonly id: UserId;
  readonly accountId: AccountId;
  readonly email: string;
  readonly cookie: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined if the body is not JSON. */
  readonly json: any;
}

export interface PortalRig extends AsyncDisposable {
  readonly database: Database;
  readonly accounts: Accounts;
  readonly port: number;
  readonly origin: string;
  readonly handlers: Handlers<Contract>;
  /** Makes a new account. Returns its Owner, signed in. */
  newAccount(name: string, more?: { readonly package?: string }): Promise<Person>;
  /** Makes another user of the same account. Returns them signed in. */
  newUser(of: Person, role: Role): Promise<Person>;
  /** Opens another session of the same person. */
  signIn(person: Pick<Person, "id" | "accountId" | "email">): Promise<Person>;
  /** Sends a GET request below `/api`. */
  get(path: string, who?: Person): Promise<Answer>;
  /** Sends a change from the portal's own page. */
  send(method: string, path: string, body: unknown, who?: Person): Promise<Answer>;
  fetch(path: string, init?: RequestInit): Promise<Answer>;
}

interface PortalParts {
  readonly clock?: Clock;
  /** If undefined, the rig makes a database. */
  readonly database?: Database;
  /** Parts of the router behind the portal. Missing parts do nothing. */
  readonly parts?: (database: Database) => Partial<HandlerDeps>;
  /** Defaults to all of the router's handlers. */
  readonly handlers?: Handlers<Contract>;
  /** If undefined, the portal sends no mail. */
  readonly mail?: Pick<Mail, "send">;
  /** If undefined, no invoices are issued. */
  readonly invoices?: InvoiceSettings;
  /** If undefined, registration is closed. */
  readonly registration?: "open" | "closed";
  /** The address of the terms to accept. */
  readonly terms?: string;
}

const nothing = async () => {};
const noWishes = { of: () => undefined, setMaintenance: nothing, acknowledge: nothing, prewarm: nothing };
export const models = ["small-24b", "general-4-31b", "coder-next"];

export async function startPortal({
  clock = systemClock,
  database: given,
  parts = () => ({}),
  handlers: givenHandlers,
  registration = "closed",
  invoices,
  terms,
  mail,
  ...more
}: Partial<PortalDeps> & PortalParts = {}): Promise<PortalRig> {
  await using opened = new AsyncDisposableStack();
  const database = given ?? (await opened.use(await testDatabases()).newDatabase());
  const accounts = createAccounts({ database, clock, portalUrl: "https://portal.example", invoices });
  const sessions = createSessions(database, clock);
  const failures: unknown[] = [];
  const apiUrl = "https://api.example/<x>";
  const handlers = createHandlers({
    database,
    clock,
    requestDays: 30,
    apiUrl,
    accounts,
    identity: createIdentity({
      database,
      clock,
      portalUrl: "https://portal.example",
      hashing: cheapHashing(),
      throttle: createLoginThrottle(database, clock),
      registration,
      terms,
      ...(mail && { mail }),
      events: { loginFinished() {} },
    }),
    models: () => models,
    catalogue: () => catalogue,
    changes: () => [],
    apiLimits: { perIpPerSecond: 10, perIpBurst: 20, requestMsMax: 600_000 },
    limiter: new MemoryLimiter(clock),
    nodes: () => [],
    overview: {
      startedAtMs: 0,
      listeners: {},
      databaseServer: "configured",
      routers: { all: () => [], others: () => 0, own: "" },
      certificates: {},
    },
    logLevel: { state: { level: "info" }, set: (level) => ({ level }) },
    requests: { running: () => [], recent: new RecentRequests(), ofNode: () => Promise.resolve([]) },
    usualWaitMs: () => undefined,
    chat: () => Promise.reject(new Error("no API behind this portal")),
    fleet: { details: () => [], wishes: noWishes, place: () => ({ refused: "no_node_available" }), nowMs: () => 0 },
    reloadCatalogue: () => Promise.resolve(),
    evaluator: { evaluate: () => Promise.resolve({ charged: 0, invoiced: 0, accounts: 0, changed: 0, notices: 0 }) },
    ...parts(database),
  });
  const portal = opened.use(
    await openPortal({
      listen: { host: "127.0.0.1", port: 0 },
      apiUrl,
      limits: { perIpPerSecond: 0, perIpBurst: 20, trustedProxies: [] },
      sessions,
      clock,
      events: {
        requestFailed: (_id, error) => void failures.push(error),
        databaseUnavailable() {},
        connectionRefused() {},
        forwardedUnread() {},
      },
      ...more,
    }),
  );
  await portal.serve(givenHandlers ?? handlers);
  const origin = `http://127.0.0.1:${portal.address.port}`;
  const cookie = (who?: Person) => (who ? { cookie: who.cookie } : {});
  let count = 0;
  const signIn: PortalRig["signIn"] = async ({ id, accountId, email }) => {
    const { token } = await inTransaction(database, (transaction) =>
      startSession(transaction, clock, id, { source: "127.0.0.1", agent: "test" }),
    );
    return { id, accountId, email, cookie: `${cookieName}=${token}` };
  };
  async function request(path: string, init: RequestInit = {}): Promise<Answer> {
    const response = await fetch(origin + path, init);
    const text = await response.text();
    if (failures.length > 0) throw failures[0];
    const answer = { status: response.status, headers: response.headers, text, json: tryParse(text) };
    checkReply(init.method ?? "GET", path, answer);
    return answer;
  }
  const closing = opened.move();
  return {
    database,
    accounts,
    port: portal.address.port,
    origin,
    handlers,
    async newAccount(name, { package: wanted } = {}) {
      const email = `owner${++count}.${portal.address.port}@example.com`;
      const account = await accounts.create({ name, ownerEmail: email, ...(wanted ? { package: wanted } : {}) });
      return signIn({ id: asId(account.ownerUserId), accountId: account.id, email });
    },
    async newUser({ accountId }, role) {
      const { id, email } = await accounts.users.create({
        accountId,
        email: `${role}${++count}.${portal.address.port}@example.com`,
        role,
      });
      return signIn({ id, accountId, email });
    },
    signIn,
    get: (path, who) => request(`/api${path}`, { headers: cookie(who) }),
    send: (method, path, body, who) =>
      request(`/api${path}`, {
        method,
        headers: { origin, "content-type": "application/json", ...cookie(who) },
        body: JSON.stringify(body),
      }),
    fetch: request,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

const routes = Object.values(contract as Record<string, Route>).map((route) => ({
  route,
  path: new RegExp(`^/api${route.path.replaceAll(/:\w+/g, "[^/]+")}$`),
  reply: route.reply && Compile(route.reply),
}));

/** Checks that a reply matches the contract exactly. */
function checkReply(method: string, path: string, { status, json }: Answer): void {
  if (status >= 300) return;
  const pathname = path.split("?")[0]!;
  const found = routes.find(({ route, path: pattern }) => route.method === method && pattern.test(pathname));
  if (!found?.reply || found.reply.Check(json)) return;
  throw new Error(`${method} ${path} answers beside its contract: ${JSON.stringify(found.reply.Errors(json))}`);
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Makes a key in the portal. */
export async function newKey(portal: PortalRig, who: Person, name: string, more: object = {}): Promise<any> {
  const answer = await portal.send("POST", "/keys", { name, ...more }, who);
  expect(answer.status).toBe(201);
  return answer.json.key;
}

/** Records used credits in the account's period. */
export async function useCredits(
  { database }: PortalRig,
  of: { key: string; user: string; account: string },
  credits: bigint,
): Promise<void> {
  const { rows } = await database.pool.query("select started_at from subscriptions where account_id = $1", [
    of.account,
  ]);
  for (const [scope, subject] of [
    ["account", ""],
    ["user", of.user],
    ["key", of.key],
  ])
    await database.pool.query("insert into usage_totals values ($1, $2, $3, $4, 1, 0, 0, $5)", [
      of.account,
      rows[0].started_at.toString(),
      scope,
      subject,
      credits * 1000n,
    ]);
}
