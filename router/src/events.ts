/** The events of the router. One function per event writes the log line and changes the metric, so that both agree. */
import type { FewLines } from "@weiche/shared/program/few-lines.ts";
import { describeError, type Log } from "@weiche/shared/program/log.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { JobEvents } from "@weiche/shared/time/job.ts";
import type { IdentityEvents } from "./sign-in/identity-context.ts";
import type { KeyCacheEvents } from "./callers/key-cache.ts";
import type { CapacityEvents } from "./simulate/own/own-capacity.ts";
import type { AdminEvents } from "./surface/admin/admin-socket.ts";
import type { ConsoleSessionEvents } from "./surface/console/console-sessions.ts";
import type { ApiEvents } from "./api/exchange.ts";
import type { RecentRequests } from "./api/recent-requests.ts";
import type { EvaluatorEvents } from "./usage/evaluator.ts";
import type { Refusals } from "./usage/refusal-counts.ts";
import type { UsageQueueEvents } from "./usage/usage-queue.ts";
import type { VoidEvents } from "./usage/void-declarations.ts";
import type { DatabaseEvents } from "./db/database.ts";
import type { SharedLimiterEvents } from "./limits/shared-limiter.ts";
import type { MailEvents } from "./mail/mail.ts";
import { jobFailures, usesDatabase, type DatabaseUse, type JobName } from "./job-names.ts";
import type { Metrics } from "./metrics.ts";
import { createNodeEvents } from "./node-events.ts";
import { auditMessage, loggedDeed, type AuditEvents } from "./rights/audit-entry.ts";
import type { WebEvents } from "./surface/server/web-answers.ts";

export function createApiEvents(
  log: Log,
  metrics: Metrics,
  refusals: Pick<Refusals, "count">,
  recent: Pick<RecentRequests, "remember">,
): ApiEvents {
  return {
    requestRefused: (of, code) => refusals.count(of, code),
    connectionRefused: () => metrics.connectionsRefused.inc(),
    forwardedUnread: unreadForwarded(log),
    requestFinished(facts) {
      recent.remember(facts);
      const {
        endpoint,
        model = "none",
        outcome,
        status,
        errorCode,
        refusal,
        attempts,
        durationMs,
        firstByteMs,
        bytesSent,
      } = facts;
      metrics.requests.inc({ endpoint, model, outcome });
      metrics.answers.inc({ endpoint, status: String(status), code: errorCode ?? "none" });
      if (refusal !== undefined) metrics.refusals.inc({ reason: refusal });
      metrics.durations.observe({ endpoint }, durationMs / 1000);
      if (firstByteMs !== undefined) metrics.firstBytes.observe({ endpoint }, firstByteMs / 1000);
      if (attempts > 1) metrics.retries.inc();
      metrics.bytesSent.inc(bytesSent);
      if (outcome === "broken" || outcome === "timeout") log.warn(facts, "request broken");
      else log.debug(facts, "request");
    },
    requestFailed(requestId, error) {
      metrics.failures.inc();
      const stack = error instanceof Error ? error.stack : undefined;
      log.error({ requestId, ...describeError(error), stack }, "a bug: the request failed");
    },
  };
}

const unreadProxiesMax = 16;

/** Logs one line per proxy, because every request of the proxy may have such an entry. */
function unreadForwarded(log: Log): WebEvents["forwardedUnread"] {
  const logged = new Set<string>();
  return (proxy, entry) => {
    if (logged.has(proxy) || logged.size >= unreadProxiesMax) return;
    logged.add(proxy);
    const said = entry.trim().slice(0, 64);
    log.warn(
      { proxy, entry: said },
      "an entry of X-Forwarded-For contains no address: such requests have no limit per address. Configure the proxy to write its client's address",
    );
  };
}

/** All events except the API's, which also count refusals in the database. */
export type RouterEvents = ReturnType<typeof createEvents>;

export function createEvents(log: Log, metrics: Metrics, few: FewLines) {
  return {
    ...createNodeEvents(log, metrics, few),
    ...createAdminEvents(log),
    ...createAuditEvents(log),
    ...createIdentityEvents(log, metrics),
    ...createDatabaseEvents(log, metrics, few),
    ...createLimitEvents(log, metrics),
  };
}

function createAdminEvents(log: Log): AdminEvents & ConsoleSessionEvents & CapacityEvents {
  return {
    capacityFailed(error) {
      const stack = error instanceof Error ? error.stack : undefined;
      log.error({ ...describeError(error), stack }, "the console's simulation of the fleet failed");
    },
    consoleSessionsNotSaved(error) {
      log.warn(describeError(error), "sessions of the console are not saved; a restart of the router ends them");
    },
    adminFailed(error) {
      const stack = error instanceof Error ? error.stack : undefined;
      log.error({ ...describeError(error), stack }, "an operator's command failed");
    },
  };
}

