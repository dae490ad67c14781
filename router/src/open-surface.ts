/** Opens the portal, the operators' console, and the admin socket behind the `weiche` command. */
import { join } from "node:path";
import { createAccounts } from "./accounts/accounts.ts";
import { mailNotices, noticeMailsEveryMs } from "./accounts/notice-mails.ts";
import { createIdentity } from "./accounts/identity.ts";
import { formatListen, isLoopback, type ListenAddress } from "@weiche/shared/http/listen.ts";
import type { Core } from "./core.ts";
import { createMail } from "./mail/mail.ts";
import type { PublicApi } from "./open-api.ts";
import type { Limits } from "./open-limits.ts";
import type { Nodes } from "./open-nodes.ts";
import type { Storage } from "./open-storage.ts";
import { createLoginThrottle } from "./sign-in/login-throttle.ts";
import { createPasswordHashing } from "./sign-in/password-hashing.ts";
import { startPasswordThreads } from "./sign-in/password-threads.ts";
import { createSessions } from "./sign-in/sessions.ts";
import { OwnCapacity } from "./simulate/own/own-capacity.ts";
import { openAdminSocket } from "./surface/admin/admin-socket.ts";
import { openPortal } from "./surface/portal/portal-server.ts";
import { openConsole } from "./surface/console/console-server.ts";
import { ConsoleSessions } from "./surface/console/console-sessions.ts";
import type { Overview } from "./surface/routes/handler-deps.ts";
import { createHandlers } from "./surface/routes/handlers.ts";
import type { Evaluator } from "./usage/evaluator.ts";

export async function openSurface(
  core: Core,
  { database, ledger, keys }: Storage,
  { limiter, store }: Limits,
  nodes: Nodes,
  api: PublicApi,
  evaluator: Evaluator,
  given: Omit<Overview, "listeners" | "databaseServer" | "limitStore"> & { readonly ops: ListenAddress },
) {
  const { config, clock, events, catalogue, jobRuns, opened, life } = core;
  const isLeaving = () => life.isLeaving;
  /** Undefined if no mail server is configured. */
  const mail = config.smtp && opened.use(createMail(config.smtp, clock, events));
  const hashing = createPasswordHashing(clock, opened.use(startPasswordThreads()));
  const webEvents = { ...api.events, ...events };
  // Accounts and sign-in need the portal's address for links to it, so the portal listens first.
  const portal = opened.use(
    await openPortal({
      listen: config.listen.portal,
      publicUrl: config.publicPortal,
      apiUrl: api.url,
      tls: api.tls,
      limits: config.limits,
      isLeaving,
      sessions: createSessions(database, clock),
      clock,
      events: webEvents,
    }),
  );
  const consoleSessions = opened.use(
    new ConsoleSessions(join(config.stateDir, "console-sessions.json"), clock, events),
  );
  /** Undefined if the console is off. */
  const ofOperators =
    config.listen.console &&
    opened.use(
      await openConsole({
        listen: config.listen.console,
        publicUrl: config.publicConsole,
        // The certificate names no loopback address, and loopback traffic does not leave this machine.
        tls: isLoopback(config.listen.console.host) ? undefined : api.tls,
        limits: config.limits,
        isLeaving,
        ...{ sessions: consoleSessions, database, clock, events: webEvents },
      }),
    );
  const listen = {
    api: formatListen(api.address),
    portal: formatListen(portal.address),
    ...(ofOperators && { console: formatListen(ofOperators.address) }),
    nodes: formatListen(nodes.link.address),
    data: formatListen(nodes.data.address),
    ops: formatListen(given.ops),
  };
  if (mail) {
    const mailDue = () => mailNotices(database, clock, mail, portal.url);
    opened.use(core.job("notice-mails", noticeMailsEveryMs, mailDue));
  }
  const people = { database, clock, portalUrl: portal.url, audits: events };
  const accounts = createAccounts({ ...people, invoices: config.invoices });
  const { registration, terms } = config;
  const throttle = createLoginThrottle(database, clock);
  const identity = createIdentity({ ...people, hashing, throttle, registration, terms, mail, events });
  const handlers = createHandlers({
    ...{ database, clock, accounts, identity, limiter, evaluator },
    requestDays: config.requestDays,
    apiUrl: api.url,
    models: catalogue.models,
    catalogue: catalogue.get,
    changes: catalogue.changes,
    apiLimits: { ...config.limits, requestMsMax: config.requestMsMax },
    reloadCatalogue: catalogue.reload,
    nodes: nodes.views,
    usualWaitMs: nodes.usualWaitMs,
    fleet: nodes,
    overview: {
      ...given,
      listeners: listen,
      databaseServer: config.databaseUrl === undefined ? "embedded" : "configured",
      limitStore: store,
    },
    logLevel: core.logLevel,
    requests: {
      running: api.server.running,
      recent: api.recent,
      ofNode: (node) => nodes.data.requestsOf(node),
    },
    chat: (chat) => api.server.chat(chat),
    console: ofOperators && {
      url: ofOperators.url,
      sessions: consoleSessions,
      pipeline: {
        waitingForCommit: () => ledger.waiting(),
        jobRanAtMs: (job) => jobRuns.get(job),
        evaluateMs: config.evaluateMs,
        keysAgeMs: () => keys.ageMs,
      },
      capacity: opened.use(
        new OwnCapacity({
          ...{ pool: database.pool, clock, details: nodes.details },
          routers: () => given.routers.others() + 1,
          events,
        }),
      ),
    },
  });
  await portal.serve(handlers);
  await ofOperators?.serve(handlers);
  opened.use(await openAdminSocket(join(config.stateDir, "admin.sock"), { database, handlers, events }));
  return { listen, mail };
}
