/**
 * Events of requests, usage, links to routers and jobs. One function per event writes the log line and updates the
 * metric.
 */
import { rules } from "@weiche/shared/frames/frame.ts";
import { describeError, type Log } from "@weiche/shared/program/log.ts";
import { endingMessage, type CertificateEvents } from "@weiche/shared/program/certificate-expiry.ts";
import { beginAtZero } from "@weiche/shared/program/metric-registry.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { JobEvents } from "@weiche/shared/time/job.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import type { TlsFilesEvents } from "@weiche/shared/http/tls-files.ts";
import type { RequestOutcome } from "@weiche/shared/usage-record.ts";
import type { IngressEvents } from "../exchange/ingress-events.ts";
import type { Metrics } from "./metrics.ts";
import { endedInOrder } from "../links/router-link.ts";
import type { RouterLinkEvents } from "../links/router-links-options.ts";
import type { DeliveryEvents } from "../outbox/delivery.ts";
import type { OutboxEvents } from "../outbox/outbox.ts";
import type { UnsettledAnswersEvents } from "../outbox/unsettled-answers.ts";

type Outcome = RequestOutcome | "refused";
const outcomes: readonly Outcome[] = ["finished", "client-ended", "limit-ended", "broken", "refused"];

/** `models`: the models of the node. Other names, which a client may have invented, are labelled `other`. */
export function createIngressEvents(log: Log, metrics: Metrics, models: ReadonlySet<ModelId>): IngressEvents {
  beginAtZero(metrics.requests, { model: ["other"], outcome: ["refused"] });
  beginAtZero(metrics.requests, { model: models, outcome: outcomes });
  beginAtZero(metrics.tokens, { model: models, kind: ["prompt", "completion"] });
  return {
    requestEnded({ requestId, model, slot, waitedMs, record, gaps, error }) {
      const outcome: Outcome = record?.outcome ?? "refused";
      metrics.requests.inc({ model: models.has(model) ? model : "other", outcome });
      log.debug({ requestId, model, slot, waitedMs, outcome, error }, "request ended");
      if (!record) return;
      metrics.tokens.inc({ model, kind: "prompt" }, record.promptTokens);
      metrics.tokens.inc({ model, kind: "completion" }, record.completionTokens);
      if (record.firstTokenMs === undefined) return;
      metrics.firstToken.observe({ model }, record.firstTokenMs / 1000);
      metrics.interToken.merge(model, gaps);
    },
    engineFault(requestId, model, slot, reason, detail) {
      metrics.engineFailures.inc({ slot, model, what: "answer" });
      log.warn({ requestId, model, slot, reason, detail }, "an engine failed while it answered a request");
    },
    engineShortfall(requestId, model, slot, detail) {
      metrics.engineFailures.inc({ slot, model, what: "shortfall" });
      log.warn({ requestId, model, slot, detail }, "an engine refused what the service promises");
    },
    unknownFinish(requestId, model, reason) {
      const told = /^[\w.-]{1,40}$/.test(reason) ? reason : "unreadable";
      log.debug({ requestId, model, reason: told }, "an engine ended an answer with an unknown finish reason");
    },
    requestBug(error) {
      const stack = error instanceof Error ? error.stack : undefined;
      log.error({ ...describeError(error), stack }, "a bug: the request failed");
    },
  };
}

export function createLinkEvents(log: Log, metrics: Metrics): RouterLinkEvents & TlsFilesEvents & CertificateEvents {
  beginAtZero(metrics.rulesBroken, { rule: rules });
  return {
    routerLinkUp(address, routerId, version) {
      metrics.routerLink.set({ router: address }, 1);
      log.info({ router: address, routerId, version }, "router linked");
    },
    routerLinkDown(address, routerId, reason) {
      metrics.routerLink.set({ router: address }, 0);
      const level = reason === endedInOrder ? "info" : "warn";
      log[level]({ router: address, routerId, reason }, "router unlinked");
    },
    routerLinkFailed(address, reason) {
      metrics.routerLink.set({ router: address }, 0);
      log.warn({ router: address, reason }, "router not reached; the agent keeps trying");
    },
    routerNameUnresolved(name, code) {
      log.warn({ name, code }, "a router's name has no address; the last ones stay in use");
    },
    rulesUnreadable(model, reason) {
      log.error({ model, reason }, "a model's rules were not understood; is the router newer than the agent?");
    },
    dataConnectionUp: (routerId, connections) => log.debug({ routerId, connections }, "data connection up"),
    dataConnectionDown: (routerId, connections) => log.debug({ routerId, connections }, "data connection down"),
    dataConnectionFailed: (routerId, reason) => log.warn({ routerId, reason }, "a data connection could not be made"),
    dataConnectionBroken(routerId, rule, reason) {
      metrics.rulesBroken.inc({ rule });
      log.error({ routerId, rule, reason }, "a router broke a rule of the data connection; it was closed");
    },
    tlsReloaded: () => log.info("certificate read again"),
    tlsReloadFailed: (reason) =>
      log.error({ reason }, "the new certificate cannot be used; the previous one stays in use"),
    certificateEnding: (file) => log.warn(file, endingMessage),
  };
}

export function createUsageEvents(log: Log, metrics: Metrics): OutboxEvents & DeliveryEvents & UnsettledAnswersEvents {
  return {
    answersVoided(routerId, answers) {
      metrics.answersVoided.inc(answers);
      log.warn({ routerId, answers }, "a router died before it had handed over these answers: they cost nothing");
    },
    outboxFull(code) {
      metrics.outboxAdmitting.set(0);
      log.error({ code }, "the outbox's disk is full: new requests are refused until there is room");
    },
    outboxRoomAgain() {
      metrics.outboxAdmitting.set(1);
      log.info("the outbox has room again");
    },
    outboxUnknownVersion(records) {
      log.error({ records }, "usage records of an unknown version were skipped; was the agent downgraded?");
    },
    outboxCursorUnreadable(file, reason) {
      log.error({ file, reason }, "the outbox's cursor cannot be read: usage of the last hour is delivered again");
    },
    outboxDamaged: (bytes) => log.error({ bytes }, "a part of the usage outbox is damaged and was skipped"),
    outboxTornTail: (bytes) => log.warn({ bytes }, "an unfinished record at the end of the usage outbox was removed"),
    usageDelivered: (records) => metrics.usageDelivered.inc(records),
    usageSentAgain: (records) =>
      log.warn({ records }, "the routers' database was restored or taken over; usage records are sent again"),
    usageNotAcknowledged: (routerId) => log.warn({ routerId }, "usage was not acknowledged in time; it is sent again"),
    usageUnreadable: (code) => log.error({ code }, "the usage outbox could not be read; tried again"),
  };
}

export function createJobEvents(log: Log, metrics: Metrics, clock: Clock): JobEvents {
  const failing = new Set<string>();
  return {
    jobRan(job) {
      failing.delete(job);
      metrics.jobRuns.set({ name: job }, clock.now() / 1000);
    },
    jobFailed(job, error) {
      log[failing.has(job) ? "debug" : "warn"]({ job, ...describeError(error) }, "a job failed; it is tried again");
      failing.add(job);
    },
  };
}
