/** The events of nodes. One function per event writes the log line and changes the metric, so that both agree. */
import type { FewLines } from "@weiche/shared/program/few-lines.ts";
import { describeError, type Log } from "@weiche/shared/program/log.ts";
import { endingMessage, type CertificateEvents } from "@weiche/shared/program/certificate-expiry.ts";
import { beginAtZero } from "@weiche/shared/program/metric-registry.ts";
import type { TlsFilesEvents } from "@weiche/shared/http/tls-files.ts";
import type { LiveRouterEvents } from "./db/live-routers.ts";
import type { DataConnectionsEvents } from "./nodes/data-connections.ts";
import type { NodeLinkEvents } from "./nodes/node-link-session.ts";
import type { OutcomeEvents } from "./nodes/outcomes/outcomes.ts";
import type { Metrics } from "./metrics.ts";

/** The most models that one log line names. */
const modelsLoggedMax = 20;

/** Logs events that a node or a stranger can cause repeatedly through `few`, so that neither can fill the log. */
export function createNodeEvents(
  log: Log,
  metrics: Metrics,
  few: FewLines,
): NodeLinkEvents & OutcomeEvents & DataConnectionsEvents & TlsFilesEvents & CertificateEvents & LiveRouterEvents {
  return {
    nodeLinked(node, bootId, agentVersion) {
      beginAtZero(metrics.hostingIgnored, { node: [node] });
      beginAtZero(metrics.attemptsFailed, { node: [node] });
      few.say("linked", node, (left) => log.info({ node, bootId, agentVersion, ...left }, "node linked"));
    },
    attemptFailed: ({ node }) => metrics.attemptsFailed.inc({ node }),
    placeTroubled({ node, slot, model }, { kind, share }) {
      const what = "requests for this model fail here, or are slow: other slots are used first";
      few.say("trouble", node, (left) => log.warn({ node, slot, model, kind, share, ...left }, what));
    },
    placeTrusted({ node, slot, model }) {
      const what = "requests for this model are served here again";
      few.say("trusted", node, (left) => log.info({ node, slot, model, ...left }, what));
    },
    nodeUnlinked(node, reason) {
      few.say("unlinked", node, (left) => log.info({ node, reason, ...left }, "node unlinked"));
    },
    nodeRefused(reason, detail, from) {
      metrics.nodesRefused.inc({ reason });
      few.say("link refused", from, (left) => log.warn({ reason, detail, from, ...left }, "a node's link was refused"));
    },
    hostingIgnored(node, models) {
      metrics.hostingIgnored.inc({ node }, models.length);
      const some = { models: models.slice(0, modelsLoggedMax), count: models.length };
      few.say("hosting ignored", node, (left) =>
        log.warn({ node, ...some, ...left }, "a node claims models that the catalogue assigns to other nodes: ignored"),
      );
    },
    reportUnreadable(node, slots) {
      few.say("report", node, (left) =>
        log.warn({ node, slots, ...left }, "a report has slots in unknown states; is the agent newer than the router?"),
      );
    },
    usageRejected(node, rejected) {
      const sample = { records: rejected.length, rejected: rejected[0] };
      few.say("usage rejected", node, (left) =>
        log.error({ node, ...sample, ...left }, "usage records are unreadable and are set aside"),
      );
    },
    usageNotRecorded(node, records, error) {
      few.say("usage not recorded", node, (left) =>
        log.warn(
          { node, records, ...describeError(error), ...left },
          "usage not recorded yet; the node sends it again",
        ),
      );
    },
    otherRouters(count, wereFirst) {
      const routers = { routers: count + 1 };
      if (count === 0) log.info("no other router uses this database any more");
      else if (wereFirst)
        log.warn(
          routers,
          "other routers use this database: limits per minute and of parallel requests apply per router",
        );
      else log.info(routers, "other routers of this database have started or ended");
    },
    dataConnectionUp(node, connections) {
      log.debug({ node, connections }, "data connection up");
    },
    dataConnectionDown(node, connections) {
      log.debug({ node, connections }, "data connection down");
    },
    dataConnectionRefused(reason, detail, from) {
      metrics.nodesRefused.inc({ reason });
      few.say("data refused", from, (left) =>
        log.warn({ reason, detail, from, ...left }, "a data connection was refused"),
      );
    },
    tlsReloaded() {
      log.info("certificate read again");
    },
    tlsReloadFailed(reason) {
      log.error({ reason }, "the new certificate cannot be used; the previous one stays in use");
    },
    certificateEnding: (file) => log.warn(file, endingMessage),
  };
}
