/** Opens the links to the routers, over which the node sends reports and receives its desired state. */
import { join } from "node:path";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import { asId } from "@weiche/shared/ids.ts";
import { version } from "@weiche/shared/program/version.ts";
import type { Core } from "./core.ts";
import type { MachineSource } from "./host/machine-telemetry.ts";
import { createLinkEvents } from "./metrics/link-events.ts";
import { KnownRouters } from "./links/known-routers.ts";
import { withQuestions } from "./links/router-questions.ts";
import { RouterLinks } from "./links/router-links.ts";
import type { Maintenance } from "./slots/maintenance.ts";
import type { OpenedUsage } from "./open-usage.ts";
import { describeSlot } from "./links/router-link-codec.ts";
import type { OpenedRequests } from "./open-requests.ts";
import type { OpenedSlots } from "./open-slots.ts";
import type { Telemetry } from "./metrics/telemetry.ts";

interface LinksOptions {
  readonly usage: OpenedUsage;
  readonly slots: OpenedSlots["slots"];
  readonly history: OpenedSlots["history"];
  readonly failures: OpenedSlots["failures"];
  readonly requests: OpenedRequests;
  readonly telemetry: Telemetry;
  readonly machine: MachineSource;
  readonly maintenance: Maintenance;
  /** If undefined, plain connections to routers on this host. */
  readonly tls: TlsFiles | undefined;
}

/** Reading the age reads a record from the disk. */
const outboxAgeEveryMs = 2_000;

export function openLinks(core: Core, options: LinksOptions): RouterLinks {
  const { usage, slots, history, failures, requests, telemetry, machine, maintenance, tls } = options;
  const { config, clock, loopClock, random, log, metrics, resolve, life, bootId, job, opened } = core;
  const events = createLinkEvents(log, metrics);
  let oldestMs: number | undefined;
  const looking = job("outbox-age", outboxAgeEveryMs, async () => {
    oldestMs = await usage.outbox.oldestMs().catch(() => undefined);
  });
  opened.defer(() => void looking[Symbol.asyncDispose]()); // A stop does not wait for a disk that hangs.
  const links = new RouterLinks({
    ...{ random, resolve, events },
    clock: loopClock,
    tls,
    routers: config.routers,
    known: new KnownRouters(join(config.stateDir, "routers.json")),
    hello: {
      node: config.node,
      bootId,
      agentVersion: version,
      slots: config.slots.map(describeSlot),
    },
    load: () => ({
      slots: slots.views(),
      engines: telemetry.engines,
      past: { of: history.all, nowMs: clock.monotonicMs() },
      failures: { of: failures.all, nowMs: clock.monotonicMs() },
      outbox: { records: usage.outbox.depth, oldestMs: usage.outbox.depth === 0 ? undefined : oldestMs },
      host: telemetry.host,
      gpus: telemetry.gpus,
      machine: machine.machine,
      reading: machine.reading,
      maintenance: maintenance.on,
      admitting: life.ready && usage.outbox.admitting,
    }),
    usage: usage.delivery,
    answers: usage.unsettled,
    handle: withQuestions(requests.ingress.handle, {
      metrics: () => metrics.scrape.metrics(),
      requests: () => requests.ingress.requests(),
    }),
    onRules: (known) => requests.takeRules(known),
    onDesiredState({ maintenance: wished, prewarmModels, acknowledgedFailure }) {
      failures.acknowledge(acknowledgedFailure);
      maintenance.routerSays(wished);
      slots.setMaintenance(maintenance.on);
      for (const model of prewarmModels) slots.prewarm(asId(model));
    },
  });
  opened.defer(() => links.close());
  slots.onMove(() => links.reportSoon());
  return links;
}
