/** Everything a router is made of, in the order it is made; it is closed in reverse. */
import { lockDirectory } from "@weiche/shared/files/directory-lock.ts";
import { tellEnding } from "@weiche/shared/program/certificate-expiry.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import type { Log } from "@weiche/shared/program/log.ts";
import { openOpsServer } from "@weiche/shared/program/ops-server.ts";
import { sweepIdentity } from "./accounts/identity-sweep.ts";
import type { RouterConfig } from "./config/config.ts";
import { createCore, type Core, type Given } from "./core.ts";
import { jobOfOneRouter } from "./db/lease.ts";
import { beatMs, joinRouters, type LiveRouter } from "./db/live-routers.ts";
import { publishGauges } from "./gauges.ts";
import { openApi } from "./open-api.ts";
import { openNodes } from "./open-nodes.ts";
import { openStorage, type Storage } from "./open-storage.ts";
import { openSurface } from "./open-surface.ts";
import { removeOldAudit } from "./rights/audit-retention.ts";
import { publishPackages } from "./subscriptions/publish-packages.ts";
import { createSubscriptions } from "./subscriptions/subscriptions.ts";
import { createEvaluator, type Evaluator } from "./usage/evaluator.ts";

export interface Router {
  readonly log: Log;
  /** The addresses of its listeners, with the actual ports. */
  readonly listen: Readonly<Record<"api" | "portal" | "nodes" | "data" | "ops", string>> & {
    /** Absent: it is off. */
    readonly console?: string;
  };
  /** Takes the catalogue file over; a wrong one is logged and the one before stays. */
  reloadCatalogue(): Promise<void>;
  /** Takes nothing new, lets running answers end, commits what usage has come, and closes. */
  close(): Promise<void>;
}

/** How long a stop waits for the database. Usage that is not committed by then is still at the nodes. */
const databaseCloseMs = 10_000;

export async function createRouter(config: RouterConfig, given: Partial<Given> = {}): Promise<Router> {
  await using opened = new AsyncDisposableStack();
  const core = createCore(config, given, opened);
  const { clock, log, metrics, events, catalogue } = core;
  let ready = false;
  opened.use(lockDirectory(config.stateDir));
  const ops = opened.use(
    await openOpsServer({ config: config.ops, metrics: metrics.scrape, ready: () => ready, clock, events }),
  );
  const storage = await openStorage(core);
  await catalogue.onRead(({ packages }) => publishPackages(storage.database, packages, clock.now()));
  const self = await joinOthers(core, storage);
  const nodes = await openNodes(core, storage, self.ledger);
  ops.serveNodes(nodes.metrics);
  const api = await openApi(core, storage, nodes);
  const subscriptions = createSubscriptions({ database: storage.database, clock });
  const evaluator = createEvaluator(storage.database, clock, subscriptions, core.events, catalogue);
  startUpkeep(core, storage, evaluator);
  const certificates = { api: api.tls, nodes: nodes.tls, ops: ops.tls };
  tellEnding(certificates, clock.now(), events);
  const overview = { startedAtMs: clock.now(), otherRouters: self.others, certificates, ops: ops.address };
  const { listen, mail } = await openSurface(core, storage, nodes, api, evaluator, overview);
  catalogue.onReload(() => log.info({ models: catalogue.get().size }, "catalogue read again"));
  metrics.scrape.onScrape(() => publishGauges(metrics, { ...storage, nodes, catalogue, certificates, mail }));
  ready = true;

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
        log.error({ reason }, `${what}; the one before stays`);
      }
    },
    async close() {
      ready = false;
      nodes.link.goodbye();
      await api.server.close(config.shutdownMsMax, () => nodes.data.cut());
      const deadline = clock.after(databaseCloseMs, () => storage.database.abandon());
      await closing.disposeAsync();
      deadline.cancel();
    },
  };
}

/** Announces this router to the other routers of the database. */
async function joinOthers({ events, job, routerId, opened }: Core, { database }: Storage): Promise<LiveRouter> {
  const self = opened.use(await joinRouters(database, routerId, events));
  opened.use(job("routers", beatMs, () => self.beat()));
  return self;
}

const hourMs = 3_600_000;

/** Starts the periodic work in the database. */
function startUpkeep(core: Core, { database, ledger }: Storage, evaluator: Evaluator): void {
  const { config, clock, events, job, routerId, opened } = core;
  const jobOfOne = jobOfOneRouter(job, database.pool, routerId);
  const removeAudit = async () =>
    events.auditEntriesRemoved(await removeOldAudit(database, clock.now(), config.auditDays));
  opened.use(job("usage-days", hourMs, () => ledger.rollDays()));
  opened.use(job("identity-sweep", hourMs, () => sweepIdentity(database, clock.now())));
  opened.use(jobOfOne("audit-retention", 6 * hourMs, removeAudit, { atStart: true }));
  opened.use(jobOfOne("credits", config.evaluateMs, () => evaluator.evaluate()));
}
