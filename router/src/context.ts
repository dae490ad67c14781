/** Creates the parts of a router in the order of their dependencies, and closes them in reverse order. */
import { hostname } from "node:os";
import { lockDirectory } from "@weiche/shared/files/directory-lock.ts";
import { tellEnding } from "@weiche/shared/program/certificate-expiry.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import type { Log } from "@weiche/shared/program/log.ts";
import { sleep } from "@weiche/shared/time/clock.ts";
import { openOpsServer } from "@weiche/shared/program/ops-server.ts";
import { version } from "@weiche/shared/program/version.ts";
import { sweepIdentity } from "./accounts/identity-sweep.ts";
import type { RouterConfig } from "./config/config.ts";
import { createCore, type Core, type Given } from "./core.ts";
import { jobOfOneRouter } from "./db/lease.ts";
import { beatMs, joinRouters, requireAlone, type LiveRouter, type RouterFacts } from "./db/live-routers.ts";
import { publishGauges } from "./gauges.ts";
import { Readiness } from "./nodes/readiness.ts";
import { openApi, type PublicApi } from "./open-api.ts";
import { openLimits } from "./open-limits.ts";
import { openNodes, type Nodes } from "./open-nodes.ts";
import { openStorage, type Storage } from "./open-storage.ts";
import { openSurface } from "./open-surface.ts";
import { removeOldAudit } from "./rights/audit-retention.ts";
import { publishPackages } from "./subscriptions/publish-packages.ts";
import { createSubscriptions } from "./subscriptions/subscriptions.ts";
import { createEvaluator, type Evaluator } from "./usage/evaluator.ts";
import { forgetUnanswered } from "./usage/requests/unanswered-requests.ts";

export interface Router {
  readonly log: Log;
  /** The addresses of its listeners, with the actual ports. */
  readonly listen: Readonly<Record<"api" | "portal" | "nodes" | "data" | "ops", string>> & {
    /** Undefined if the console is off. */
    readonly console?: string;
  };
  /** Reads the catalogue file again. If the file is wrong, logs this and keeps the previous catalogue. */
  reloadCatalogue(): Promise<void>;
  /**
   * Shows that the router is not ready and serves until balancers have noticed. Then refuses new requests, waits for
   * running answers, commits the usage received so far, and closes.
   */
  close(): Promise<void>;
}

/** How long a stop waits for the database. Usage that is not committed by then stays in the nodes' outboxes. */
const databaseCloseMs = 10_000;

export async function createRouter(config: RouterConfig, given: Partial<Given> = {}): Promise<Router> {
  await using opened = new AsyncDisposableStack();
  const core = createCore(config, given, opened);
  const { clock, log, metrics, events, catalogue, life } = core;
  let isReady = () => false;
  opened.use(lockDirectory(config.stateDir));
  const ops = opened.use(
    await openOpsServer({ config: config.ops, metrics: metrics.scrape, ready: () => isReady(), clock, events }),
  );
  const storage = await openStorage(core);
  await catalogue.onRead(({ packages }) => publishPackages(storage.database, packages, clock.now()));
  const self = await joinOthers(core, storage);
  self.onLedgerChange(() => {
    storage.keys.forgetAll();
    storage.voids.declareAgain();
  });
  const limits = await openLimits(core, storage, self.others);
  const nodes = await openNodes(core, storage, self);
  ops.serveNodes(nodes.metrics);
  const api = await openApi(core, storage, limits, nodes);
  const subscriptions = createSubscriptions({ database: storage.database, clock }, config.invoices);
  const evaluator = createEvaluator(storage.database, clock, subscriptions, core.events, catalogue);
  startUpkeep(core, storage, evaluator);
  const certificates = { api: api.tls, nodes: nodes.tls, ops: ops.tls };
  tellEnding(certificates, clock.now(), events);
  const routers = { all: self.routers, others: self.others, own: core.routerId };
  const overview = { startedAtMs: clock.now(), routers, certificates, ops: ops.address };
  const { listen, mail } = await openSurface(core, storage, limits, nodes, api, evaluator, overview);
  catalogue.onReload(() => log.info({ models: catalogue.get().size }, "catalogue read again"));
  const gauged = { ...storage, nodes, catalogue, certificates, mail, routers, limitStore: limits.store };
  metrics.scrape.onScrape(() => publishGauges(metrics, gauged));
  const { seenNodes: seen, othersHaveNodes } = self;
  const readiness = new Readiness({ seen, reached: nodes.reached, othersHaveNodes, clock });
  isReady = () => !life.isLeaving && readiness.isReady();
  await self.announce(() => ({
    ...factsOf(life.isLeaving ? "leaving" : isReady() ? "ready" : "starting", nodes, api),
    catalogue: catalogue.digest(),
  }));

  const closing = opened.move();
  return {
    log,
    listen,
    async reloadCatalogue() {
      try {
        await catalogue.reload();
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        const what =
          error instanceof StartError ? "the new catalogue is wrong" : "the new catalogue cannot be published";
        log.error({ reason }, `${what}; the previous one stays in use`);
      }
    },
    async close() {
      life.isLeaving = true;
      nodes.link.goodbye();
      api.server.leave();
      if (config.shutdownAcceptMs > 0) await sleep(clock, config.shutdownAcceptMs);
      await api.server.close(config.shutdownMsMax, () => nodes.data.cut());
      const deadline = clock.after(databaseCloseMs, () => storage.database.abandon());
      await closing.disposeAsync();
      deadline.cancel();
    },
  };
}

