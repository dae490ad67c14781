/** Opens the admin socket, through which `weiche-agent` shows and controls the node. */
import { join } from "node:path";
import { certificateFiles, type CertificatesInUse } from "@weiche/shared/program/certificate-expiry.ts";
import { version } from "@weiche/shared/program/version.ts";
import type { Core } from "./core.ts";
import type { MachineSource } from "./host/machine-telemetry.ts";
import type { RouterLinks } from "./links/router-links.ts";
import type { Maintenance } from "./slots/maintenance.ts";
import type { OpenedSlots } from "./open-slots.ts";
import type { Outbox } from "./outbox/outbox.ts";
import { LogLevelSwitch } from "@weiche/shared/program/log-level.ts";
import { openAdminApi } from "./status/admin-api.ts";
import { engineStatuses } from "./status/engine-status.ts";
import { slotStatus } from "./status/status.ts";
import type { Telemetry } from "./metrics/telemetry.ts";

interface AdminOptions {
  readonly outbox: Outbox;
  readonly engines: OpenedSlots;
  readonly telemetry: Telemetry;
  readonly machine: MachineSource;
  readonly links: RouterLinks;
  readonly maintenance: Maintenance;
  readonly certificates: CertificatesInUse<string>;
}

export async function openAdmin(core: Core, options: AdminOptions) {
  const { outbox, engines, telemetry, machine, links, maintenance, certificates } = options;
  const { config, clock, models, gpuReader, life, log, opened } = core;
  const { slots, host, restarts, failures } = engines;
  const control: Parameters<typeof openAdminApi>[1] = {
    async status() {
      const oldestMs = await outbox.oldestMs();
      return {
        node: config.node,
        version,
        maintenance: maintenance.on,
        admitting: life.ready && outbox.admitting,
        slots: slots.views().map((view) => slotStatus(view, failures.of(view.name))),
        engines: await engineStatuses({
          ...{ ...host, gpuReader, restarts },
          slots: () => slots.views(),
          measured: (slot) => telemetry.engines.get(slot),
        }),
        routers: links.states(),
        outbox: { records: outbox.depth, oldestAgeSeconds: oldestMs && oldestMs / 1000 },
        host: telemetry.host,
        gpus: telemetry.gpus,
        machine: machine.machine,
        reading: machine.reading,
        certificates: certificateFiles(certificates, clock.now()),
      };
    },
    prewarm(model) {
      if (models.has(model)) slots.prewarm(model);
      return models.has(model);
    },
    setMaintenance(on) {
      maintenance.operatorSays(on);
      slots.setMaintenance(maintenance.on);
      links.reportSoon();
    },
    logLevel: opened.use(new LogLevelSwitch(log, clock)),
  };
  opened.use(await openAdminApi(join(config.stateDir, "admin.sock"), control));
}
