/** A whole router in this process with a test's database, for tests of the console's settings. */
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { weiche } from "../../../e2e/cluster/commands.ts";
import { loadRouterConfig } from "../../src/config/config.ts";
import { createRouter, type Router } from "../../src/context.ts";
import type { Database } from "../../src/db/database.ts";

interface ConsoleRouter extends AsyncDisposable {
  readonly listen: Router["listen"];
  /** Runs `weiche console --json` and returns its output. Throws its stderr. */
  link(): Promise<{ readonly url: string }>;
}

/** `settings`: more keys of `router.yaml`. */
export async function startConsoleRouter(
  { connection }: Pick<Database, "connection">,
  ofConsole: string,
  settings: object = {},
): Promise<ConsoleRouter> {
  const folder = mkdtempSync(join(tmpdir(), "weiche-console-"));
  const file = join(folder, "router.yaml");
  const anyPort = "127.0.0.1:0";
  const others = { api: anyPort, portal: anyPort, nodes: anyPort, data: anyPort, ops: anyPort };
  const config = {
    catalogue: join(import.meta.dirname, "../../../deploy/catalogue.yaml"),
    dataDir: join(folder, "data"),
    database: { url: connection.connectionString! },
    listen: { ...others, console: ofConsole },
    logLevel: "fatal",
    shutdownAcceptSeconds: 0,
    ...settings,
  };
  writeFileSync(file, stringify(config), { mode: 0o600 });
  const router = await createRouter(loadRouterConfig(file, {}));
  return {
    listen: router.listen,
    link: () => weiche(config.dataDir, ["console"]) as Promise<{ url: string }>,
    async [Symbol.asyncDispose]() {
      await router.close();
      rmSync(folder, { recursive: true });
    },
  };
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0);
  await once(probe, "listening");
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, "close");
  return port;
}
