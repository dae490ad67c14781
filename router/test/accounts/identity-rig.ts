/** Identity over a real database, on virtual time, with cheap hashes and a mailbox in place of the SMTP server. */
import type { PoolClient, QueryConfig } from "pg";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createIdentity, type Identity } from "../../src/accounts/identity.ts";
import type { IdentityContext, LoginOutcome } from "../../src/sign-in/identity-context.ts";
import { createLoginThrottle } from "../../src/sign-in/login-throttle.ts";
import type { HashCost } from "../../src/sign-in/password-hashing.ts";
import { createAccounts, type Accounts } from "../../src/accounts/accounts.ts";
import { startSession, type SignedInFrom } from "../../src/sign-in/sessions.ts";
import { inTransaction, type Database } from "../../src/db/database.ts";
import type { Letter } from "../../src/mail/letters.ts";
import { cheapHashing } from "./cheap-hashing.ts";
import { testDatabases, type TestDatabases } from "../db/database-fixture.ts";

const startMs = Date.parse("2026-11-14T10:30:00Z");
export const password = "correct horse battery";
export const here = { source: "192.0.2.7", agent: "a browser" };
export const elsewhere = { source: "198.51.100.9", agent: "another browser" };

interface IdentityRig {
  readonly clock: VirtualClock;
  readonly database: Database;
  readonly accounts: Accounts;
  readonly context: IdentityContext;
  readonly identity: Identity;
  readonly logins: LoginOutcome[];
  readonly letters: ({ readonly to: string } & Letter)[];
  /** Counts hashes and statements since the last call. */
  spent(): { readonly hashes: number; readonly statements: number };
  /** Makes an account whose Owner has joined. */
  newAccount(email: string): Promise<{ readonly accountId: AccountId; readonly userId: UserId }>;
  /** Makes a user of the account who has joined. */
  newUser(accountId: AccountId, email: string, role?: "admin" | "member"): Promise<UserId>;
  startSession(userId: UserId, from: SignedInFrom): ReturnType<typeof startSession>;
}

interface RigOptions {
  readonly cost?: HashCost;
  readonly mail?: boolean;
  readonly registration?: "open" | "closed";
}

export function openIdentityRig(database: Database, options: RigOptions = {}): IdentityRig {
  const clock = new VirtualClock(startMs);
  const count = { hashes: 0, statements: 0 };
  const connection = (client: PoolClient) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    Object.assign(client, { query: (...args: unknown[]) => (count.statements++, query(...args)) });
  };
  database.pool.on("connect", connection);
  const { query: promptly } = database.prompt;
  Object.assign(database.prompt, { query: (query: QueryConfig) => (count.statements++, promptly(query)) });
  const real = cheapHashing(options.cost);
  const logins: LoginOutcome[] = [];
  const letters: ({ to: string } & Letter)[] = [];
  const context: IdentityContext = {
    database,
    clock,
    portalUrl: "https://portal.example",
    registration: options.registration ?? "closed",
    hashing: {
      hash: (...all) => (count.hashes++, real.hash(...all)),
      verify: (...all) => (count.hashes++, real.verify(...all)),
      isOutdated: (stored) => real.isOutdated(stored),
    },
    throttle: createLoginThrottle(database, clock),
    events: { loginFinished: (outcome) => void logins.push(outcome) },
    ...(options.mail ? { mail: { send: (to, letter) => Promise.resolve(letters.push({ to, ...letter }) > 0) } } : {}),
  };
  const accounts = createAccounts(context);
  const identity = createIdentity(context);
  const join = async (url: string) =>
    (await identity.invitations.accept({ token: tokenOf(url), password }, here)).session.user;
  return {
    clock,
    database,
    accounts,
    context,
    identity,
    logins,
    letters,
    spent() {
      const spent = { ...count };
      Object.assign(count, { hashes: 0, statements: 0 });
      return spent;
    },
    async newAccount(email) {
      const { id, invitationUrl } = await accounts.create({ name: "ACME", ownerEmail: email });
      return { accountId: id, userId: (await join(invitationUrl)).id };
    },
    async newUser(accountId, email, role = "member") {
      return (await join((await accounts.users.create({ accountId, email, role })).invitationUrl)).id;
    },
    startSession: (userId, from) =>
      inTransaction(database, (transaction) => startSession(transaction, clock, userId, from)),
  };
}

interface RigOfFile {
  /** Empty until the tests run. */
  readonly rig: IdentityRig;
  /** Returns an address for a name that no other test has. Within a test, the same name gives the same address. */
  readonly address: (name: string) => string;
  /** Opens another router on the same database. */
  readonly anotherRouter: () => Promise<IdentityRig>;
}

/** Makes a database for all tests of a file, and removes it after the last one. Call this once in a file. */
export function identityRigOfFile(options: RigOptions = {}): RigOfFile {
  const rig = {} as IdentityRig;
  let server: TestDatabases;
  let count = 0;
  beforeAll(async () => {
    server = await testDatabases();
    Object.assign(rig, openIdentityRig(await server.newDatabase(), options));
  });
  afterAll(() => server[Symbol.asyncDispose]());
  beforeEach(() => void count++);
  return {
    rig,
    address: (name) => `${name}${count}@example.com`,
    anotherRouter: async () => openIdentityRig(await server.openAgain(rig.database), options),
  };
}

export function tokenOf(url: string | null): string {
  return new URL(url!).hash.slice(1);
}
