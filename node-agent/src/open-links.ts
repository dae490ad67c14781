/** Opens the links to the routers: what this node reports to them, and how it follows their wishes. */
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import { asId } from "@weiche/shared/ids.ts";
import { version } from "@weiche/shared/program/version.ts";
import type { Core } from "./core.ts";
import type { MachineSource } from "./host/machine-telemetry.ts";
import { createLinkEvents } from "./link-events.ts";
import { withQuestions } from "./links/router-questions.ts";
import { RouterLinks } from "./links/router-links.ts";
import type { Maintenance } from "./maintenance.ts";
import type { UsageParts } from "./open-usage.ts";
import type { Requests } from "./open-requests.ts";
import type { SlotParts } from "./open-slots.ts";
import type { Telemetry } from "./telemetry.ts";

export interface LinkedParts {
  readonly usage: UsageParts;
  readonly slots: SlotParts["slots"];
  readonly requests: Requests;
  readonly telemetry: Telemetry;
  readonly machine: MachineSource;
  readonly maintenance: Maintenance;
  /** Absent: plain connections, to routers on this host. */
  readonly tls: TlsFiles | undefined;
}

export function openLinks(core: Core, parts: LinkedParts): RouterLinks {
  const { usage, slots, requests, telemetry, machine, maintenance, tls } = parts;
  const { config, loopClock, random, log, metrics, resolve, life, bootId, opened } = core;
  const events = createLinkEvents(log, metrics);
  const links = new RouterLinks({
    ...{ random, resolve, events },
    clock: loopClock,
    tls,
    routers: config.routers,
    hello: {
      node: config.node,
      bootId,
      agentVersion: version,
      slots: config.slots.map(({ name, engines }) => ({ name, models: engines.map(({ model }) => model) })),
    },
    load: () => ({
      slots: slots.views(),
      engines: telemetry.engines,
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
    onDesiredState({ maintenance: wished, prewarmModels }) {
      maintenance.routerSays(wished);
      slots.setMaintenance(maintenance.on);
      for (const model of prewarmModels) slots.prewarm(asId(model));
    },
  });
  opened.defer(() => links.close());
  slots.onMove(() => links.reportSoon());
  return links;
}
