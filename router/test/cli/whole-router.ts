/** A whole router with its own database and log, and `weiche` to control it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { loadRouterConfig } from "../../src/config/config.ts";
import { createRouter, type Router } from "../../src/context.ts";
import { testDatabases, temporaryFolder } from "../db/database-fixture.ts";
import { runWeiche, type Outcome } from "./run-weiche.ts";

export interface WholeRouter extends AsyncDisposable {
  readonly router: Router;
  readonly databaseUrl: string;
  /** The router's log lines. */
  readonly logged: readonly string[];
  /** Runs a command without a terminal. */
  weiche(...args: readonly string[]): Promise<Outcome>;
}

/** Starts a router. `settings`: lines of router.yaml. `prepare` is called first, with its folder. */
export async function startWholeRouter(
  settings: string,
  { level = "info", prepare = () => {} }: { readonly level?: string; readonly prepare?: (folder: string) => void } = {},
): Promise<WholeRouter> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(temporaryFolder());
  prepare(folder.path);
  const { connection } = await opened.use(await testDatabases()).newDatabase();
  const listeners = ["api", "portal", "nodes", "data", "ops"].map((name) => `${name}: "127.0.0.1:0"`).join(", ");
  const file = join(folder.path, "router.yaml");
  const lines = [
    `catalogue: ${join(import.meta.dirname, "../../../deploy/catalogue.yaml")}`,
    "dataDir: data",
    `database: { url: "${connection.connectionString!}" }`,
    `listen: { ${listeners}, console: off }`,
    "shutdownAcceptSeconds: 0",
    settings,
  ];
  writeFileSync(file, `${lines.join("\n")}\n`, { mode: 0o600 });
  const logged: string[] = [];
  const log = pino({ level }, { write: (line: string) => void logged.push(line) });
  const router = await createRouter(loadRouterConfig(file, {}), { log });
  opened.defer(() => router.close());
  const kept = opened.move();
  return {
    router,
    databaseUrl: connection.connectionString!,
    logged,
    weiche: (...args) => runWeiche(["--data-dir", join(folder.path, "data"), ...args]),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
