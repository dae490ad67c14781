/** Everything a router is made of, in the order it is made; it is closed in reverse. */
import { join } from "node:path";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import { mayHost, rulesOf, type Catalogue } from "@weiche/shared/catalogue.ts";
import { LoopClock } from "@weiche/shared/time/loop-clock.ts";
import { lockDirectory, StartError } from "@weiche/shared/files/directory-lock.ts";
import { uuidv7, type ModelId } from "@weiche/shared/ids.ts";
import { formatListen } from "@weiche/shared/http/listen.ts";
import { createLog, type Log } from "@weiche/shared/program/log.ts";
import { returnMemory } from "@weiche/shared/program/memory-return.ts";
import { openOpsServer } from "@weiche/shared/program/ops-server.ts";
import { openTlsFiles } from "@weiche/shared/http/tls-files.ts";
import { createIdentity } from "./accounts/identity.ts";
import { sweepIdentity } from "./accounts/identity-sweep.ts";
import { createKeyCache } from "./keys/key-cache.ts";
import { createLoginThrottle } from "./sign-in/login-throttle.ts";
import { createPasswordHashing } from "./sign-in/password-hashing.ts";
import { startPasswordThreads } from "./sign-in/password-threads.ts";
import { createSessions } from "./sign-in/sessions.ts";
import { keepAuditFor } from "./rights/audit-retention.ts";
import { createAccounts } from "./accounts/accounts.ts";
import { createNotices } from "./accounts/notices.ts";
import { addAccountRoutes } from "./surface/operator/account-routes.ts";
import { createAdminApi } from "./surface/operator/admin-api.ts";
import { addIdentityRoutes } from "./surface/operator/identity-routes.ts";
import { addBusinessRoutes } from "./surface/operator/business-routes.ts";
import { addNodeRoutes } from "./surface/operator/node-routes.ts";
import { modelsForOperators, nodesForOperators } from "./surface/operator/node-views.ts";
import { loadCatalogue, type RouterConfig } from "./config/config.ts";
import { createEvaluator } from "./usage/evaluator.ts";
import { readGrants } from "./usage/grants.ts";
import { openRefusals } from "./usage/refusals.ts";
import { reportRefusals } from "./usage/refusal-report.ts";
import { createUsageLedger } from "./usage/usage-ledger.ts";
import { VoidDeclarations } from "./usage/void-declarations.ts";
import { listRefused } from "./usage/usage-refused.ts";
import { reportUsage } from "./usage/usage-report.ts";
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
import { createHandlers } from "./surface/handlers.ts";
import { openPortal } from "./surface/portal-server.ts";
import { createApiServer } from "./api/server.ts";

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
