/** The console's listener: its pages, and the operator's routes that these need. */
import { formatListen } from "@weiche/shared/http/listen.ts";
import type { Database } from "../../db/database.ts";
import { contract, type Contract } from "../contract/contract.ts";
import { addRoutes, type Handlers } from "../server/add-routes.ts";
import { addPages, builtConsole } from "../server/built-pages.ts";
import { operated } from "../server/operated.ts";
import { openWebServer, type WebServerDeps } from "../server/web-server.ts";
import { consoleEntrance } from "./console-entrance.ts";
import type { ConsoleSessions } from "./console-sessions.ts";
import { consolePaths } from "./page-paths.ts";

export interface ConsoleDeps extends WebServerDeps {
  /** The configured URL of the console. Absent: the address of the listener. */
  readonly publicUrl?: string;
  readonly sessions: ConsoleSessions;
  readonly database: Pick<Database, "kysely">;
}

export async function openConsole(deps: ConsoleDeps) {
  const { tls, publicUrl, sessions, database, events } = deps;
  await using opened = new AsyncDisposableStack();
  const server = opened.use(await openWebServer("console", deps));
  const { app, address, addressOf } = server;
  addPages(app, builtConsole, consolePaths);
  const entrance = consoleEntrance({
    ...{ sessions, addressOf, events },
    ownOrigin: publicUrl && new URL(publicUrl).origin,
    isTls: tls !== undefined,
  });
  const closing = opened.move();
  return {
    address,
    /** Base URL of links. */
    url: (publicUrl ?? `http${tls ? "s" : ""}://${formatListen(address)}`).replace(/\/$/, ""),
    /** Call once. Earlier requests wait for it. */
    serve: (handlers: Handlers<Contract>): Promise<void> =>
      server.serve((api) => addRoutes(api, contract, operated(contract, handlers, database), entrance)),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}
