/** Everything a router is made of, in the order it is made; it is closed in reverse. */
import { join } from "node:path";
import { systemClock, type Clock } from "@weiche/shared/clock.ts";
import { mayHost, rulesOf, type Catalogue } from "@weiche/shared/catalogue.ts";
import { LoopClock } from "@weiche/shared/loop-clock.ts";
import { lockDirectory, StartError } from "@weiche/shared/directory-lock.ts";
import { uuidv7, type ModelId } from "@weiche/shared/ids.ts";
import { formatListen } from "@weiche/shared/listen.ts";
import { createLog, type Log } from "@weiche/shared/log.ts";
import { returnMemory } from "@weiche/shared/memory-return.ts";
import { openOpsServer } from "@weiche/shared/ops-server.ts";
import { openTlsFiles } from "@weiche/shared/tls-files.ts";
import { createIdentity } from "./access/identity.ts";
import { sweepIdentity } from "./access/identity-sweep.ts";
import { createKeyCache } from "./access/key-cache.ts";
import { createLoginThrottle } from "./access/login-throttle.ts";
import { createPasswordHashing } from "./access/password-hashing.ts";
import { startPasswordThreads } from "./access/password-threads.ts";
import { createSessions } from "./access/sessions.ts";
import { keepAuditFor } from "./accounts/audit-retention.ts";
import { createAccounts } from "./accounts/accounts.ts";
import { createNotices } from "./accounts/notices.ts";
import { addAccountRoutes } from "./admin/account-routes.ts";
import { createAdminApi } from "./admin/admin-api.ts";
import { addIdentityRoutes } from "./admin/identity-routes.ts";
import { addBusinessRoutes } from "./admin/business-routes.ts";
import { addNodeRoutes } from "./admin/node-routes.ts";
import { modelsForOperators, nodesForOperators } from "./admin/node-views.ts";
import { loadCatalogue, type RouterConfig } from "./config.ts";
import { createEvaluator } from "./credits/evaluator.ts";
import { readGrants } from "./credits/grants.ts";
import { openRefusals } from "./credits/refusals.ts";
import { reportRefusals } from "./credits/refusal-report.ts";
import { createUsageLedger } from "./credits/usage-ledger.ts";
import { VoidDeclarations } from "./credits/void-declarations.ts";
import { listRefused } from "./credits/usage-refused.ts";
import { reportUsage } from "./credits/usage-report.ts";
import { openDatabase } from "./db/database.ts";
import { joinRouters } from "./db/live-routers.ts";
import {
  createAdminEvents,
  createApiEvents,
  createDatabaseEvents,
  createIdentityEvents,
  createNodeEvents,
} from "./events.ts";
import { MemoryLimiter } from "./limits/memory.ts";
import { createMail } from "./mail/mail.ts";
import { createMetrics } from "./metrics.ts";
import { openDataConnections } from "./nodes/data-connections.ts";
import { openNodeLink } from "./nodes/node-link.ts";
import { openNodeWishes } from "./nodes/node-wishes.ts";
import { place } from "./nodes/placement.ts";
import { NodeRegistry } from "./nodes/registry.ts";
import { createHandlers } from "./portal/handlers.ts";
import { openPortal } from "./portal/portal-server.ts";
import { createApiServer } from "./server.ts";

export interface Router {
  readonly log: Log;
  /** Where it listens, with real ports. */
  readonly listen: Readonly<Record<"api" | "portal" | "nodes" | "data" | "ops", string>>;
  /** Takes the catalogue file over; a wrong one is logged and the one before stays. */
  reloadCatalogue(): void;
  /** Takes nothing new, lets running answers end, commits what usage has come, and closes. */
  close(): Promise<void>;
}

/** For links and sessions, once no answer runs any more. */
const linkCloseMs = 2_000;
/** So long a stop waits for the database. What it has not committed by then is still at the nodes. */
const databaseCloseMs = 10_000;

