/** Opens the admin socket, through which `weiche-agent` shows and controls the node. */
import { join } from "node:path";
import { certificateFiles, type CertificatesInUse } from "@weiche/shared/program/certificate-expiry.ts";
import { version } from "@weiche/shared/program/version.ts";
import type { Core } from "./core.ts";
import type { MachineSource } from "./host/machine-telemetry.ts";
import type { RouterLinks } from "./links/router-links.ts";
import type { Maintenance } from "./slots/maintenance.ts";
import type { OpenedSlots } from "./open-slots.ts";
import type { ProfileRun } from "./profile/profile-run.ts";
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
  readonly profile: ProfileRun;
  readonly maintenance: Maintenance;
  readonly certificates: CertificatesInUse<string>;
}

export async function openAdmin(core: Core, options: AdminOptions) {
  const { outbox, engines, telemetry, machine, links, profile, maintenance, certificates } = options;
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
        slots: slots.views().map((view) => slotStatus(view, failures.all.get(view.name)?.at(-1))),
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
    beginProfile(model, whileServing) {
      if (!slots.dialectsOf(model).length) return `no slot of this node serves ${JSON.stringify(model)}`;
      if (maintenance.on) return "the node is in maintenance and starts nothing: turn maintenance off";
      const busy = slots.views().reduce((sum, { running, waiting }) => sum + running + waiting, 0);
      if (busy > 0 && !whileServing)
        return `${busy} ${busy === 1 ? "request runs or waits" : "requests run or wait"} on this node and would be slowed down: try again when nothing runs, or add --while-serving`;
      return profile.begin(model) ? undefined : "another profile is being measured";
    },
    profile: () => profile.state,
    stopProfile: () => profile.stop(),
    logLevel: opened.use(new LogLevelSwitch(log, clock)),
  };
  opened.use(await openAdminApi(join(config.stateDir, "admin.sock"), control));
}