/**
 * Announces this router to the other routers of the database. Throws `StartError` if this router may not serve together
 * with them.
 */
async function joinOthers(core: Core, { database }: Storage): Promise<LiveRouter> {
  const { config, clock, events, job, routerId, opened } = core;
  const limitStore = config.limitStore?.shown ?? "memory";
  const identity = { id: routerId, host: hostname(), directory: config.stateDir, version, limitStore };
  const told = {
    otherRouters: (count: number, wereFirst: boolean) =>
      events.otherRouters(count, wereFirst && (limitStore === "memory" || !isSharedByAll(self, limitStore))),
  };
  const self: LiveRouter = opened.use(await joinRouters(database, clock, identity, told));
  // Nobody else uses an embedded database.
  if (config.mustBeAlone && config.databaseUrl !== undefined) await requireAlone(self, routerId, clock);
  opened.use(job("routers", beatMs, () => self.beat()));
  return self;
}

function isSharedByAll({ routers }: LiveRouter, limitStore: string): boolean {
  return routers().every((router) => router.state === "gone" || router.limitStore === limitStore);
}

/** The facts about this router that each heartbeat writes to the database. */
function factsOf(state: RouterFacts["state"], nodes: Nodes, { server }: PublicApi): RouterFacts {
  return {
    state,
    linkAddress: nodes.addresses.link,
    dataAddress: nodes.addresses.data,
    runningRequests: server.running().length,
    nodes: nodes.details().flatMap(({ view, linked }) => (linked ? [view.node] : [])),
  };
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** Starts the periodic work in the database. */
function startUpkeep(core: Core, { database, ledger }: Storage, evaluator: Evaluator): void {
  const { config, clock, events, job, routerId, opened } = core;
  const jobOfOne = jobOfOneRouter(job, database.pool, routerId);
  const removeAudit = async () =>
    events.auditEntriesRemoved(await removeOldAudit(database, clock.now(), config.auditDays));
  const rollDays = async () => {
    await ledger.rollDays();
    await forgetUnanswered(database.pool, clock.now() - config.requestDays * dayMs);
  };
  opened.use(job("usage-days", hourMs, rollDays));
  opened.use(job("identity-sweep", hourMs, () => sweepIdentity(database, clock.now(), config.deadKeyDays)));
  opened.use(jobOfOne("audit-retention", 6 * hourMs, removeAudit, { atStart: true }));
  opened.use(jobOfOne("credits", config.evaluateMs, () => evaluator.evaluate()));
}
