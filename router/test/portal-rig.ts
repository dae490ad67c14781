/** The real portal over a real database, with people of two accounts who are signed in. Every answer is held against the contract. */
import { Compile } from "typebox/compile";
import { systemClock } from "@weiche/shared/clock.ts";
import { asId, type UserId } from "@weiche/shared/ids.ts";
import type { Session, Sessions } from "../src/access/session.ts";
import { createAccounts, type Accounts } from "../src/accounts/accounts.ts";
import type { Database } from "../src/db/database.ts";
import { createHandlers } from "../src/portal/handlers.ts";
import { contract } from "../src/portal/contract.ts";
import type { Route } from "../src/portal/contract/route.ts";
import { openPortal, type PortalDeps } from "../src/portal/portal-server.ts";
import { startDatabaseServer } from "./database-fixture.ts";

export interface Person {
  readonly id: UserId;
  readonly cookie: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined if it is not JSON. */
  readonly json: any;
}

export interface PortalRig extends AsyncDisposable {
  readonly database: Database;
  readonly accounts: Accounts;
  readonly port: number;
  /** The Owner of ACME. */
  readonly ada: Person;
  /** Errors that are bugs. */
  readonly failures: unknown[];
  /** Below `/api`. */
  get(path: string, who?: Person): Promise<Answer>;
  /** A change from the portal's own page. */
  send(method: string, path: string, body: unknown, who?: Person): Promise<Answer>;
  fetch(path: string, init?: RequestInit): Promise<Answer>;
}

export async function startPortal(more: Partial<PortalDeps> = {}): Promise<PortalRig> {
  await using opened = new AsyncDisposableStack();
  const server = opened.use(await startDatabaseServer());
  const database = await server.newDatabase();
  const clock = systemClock;
  const accounts = createAccounts({ database, clock, portalUrl: "https://portal.example" });
  const failures: unknown[] = [];
  const sessions = new SimSessions(database);
  const apiUrl = "https://api.example/<x>";
  const portal = opened.use(
    await openPortal({
      listen: { host: "127.0.0.1", port: 0 },
      apiUrl,
      limits: { perIpPerSecond: 0, perIpBurst: 20, trustedProxies: [] },
      sessions,
      handlers: () => createHandlers({ database, apiUrl }),
      clock,
      events: { requestFailed: (_id, error) => void failures.push(error) },
      ...more,
    }),
  );
  const acme = await accounts.create({ name: "ACME", ownerEmail: "ada@example.com", package: "Pro" });
  const origin = `http://127.0.0.1:${portal.address.port}`;
  const request = async (path: string, init: RequestInit = {}): Promise<Answer> => {
    const response = await fetch(origin + path, init);
    const text = await response.text();
    const answer = { status: response.status, headers: response.headers, text, json: tryParse(text) };
    checkReply(init.method ?? "GET", path, answer);
    return answer;
  };
  const cookie = (who?: Person) => (who ? { cookie: who.cookie } : {});
  const closing = opened.move();
  return {
    database,
    accounts,
    port: portal.address.port,
    ada: sessions.signIn(asId(acme.ownerUserId)),
    failures,
    fetch: request,
    get: (path, who) => request(`/api${path}`, { headers: cookie(who) }),
    send: (method, path, body, who) =>
      request(`/api${path}`, {
        method,
        headers: { origin, "content-type": "application/json", ...cookie(who) },
        body: JSON.stringify(body),
      }),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

class SimSessions implements Pick<Sessions, "find"> {
  readonly #users = new Map<string, UserId>();
  readonly #database: Database;
  constructor(database: Database) {
    this.#database = database;
  }
  signIn(id: UserId): Person {
    this.#users.set(id, id);
    return { id, cookie: `__Host-weiche=${id}` };
  }
  async find(token: string): Promise<Session | undefined> {
    const id = this.#users.get(token);
    if (!id) return undefined;
    const user = await this.#database.kysely.selectFrom("users").selectAll().where("id", "=", id).executeTakeFirst();
    return user && { id, user: { ...user, language: null, theme: null }, expiresAtMs: Infinity };
  }
}

const routes = Object.values(contract as Record<string, Route>).map((route) => ({
  route,
  path: new RegExp(`^/api${route.path.replaceAll(/:\w+/g, "[^/]+")}$`),
  reply: route.reply && Compile(route.reply),
}));

/** A reply holds what the contract says and nothing else. */
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
