/** The console's listener: its pages, and the operator's routes that they need. */
import type { Database } from "../../db/database.ts";
import { contract, type Contract } from "../contract/contract.ts";
import { addRoutes, type Handlers } from "../server/add-routes.ts";
import { builtConsole } from "../server/built-pages.ts";
import { operated } from "../server/operated.ts";
import { openWebServer, type WebServerDeps } from "../server/web-server.ts";
import { consoleEntrance } from "./console-entrance.ts";
import type { ConsoleSessions } from "./console-sessions.ts";
import { consolePaths } from "./page-paths.ts";

interface ConsoleDeps extends WebServerDeps {
  readonly sessions: ConsoleSessions;
  readonly database: Pick<Database, "kysely">;
}

export async function openConsole(deps: ConsoleDeps) {
  const server = await openWebServer(deps, { directory: builtConsole, paths: consolePaths });
  const entrance = consoleEntrance(server, deps.sessions);
  return {
    ...server,
    /** Adds the routes. Call it once. Earlier requests wait for it. */
    serve: (handlers: Handlers<Contract>): Promise<void> =>
      server.serve((api) => addRoutes(api, contract, operated(contract, handlers, deps.database), entrance)),
  };
}