export async function createRouter(config: RouterConfig, clock: Clock = systemClock): Promise<Router> {
  await using opened = new AsyncDisposableStack();
  const log = createLog("router", config.logLevel);
  const limiter = new MemoryLimiter(clock);
  const metrics = createMetrics(() => limiter.running);
  const nodeEvents = createNodeEvents(log, metrics);
  const identityEvents = createIdentityEvents(log, metrics);
  const databaseEvents = createDatabaseEvents(log, metrics);
  let catalogue: Catalogue = loadCatalogue(config.catalogueFile);
  let ready = false;

  opened.use(lockDirectory(config.stateDir));
  const ops = opened.use(await openOpsServer(config.listen.ops, metrics.registry, () => ready, clock));
  const database = opened.use(await openDatabase(config, clock, databaseEvents));
  if (database.notice) log.info({ show: true }, database.notice);
  const grants = await readGrants(database.pool);
  const ledger = opened.use(
    await createUsageLedger(database, clock, databaseEvents, {
      grants,
      keepDays: config.usageDays,
      makesEmbeddings: (model) => catalogue.get(model)?.category === "embeddings",
    }),
  );
  const voids = opened.use(new VoidDeclarations(ledger, clock));
  const keys = opened.use(await createKeyCache(database, clock, databaseEvents));

  const routerId = uuidv7(clock);
  opened.use(await joinRouters(database, clock, routerId, nodeEvents));
  const wishes = opened.use(await openNodeWishes(database, clock, nodeEvents));
  const registry = new NodeRegistry((node) => wishes.isMaintained(node));
  const nodesTls = config.nodesTls && opened.use(openTlsFiles(config.nodesTls, clock, nodeEvents));
  const linkClock = opened.use(new LoopClock(clock));
  const links = { routerId, clock: linkClock, events: nodeEvents, ...(nodesTls ? { tls: nodesTls } : {}) };
  const data = await openDataConnections({ ...links, listen: config.listen.data, counts: registry, grants });
  opened.defer(() => data.close(linkCloseMs));
  const nodes = await openNodeLink({
    ...links,
    listen: config.listen.nodes,
    dataAddress: config.dataAdvertise ?? formatListen(data.address),
    registry,
    ledger,
    rulesOf: (models) => models.flatMap((model) => catalogue.get(model) ?? []).map(rulesOf),
    mayHost: (node, model) => mayHost(catalogue, node, model),
    desiredStateOf: (node) => wishes.of(node),
    onBoot: (node, bootId) => data.dropEarlierBoots(node, bootId),
  });
  opened.defer(() => nodes.close(linkCloseMs));
  const nodeViews = () => registry.view(linkClock.monotonicMs());
  wishes.onChange((node) => nodes.desiredStateChanged(node));

  const refusals = opened.use(openRefusals(database.pool, clock, databaseEvents, { keepDays: config.usageDays }));
  const models = () => [...catalogue.keys()];
  const apiEvents = createApiEvents(log, metrics, refusals);
  const apiTls = config.tls && opened.use(openTlsFiles(config.tls, clock, nodeEvents));
  const api = createApiServer({
    ...(apiTls ? { tls: apiTls } : {}),
    config,
    keys,
    limiter,
    catalogue: () => catalogue,
    place: (request, exclude) => place(request, nodeViews(), linkClock.monotonicMs(), Math.random, exclude),
    upstream: data,
    verdicts: {
      settled: (attempt) => nodes.settled(attempt.node, attempt),
      declareVoid: (attempt) => voids.declare(attempt),
    },
    clock,
    events: apiEvents,
  });
  const apiAddress = await api.listen();
  opened.use(returnMemory(clock, () => api.open));
  const apiUrl = config.publicApi ?? `http${apiTls ? "s" : ""}://${formatListen(apiAddress)}`;
  const mail = config.smtp && opened.use(createMail(config.smtp, clock, identityEvents));
  const hashing = createPasswordHashing(clock, opened.use(startPasswordThreads()));
  const throttle = createLoginThrottle(database, clock);
  const identityAt = (portalUrl: string) =>
    createIdentity({
      database,
      clock,
      portalUrl,
      hashing,
      throttle,
      registration: config.registration,
      ...(mail ? { mail } : {}),
      events: identityEvents,
    });
  opened.use(sweepIdentity(database, clock, identityEvents));
  const portal = opened.use(
    await openPortal({
      listen: config.listen.portal,
      ...(config.publicPortal ? { publicUrl: config.publicPortal } : {}),
      apiUrl,
      ...(apiTls ? { tls: apiTls } : {}),
      limits: config.limits,
      sessions: createSessions(database, clock),
      handlers: (portalUrl) =>
        createHandlers({
          database,
          clock,
          apiUrl,
          accounts: createAccounts({ database, clock, portalUrl }),
          identity: identityAt(portalUrl),
          models,
          catalogue: () => catalogue,
          limiter,
          nodes: nodeViews,
          chat: (chat) => api.chat(chat),
        }),
      clock,
      events: { ...apiEvents, ...databaseEvents },
    }),
  );
  const accounts = createAccounts({ database, clock, portalUrl: portal.url });
  const evaluator = opened.use(
    createEvaluator(database, clock, accounts.subscriptions, routerId, databaseEvents, {
      everyMs: config.evaluateMs,
      catalogue: () => catalogue,
    }),
  );
  opened.use(keepAuditFor(config.auditDays, database, clock, routerId, databaseEvents));
  const placeAlone = (model: ModelId) => place({ model }, nodeViews(), linkClock.monotonicMs(), Math.random);
  const details = () => registry.details(linkClock.monotonicMs());
  const reloadCatalogue = () => {
    catalogue = loadCatalogue(config.catalogueFile);
    nodes.rulesChanged();
    log.info({ models: catalogue.size }, "catalogue read again");
  };
  opened.use(
    await createAdminApi(
      join(config.stateDir, "admin.sock"),
      {
        accounts,
        usage: (account, wish) => reportUsage(database, clock, account, wish),
        nodes: () => nodesForOperators(details(), linkClock.monotonicMs()),
        models: () => modelsForOperators(catalogue, details(), clock.now()),
        reloadCatalogue,
        sendInvitation: (userId, url) => identityAt(portal.url).invitations.send(userId, url),
        more(app) {
          addNodeRoutes(app, { wishes, nodes: details, models, place: placeAlone, clock });
          addBusinessRoutes(app, {
            evaluator,
            audit: accounts.audit,
            notices: createNotices(database, clock),
            refusals: (account) => reportRefusals(database.pool, clock, account),
            refusedUsage: (wish) => listRefused(database.pool, wish),
          });
          addAccountRoutes(app, { accounts, database, limiter, clock });
          addIdentityRoutes(app, identityAt(portal.url), accounts);
        },
      },
      createAdminEvents(log),
    ),
  );

  ready = true;

  const closing = opened.move();
  return {
    log,
    listen: {
      api: formatListen(apiAddress),
      portal: formatListen(portal.address),
      nodes: formatListen(nodes.address),
      data: formatListen(data.address),
      ops: formatListen(ops.address),
    },
    reloadCatalogue() {
      try {
        reloadCatalogue();
      } catch (error) {
        if (!(error instanceof StartError)) throw error;
        log.error({ reason: error.message }, "the new catalogue is wrong; the one before stays");
      }
    },
    async close() {
      ready = false;
      nodes.goodbye();
      await api.close(config.shutdownMsMax, () => data.cut());
      const deadline = clock.after(databaseCloseMs, () => database.abandon());
      await closing.disposeAsync();
      deadline.cancel();
    },
  };
}
