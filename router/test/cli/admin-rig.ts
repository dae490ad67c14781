/** The admin socket with the router's handlers and a real database, and the `weiche` program to use it. */
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
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
import { testDatabases, temporaryFolder } from "../db/database-fixture.ts";
import { grantedNode, grants, makeRecord } from "../usage/usage-records.ts";
import { runWeiche, type Outcome } from "./run-weiche.ts";

/** The command as people run it: through npm's link, with their own Node.js. */
const bin = join(import.meta.dirname, "../../../node_modules/.bin/weiche");
const anyModel = knownModels.values().next().value!;
const slot = {
  name: "a",
  state: "active",
  active: "tiny-chat",
  activeModels: ["tiny-chat"],
  running: 0,
  waiting: 0,
  inFlight: 0,
  unread: 0,
  waitingByModel: {},
  estimates: [],
  stateSeconds: 1,
  troubles: [],
  models: [],
  failures: [],
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

interface AdminRig extends AsyncDisposable {
  readonly dataDir: string;
  readonly database: Database;
  readonly handlers: Handlers<Contract>;
  readonly accounts: Accounts;
  readonly ledger: Awaited<ReturnType<typeof createUsageLedger>>;
  /** The router's bugs. */
  readonly failures: readonly unknown[];
  /** The catalogue's mistakes, or undefined. */
  mistakes: string | undefined;
  /** Commits the usage of one request. */
  record(accountId: string, keyId: string, userId?: string): Promise<void>;
  weiche(args: readonly string[], env?: object): Promise<Outcome>;
  /** Starts the command as a program, in another folder or on another Node.js. */
  program(
    args: readonly string[],
    how: { readonly node?: string; readonly cwd?: string; readonly env?: object },
  ): Promise<Outcome>;
  /** Runs the command with `--json`. Fails unless it exits with 0 and prints nothing on stderr. */
  json<T = Record<string, unknown>>(...args: string[]): Promise<T>;
}

export async function startAdmin(): Promise<AdminRig> {
  await using opened = new AsyncDisposableStack();
  const server = opened.use(await testDatabases());
  const database = await server.newDatabase();
  const clock = systemClock;
  const accounts = createAccounts({ database, clock, portalUrl: "https://portal.example" });
  const dataDir = opened.use(temporaryFolder()).path;
  mkdirSync(join(dataDir, "router"));
  const failures: unknown[] = [];
  const catalogue = new Map(
    ["tiny-chat", "tiny-embed"].map((id) => [asId<ModelId>(id), { ...anyModel, id: asId<ModelId>(id) }]),
  );
  const handlers = {
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
        if (rig.mistakes !== undefined) throw new StartError(rig.mistakes);
        await Promise.resolve();
      },
    }),
    listNodes: () => [gpu1],
  };
  const events = { adminFailed: (error: unknown) => void failures.push(error) };
  opened.use(await openAdminSocket(join(dataDir, "router/admin.sock"), { database, handlers, events }));
  const nothing = () => {};
  const ledgerEvents = {
    usageCommitted: nothing,
    usageCommitFailed: nothing,
    usageSetAside: nothing,
  };
  const ledger = opened.use(await createUsageLedger(database, systemClock, ledgerEvents, { grants }));
  const closing = opened.move();
  const rig: AdminRig = {
    ...{ dataDir, database, handlers, accounts, ledger, failures, mistakes: undefined },
    record(accountId, keyId, userId = keyId) {
      const counts = { promptTokens: 40, completionTokens: 21, factor: 1000n as never };
      const owner = { accountId: asId(accountId), keyId: asId(keyId), userId: asId(userId) } as never;
      return ledger.record(grantedNode, [makeRecord(createRandom(1), Date.now(), { ...counts, ...(owner as object) })]);
    },
    weiche: (args, env) => runWeiche(args, { ...process.env, WEICHE_DATA_DIR: dataDir, ...env }),
    program: (args, { node = process.execPath, cwd = "/", env = {} }) =>
      new Promise((resolve) => {
        const options = { cwd, env: { ...process.env, WEICHE_DATA_DIR: dataDir, ...env } };
        execFile(node, [bin, ...args], options, (failure, out, error) =>
          resolve({ code: failure ? (failure.code as number) : 0, out, error }),
        );
      }),
    async json<T>(...args: string[]) {
      const { code, out, error } = await rig.weiche([...args, "--json"]);
      expect([code, error]).toEqual([0, ""]);
      return JSON.parse(out) as T;
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
  return rig;
}