function createAuditEvents(log: Log): AuditEvents {
  return {
    audited: (entry) => log.info(loggedDeed(entry), auditMessage),
  };
}

function createIdentityEvents(log: Log, metrics: Metrics): IdentityEvents & MailEvents {
  return {
    loginFinished(outcome) {
      metrics.logins.inc({ outcome });
      log.debug({ outcome }, "login");
    },
    mailSent(kind, durationMs) {
      metrics.mails.inc({ kind, result: "sent" });
      log.debug({ kind, durationMs }, "mail sent");
    },
    mailFailed(kind, code) {
      metrics.mails.inc({ kind, result: "failed" });
      log.warn({ kind, code }, "mail not sent");
    },
  };
}

function createDatabaseEvents(
  log: Log,
  metrics: Metrics,
  few: FewLines,
): DatabaseEvents &
  KeyCacheEvents &
  UsageQueueEvents &
  VoidEvents &
  EvaluatorEvents &
  Pick<WebEvents, "databaseUnavailable"> & { auditEntriesRemoved(entries: number): void } {
  const failed = (what: DatabaseUse, message: string) => (error: unknown) => {
    metrics.databaseErrors.inc({ what });
    log.warn(describeError(error), message);
  };
  return {
    databaseConnectionLost: failed("connection", "a connection to the database was lost"),
    databaseMoved: (host) => log.warn({ host }, "another server of the database is the primary now"),
    schemaIsNewer: (migrations) =>
      log.warn({ migrations }, "a newer version has migrated the database; this version runs on its schema"),
    databaseRestarted() {
      log.warn("the embedded database had ended and runs again");
    },
    databaseRestartFailed: failed("restart", "the embedded database could not be started again"),
    keyChangesUnreadable: failed("key-changes", "changes of keys cannot be read; known keys still work"),
    databaseUnavailable: failed("portal", "a request of the portal failed because the database does not answer"),
    keyLookupFailed: failed("key-lookup", "a key could not be looked up"),
    keyChangesRead: (durationMs) => metrics.databaseRoundTrip.observe(durationMs / 1000),
    usageCommitted({ records, repeated, voided, credits, voidedCredits, durationMs }) {
      metrics.usageRecords.inc({ result: "voided" }, voided);
      metrics.usageRecords.inc({ result: "committed" }, records - repeated);
      metrics.usageRecords.inc({ result: "repeated" }, repeated);
      for (const [model, sum] of credits) metrics.credits.inc({ model }, Number(sum) / 1000);
      for (const [model, sum] of voidedCredits) metrics.creditsVoided.inc({ model }, Number(sum) / 1000);
      metrics.usageCommits.observe(durationMs / 1000);
    },
    usageCommitFailed(error, isNews) {
      metrics.databaseErrors.inc({ what: "usage-commit" });
      log[isNews ? "warn" : "debug"](describeError(error), "usage could not be committed; the router keeps trying");
    },
    voidLost() {
      metrics.usageRecords.inc({ result: "void-lost" });
      few.say("void lost", "", (left) =>
        log.error(left, "too many voids wait for the database: the answer of a failed attempt may be billed"),
      );
    },
    usageSetAside(node, reason, records) {
      metrics.usageRecords.inc({ result: "refused" }, records);
      metrics.usageSetAside.inc({ reason }, records);
      few.say("usage set aside", `${node} ${reason}`, (left) =>
        log.error({ node, reason, records, ...left }, "usage is set aside and billed to nobody (weiche usage refused)"),
      );
    },
    creditsEvaluated(evaluation) {
      log.debug({ ...evaluation }, "credits evaluated");
    },
    auditEntriesRemoved(entries) {
      if (entries > 0) log.info({ entries }, "entries of the audit log were removed after their retention");
    },
  };
}

function createLimitEvents(log: Log, metrics: Metrics): SharedLimiterEvents {
  return {
    limitStoreLost(reason) {
      log.warn(
        { reason },
        "the limit store does not answer: this router limits accounts by its own count until it does",
      );
    },
    limitStoreBack(aloneMs) {
      log.info(
        { aloneMs: Math.round(aloneMs) },
        "the limit store answers: limits of accounts hold over all routers again",
      );
    },
    limitDecidedAlone: () => metrics.limitsDecidedAlone.inc(),
    limitStoreAnswered: (durationMs) => metrics.limitStoreAnswers.observe(durationMs / 1000),
  };
}

/** When each job last ended without an error, in ms since 1970. */
export type JobRuns = Map<JobName, number>;

export function createJobEvents(log: Log, metrics: Metrics, clock: Clock, runs: JobRuns): JobEvents<JobName> {
  return {
    jobRan(job) {
      runs.set(job, clock.now());
      metrics.jobRuns.set({ name: job }, clock.now() / 1000);
    },
    jobFailed(job, error) {
      if (usesDatabase(job)) metrics.databaseErrors.inc({ what: job });
      log.warn(describeError(error), jobFailures[job]);
    },
  };
}
