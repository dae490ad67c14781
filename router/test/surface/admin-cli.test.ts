import { execFile } from "node:child_process";
import { existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/testing/random.ts";
import { createAccounts, type Accounts } from "../../src/accounts/accounts.ts";
import { createIdentity } from "../../src/accounts/identity.ts";
import { createLoginThrottle } from "../../src/sign-in/login-throttle.ts";
import type { Database } from "../../src/db/database.ts";
import { openAdminSocket } from "../../src/surface/admin/admin-socket.ts";
import type { Contract } from "../../src/surface/contract/contract.ts";
import type { Handlers } from "../../src/surface/server/add-routes.ts";
import { createHandlers } from "../../src/surface/routes/handlers.ts";
import type { HandlerDeps } from "../../src/surface/routes/handler-deps.ts";
import { createUsageLedger } from "../../src/usage/usage-ledger.ts";
import { MemoryLimiter } from "../../src/limits/memory-limiter.ts";
import { cheapHashing } from "../accounts/cheap-hashing.ts";
import { catalogue as knownModels } from "../api/api-harness.ts";
import { startDatabaseServer, temporaryFolder } from "../db/database-fixture.ts";
import { grantedNode, grants, makeRecord } from "../usage/usage-records.ts";

/** The command as people run it: through the link that npm makes, under their own Node.js. */
const bin = join(import.meta.dirname, "../../../node_modules/.bin/weiche");
const anyModel = knownModels.values().next().value!;
const slot = {
  name: "a",
  state: "active",
  active: "tiny-chat",
  running: 0,
  waiting: 0,
  inFlight: 0,
  waitingByModel: {},
  stateSeconds: 1,
  models: [],
} as const;
const gpu1 = {
  name: "gpu-1",
  state: "live",
  maintenanceReported: false,
  agentVersion: "1",
  dataSessions: 1,
  troubles: [],
  slots: [slot],
} as const;
const open = new AsyncDisposableStack();
const failures: unknown[] = [];
let dataDir: string;
let database: Database;
let handlers: Handlers<Contract>;
let accounts: Accounts;
let mistakes: string | undefined;
let record: (accountId: string, keyId: string, userId?: string) => Promise<void>;

beforeAll(async () => {
  const server = open.use(await startDatabaseServer());
  database = await server.newDatabase();
  accounts = createAccounts({ database, clock: systemClock, portalUrl: "https://portal.example" });
  dataDir = open.use(temporaryFolder()).path;
  mkdirSync(join(dataDir, "router"));
  const clock = systemClock;
  const catalogue = new Map(
    ["tiny-chat", "tiny-embed"].map((id) => [asId<ModelId>(id), { ...anyModel, id: asId<ModelId>(id) }]),
  );
  handlers = {
    ...createHandlers({
      ...({ fleet: { details: () => [] } } as unknown as HandlerDeps),
      ...{ database, clock, accounts, limiter: new MemoryLimiter(clock), catalogue: () => catalogue },
      identity: createIdentity({
        ...{ database, clock, portalUrl: "https://portal.example", hashing: cheapHashing(), registration: "closed" },
        throttle: createLoginThrottle(database, clock),
        events: { loginFinished() {} },
      }),
      models: () => catalogue.keys(),
      async reloadCatalogue() {
        if (mistakes !== undefined) throw new StartError(mistakes);
        await Promise.resolve();
      },
    }),
    listNodes: () => [gpu1],
  };
  const events = { adminFailed: (error: unknown) => void failures.push(error) };
  open.use(await openAdminSocket(join(dataDir, "router/admin.sock"), { database, handlers, events }));
  const nothing = () => {};
  const ledgerEvents = {
    usageCommitted: nothing,
    usageCommitFailed: nothing,
    usageSetAside: nothing,
  };
  const ledger = open.use(await createUsageLedger(database, systemClock, ledgerEvents, { grants }));
  record = (accountId, keyId, userId = keyId) => {
    const counts = { promptTokens: 40, completionTokens: 21, factor: 1000n as never };
    const owner = { accountId: asId(accountId), keyId: asId(keyId), userId: asId(userId) } as never;
    return ledger.record(grantedNode, [makeRecord(createRandom(1), Date.now(), { ...counts, ...(owner as object) })]);
  };
});
afterAll(() => open.disposeAsync());

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

function weiche(args: readonly string[], { node = process.execPath, cwd = "/", env = {} } = {}): Promise<Outcome> {
  return new Promise((resolve) => {
    const options = { cwd, env: { ...process.env, WEICHE_DATA_DIR: dataDir, ...env } };
    execFile(node, [bin, ...args], options, (failure, out, error) =>
      resolve({ code: failure ? (failure.code as number) : 0, out, error }),
    );
  });
}

async function json<T = Record<string, unknown>>(...args: string[]): Promise<T> {
  const { code, out, error } = await weiche([...args, "--json"]);
  expect([code, error]).toEqual([0, ""]);
  return JSON.parse(out) as T;
}

test("from an account to its usage", async () => {
  const account = await json<Record<string, string>>(
    "account",
    "create",
    "--name",
    "ACME",
    "--owner-email",
    "ada@example.com",
    "--package",
    "starter",
    "--yes",
  );
  expect(account).toMatchObject({
    name: "ACME",
    package: "Starter",
    state: "active",
    invitationUrl: expect.stringMatching(/^https:\/\/portal\.example\/invitation#/) as string,
  });
  const { id, ownerUserId } = account as { id: string; ownerUserId: string };
  expect(await json<unknown[]>("account", "list")).toMatchObject([{ id, ownerUserId }]);
  expect(await json("account", "show", id)).toMatchObject({ id, users: [{ id: ownerUserId, role: "owner" }] });

  const user = await json(
    "user",
    "create",
    "--account",
    id,
    "--email",
    "ben@example.com",
    "--role",
    "member",
    "--model",
    "tiny-chat",
    "--model",
    "tiny-embed",
  );
  expect(user).toMatchObject({ role: "member", allowedModels: ["tiny-chat", "tiny-embed"], creditLimit: null });
  const userId = user["id"] as string;
  expect(await json("user", "update", userId, "--credit-limit", "0.5", "--all-models")).toMatchObject({
    allowedModels: null,
    creditLimit: "0.500",
  });
  expect(await json("user", "update", userId, "--no-credit-limit")).toMatchObject({ creditLimit: null });
  expect(await json("user", "block", userId)).toMatchObject({ id: userId, blocked: true });
  expect(await json("user", "unblock", userId)).toMatchObject({ id: userId, blocked: false });
  expect(await json("user", "update", userId, "--role", "admin")).toMatchObject({ role: "admin" });

  const created = await json<Record<string, string>>(
    "key",
    "create",
    "--user",
    userId,
    "--name",
    "ci",
    "--expires",
    "2099-01-31T18:00:00+01:00",
  );
  expect(created).toMatchObject({
    state: "active",
    key: expect.stringMatching(/^sk-weiche-/) as string,
    expiresAt: "2099-01-31T17:00:00Z",
  });
  const keyId = created["id"]!;
  expect(await json("key", "update", keyId, "--name", "cd", "--no-expires", "--model", "tiny-chat")).toMatchObject({
    name: "cd",
    expiresAt: null,
    allowedModels: ["tiny-chat"],
  });
  await record(id, keyId);
  const sums = { requests: 1, promptTokens: 40, completionTokens: 21, totalTokens: 61, credits: "61.000" };
  expect(await json("usage", "--account", id)).toMatchObject({ totals: sums, rows: [sums] });
  expect(
    await json("usage", "--account", id, "--by", "key", "--from", "2026-01-01", "--to", "2099-01-01"),
  ).toMatchObject({ totals: sums, rows: [{ ...sums, key: keyId, name: "cd" }] });

  const fresh = await json<Record<string, string>>("key", "regenerate", keyId);
  expect(fresh["key"]).not.toBe(created["key"]);
  expect(await json("key", "revoke", fresh["id"]!)).toMatchObject({ state: "revoked" });
  const list = await weiche(["key", "list", "--user", userId, "--json"]);
  expect(JSON.parse(list.out)).toMatchObject([{ id: keyId, state: "revoked" }, { state: "revoked" }]);
  expect(list.out).not.toContain("sk-weiche-");
  expect(failures).toEqual([]);
});

describe("an account that used some of its credits", () => {
  let id: string;
  let owner: string;
  let used: Record<string, string>;
  beforeAll(async () => {
    const wish = ["--name", "Used", "--owner-email", "used@example.com", "--package", "starter", "--yes"];
    const account = await json<{ id: string; ownerUserId: string }>("account", "create", ...wish);
    [id, owner] = [account.id, account.ownerUserId];
    const create = (name: string, ...more: string[]) =>
      json<Record<string, string>>("key", "create", "--user", owner, "--name", name, ...more);
    used = await create("first", "--credit-limit", "100");
    await json("key", "revoke", (await create("never used"))["id"]!);
    await record(id, used["id"]!, owner);
    await record(id, owner); // in a test chat
  });

  test("shows what is left, and who and what used it, down to test chats", async () => {
    const credits = await json<object>("credits", "show", id);
    expect(credits).toMatchObject({
      package: "Starter",
      quota: "5000000.000",
      used: "122.000",
      remaining: "4999878.000",
      exhaustedUntil: null,
      rate: { lastMinute: 0, perMinute: 30, parallel: 0, parallelMax: 5 },
      users: [{ id: owner, email: "used@example.com", used: "122.000", limit: null, limitReached: false }],
      keys: [
        { id: used["id"], name: "first", user: "used@example.com", used: "61.000", limit: "100.000", reason: null },
        { name: "test chat of used@example.com", user: null, used: "61.000", limit: null },
      ],
      models: [{ requests: 2, credits: "122.000" }],
    });
    expect(credits).not.toHaveProperty("own");
    const { out } = await weiche(["credits", "show", id]);
    expect(out).toMatch(/^quota +5000000\.000\nused +122\.000\nremaining +4999878\.000$/m);
    expect(out).toMatch(/^rate +0 of 30 requests in the last minute, 0 of 5 at once$/m);
    expect(out).toMatch(/^first +used@example\.com +61\.000 +100\.000 +– /m);
  });

  test("shows its keys and people with what they used, and why they cannot", async () => {
    const ofUser = await json<object[]>("key", "list", "--user", owner);
    const first = { id: used["id"], name: "first", state: "active", reason: null, creditsUsed: "61.000" };
    expect(ofUser).toMatchObject([first, { name: "never used", state: "revoked", reason: "revoked" }]);
    const ben = await accounts.users.create({ accountId: asId(id), email: "ben.used@example.com", role: "member" });
    const { id: bens } = await accounts.keys.create(ben.id, { name: "of Ben" });
    expect(await json("key", "list", "--account", id)).toMatchObject([...ofUser, { id: bens }]);
    expect(await json("key", "list", "--user", owner)).toEqual(ofUser);
    expect(await json("key", "show", bens)).toMatchObject({ name: "of Ben", userEmail: "ben.used@example.com" });
    expect(await json("key", "show", used["id"]!)).toMatchObject({
      ...{ ...first, accountId: id, userEmail: "used@example.com", creditLimit: "100.000" },
      binding: { by: "key", limit: "100.000", left: "39.000" },
      lastUsedAt: expect.stringMatching(/^20/) as string,
    });
    const person = { id: owner, accountId: id, role: "owner", creditsUsed: "122.000", keys: 1 };
    expect(await json("user", "list", "--account", id)).toMatchObject([person, { id: ben.id }]);
    expect(await json("user", "show", ben.id)).toMatchObject({ id: ben.id, role: "member", state: "invited" });

    await json("user", "block", owner);
    expect(await json("user", "show", owner)).toMatchObject({ ...person, state: "blocked", reason: "blocked" });
    expect((await weiche(["key", "list", "--account", id])).out).toMatch(
      /^ID +NAME +USER EMAIL +STATE +REASON .*\n.*\n.* first +used@example\.com +user-blocked +user-blocked /,
    );
    expect((await weiche(["key", "show", used["id"]!])).out).toMatch(/^binding +by key used 61\.000 .*left 39\.000$/m);
    await json("user", "unblock", owner);
  });

  test("names who did what to it", async () => {
    const origin = { actor: owner, source: "192.0.2.7" };
    await accounts.as(origin).keys.create(asId(owner), { name: "by herself" });
    const { out } = await weiche(["audit", "--account", id, "--actor", owner]);
    expect(out).toMatch(/\n *\d+ +\S+ +used@example\.com +192\.0\.2\.7 +key\.create +key \S+ \(by herself\) +done /);
  });

  test("without a package has no quota", async () => {
    const bare = await json<{ id: string; ownerUserId: string }>(
      "account",
      "create",
      "--name",
      "Bare",
      "--owner-email",
      "bare@example.com",
    );
    await record(bare.id, bare.ownerUserId);
    expect(await json("credits", "show", bare.id)).toMatchObject({
      package: null,
      quota: null,
      used: null,
      models: [],
    });
    expect((await weiche(["credits", "show", bare.id])).out).toMatch(/^package +none$/m);
  });
});

test("nodes, models and the catalogue come from those who know them", async () => {
  expect(await json("nodes")).toMatchObject([{ name: "gpu-1", state: "live" }]);
  expect(await json("models")).toMatchObject([{ id: "tiny-chat" }, { id: "tiny-embed" }]);
  expect(await json("catalogue", "reload")).toEqual({ models: 2 });
  mistakes = "catalogue.yaml:3: unknown key";
  expect(await weiche(["catalogue", "reload"])).toMatchObject({ code: 1, error: `weiche: ${mistakes}\n` });
});

test("without --json there are tables and fields, and no text can steer the terminal", async () => {
  const { out } = await weiche(["account", "create", "--name", "Zwei", "--owner-email", "zwei@example.com"]);
  expect(out).toMatch(/^name\s+Zwei$/m);
  expect((await weiche(["account", "list"])).out).toMatch(
    /^ID\s+NAME\s+PACKAGE\s+STATE\s+PERIOD END\s+OWNER USER ID\s+BLOCKED AT\n─+/,
  );
  expect((await weiche(["nodes"])).out).toMatch(/^gpu-1 +live +a +active +tiny-chat/m);
  const forged = await weiche(["account", "create", "--name", "\u001b[2Jx", "--owner-email", "x@example.com"]);
  expect(forged).toMatchObject({ code: 1, error: "weiche: --name is not well-formed\n" });
});

describe("the exit code says how it went", () => {
  const someone = "00000000-0000-7000-8000-000000000000";
  test.each([
    [1, ["account", "show", someone], `there is no account ${someone}`],
    [1, ["account", "show", "../nodes"], "there is no account ../nodes"],
    [
      1,
      ["account", "create", "--name", "A", "--owner-email", "a@example.com", "--package", "Gold"],
      'there is no package "Gold"',
    ],
    [
      1,
      ["user", "update", "a user", "--model", "tiny-caht"],
      'there is no model "tiny-caht"; did you mean "tiny-chat"?',
    ],
    [1, ["usage", "--account", "an account", "--from", "2026-02-30"], "there is no day 2026-02-30"],
    [
      1,
      ["usage", "--account", "an account", "--from", "2026-02-02", "--to", "2026-02-01"],
      "2026-02-02 is after 2026-02-01",
    ],
    [2, [], "Usage"],
    [2, ["acount", "list"], "unknown command"],
    [2, ["account", "create"], "required option"],
    [2, ["key", "create", "--user", someone, "--name", "k", "--expires", "tomorrow"], "An instant looks like"],
    [2, ["user", "update", someone, "--credit-limit", "1.2345"], "at most three places"],
    [2, ["user", "create", "--account", someone, "--email", "a@b.c", "--role", "king"], "Allowed choices"],
    [2, ["key", "update", someone], "say what to change"],
    [1, ["user", "show", someone], `there is no user ${someone}`],
    [1, ["key", "show", someone], `there is no key ${someone}`],
    [1, ["key", "list", "--account", someone], `there is no account ${someone}`],
    [1, ["credits", "show", someone], `there is no account ${someone}`],
    [1, ["audit", "--account", someone], `there is no account ${someone}`],
    [1, ["audit", "--account", someone, "--limit", "1001"], "limit is not well-formed"],
    [2, ["audit", "--account", someone, "--since", "2026-02-30"], "A time looks like"],
    [2, ["key", "list"], "say whose"],
    [0, ["key", "--help"], ""],
  ] as const)("%i: %j", async (code, args, message) => {
    const [account] = await accounts.list();
    const ids: Record<string, string> = { "an account": account!.id, "a user": account!.ownerUserId! };
    const outcome = await weiche(args.map((arg) => ids[arg] ?? arg));
    expect(outcome.code).toBe(code);
    expect(outcome.error).toContain(message);
    expect(outcome.error).not.toContain("    at ");
  });

  test("3 if there is no router, or one that was killed", async () => {
    using empty = temporaryFolder();
    expect(await weiche(["nodes"], { env: { WEICHE_DATA_DIR: empty.path } })).toMatchObject({
      code: 3,
      error: expect.stringContaining("no router there") as string,
    });
    expect(await weiche(["nodes", "--socket", join(empty.path, "x.sock")])).toMatchObject({ code: 3 });
    expect(await weiche(["nodes", "--data-dir", empty.path])).toMatchObject({ code: 3 });
  });

  test("1 if the router fails, and its log has the reason", async () => {
    using folder = temporaryFolder();
    const socket = join(folder.path, "admin.sock");
    const known: unknown[] = [];
    const listNodes = () => {
      throw new Error("canary");
    };
    await using _socket = await openAdminSocket(socket, {
      ...{ database, handlers: { ...handlers, listNodes } },
      events: { adminFailed: (error) => void known.push(error) },
    });
    const outcome = await weiche(["nodes", "--socket", socket]);
    expect(outcome).toMatchObject({ code: 1, error: "weiche: the router failed; its log says why\n" });
    expect(known).toMatchObject([{ message: "canary" }]);
  });
});

test("every Node.js on the path begins it", async () => {
  const nodes = process.env["PATH"]!.split(":").map((folder) => join(folder, "node"));
  for (const node of new Set([process.execPath, ...nodes.filter(existsSync)])) {
    expect(await weiche(["models", "--json"], { node })).toMatchObject({ code: 0, error: "" });
    expect(await weiche(["key", "list"], { node })).toMatchObject({ code: 2 });
  }
});

test("without a data directory it looks in the project's, wherever it is called from", async () => {
  const { code, error } = await weiche(["nodes"], { cwd: "/tmp", env: { WEICHE_DATA_DIR: undefined } as never });
  const root = join(import.meta.dirname, "../../..");
  const reached = existsSync(join(root, "data/router/admin.sock"));
  expect(reached || (code === 3 && error.includes(join(root, "data/router/admin.sock")))).toBe(true);
});

test("the admin socket is its user's alone, replaces a dead one, and has a path that fits", async () => {
  const socket = join(dataDir, "router/admin.sock");
  expect(statSync(socket).mode & 0o777).toBe(0o600);
  using folder = temporaryFolder();
  const long = join(folder.path, "x".repeat(120), "admin.sock");
  const opening = openAdminSocket(long, { database, handlers, events: { adminFailed() {} } });
  await expect(opening).rejects.toThrow(StartError);
  await expect(opening).rejects.toThrow("107 bytes");
});
