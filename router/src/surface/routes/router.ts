/** Handlers of the router's own state, the list of routers, and the log level. */
import { certificateFiles } from "@weiche/shared/program/certificate-expiry.ts";
import { version } from "@weiche/shared/program/version.ts";
import { within, type Clock } from "@weiche/shared/time/clock.ts";
import type { Database } from "../../db/database.ts";
import type { LimitStoreView } from "../../limits/limit-store.ts";
import { nodeState } from "../../nodes/node-state.ts";
import { plainRow } from "../../rights/plain-row.ts";
import type { routerContract } from "../contract/router.ts";
import type { Handlers } from "../server/add-routes.ts";
import type { HandlerDeps } from "./handler-deps.ts";

const databaseMsMax = 2_000;

export function routerHandlers(deps: HandlerDeps): Handlers<typeof routerContract> {
  const { logLevel, overview, clock, database, fleet, accounts } = deps;
  return {
    async showRouter() {
      const nodes = fleet.details();
      return {
        version,
        since: new Date(overview.startedAtMs).toISOString(),
        listeners: overview.listeners,
        database: { server: overview.databaseServer, answerMs: await answerMsOf(database, clock) },
        limitStore: viewStore(overview.limitStore),
        otherRouters: overview.routers.others(),
        invoices: { since: accounts.invoices.since },
        nodes: { live: nodes.filter((node) => nodeState(node) === "live").length, known: nodes.length },
        certificates: certificateFiles(overview.certificates, clock.now()),
        log: logLevel.state,
      };
    },
    listRouters: () =>
      overview.routers.all().map((router) => ({ ...plainRow(router), isThis: router.id === overview.routers.own })),
    showLogLevel: () => logLevel.state,
    setLogLevel: ({ body: { level, seconds } }) => logLevel.set(level, seconds),
  };
}

function viewStore(store: LimitStoreView | undefined) {
  if (!store) return undefined;
  const { address, down } = store;
  const trouble = down();
  if (!trouble) return { address };
  return { address, down: { since: new Date(trouble.sinceMs).toISOString(), reason: trouble.reason } };
}

/** Measures the time of a database query. Returns undefined if the query fails or takes too long. */
async function answerMsOf({ pool }: Database, clock: Clock): Promise<number | undefined> {
  const startMs = clock.monotonicMs();
  let answerMs: number | undefined;
  const asked = pool.query("select 1").then(
    () => (answerMs = clock.monotonicMs() - startMs),
    () => {},
  );
  await within(clock, databaseMsMax, asked);
  return answerMs;
}
