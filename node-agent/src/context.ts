/** Creates an agent from its parts, in the order in which they depend on each other. They close in reverse order. */
import { within } from "@weiche/shared/time/clock.ts";
import { lockDirectory } from "@weiche/shared/files/directory-lock.ts";
import { formatListen } from "@weiche/shared/http/listen.ts";
import type { Log } from "@weiche/shared/program/log.ts";
import { openTlsFiles } from "@weiche/shared/http/tls-files.ts";
import { tellEnding } from "@weiche/shared/program/certificate-expiry.ts";
import { openOpsServer } from "@weiche/shared/program/ops-server.ts";
import type { AgentConfig } from "./config/config.ts";
import { createCore, type AgentOptions } from "./core.ts";
import { dialects } from "./engines/dialects/all.ts";
import { EngineLife } from "./engines/engine-life.ts";
import { publishGauges } from "./metrics/gauges.ts";
import { createLinkEvents } from "./metrics/link-events.ts";
import { Maintenance } from "./slots/maintenance.ts";
import { openAdmin } from "./open-admin.ts";
import { openProfile } from "./open-profile.ts";
import { openLinks } from "./open-links.ts";
import { openMachine } from "./open-machine.ts";
import { openUsage } from "./open-usage.ts";
import { openRequests } from "./open-requests.ts";
import { openSlots } from "./open-slots.ts";
import { measureEveryMs, Telemetry } from "./metrics/telemetry.ts";

interface Agent {
  readonly log: Log;
  readonly listen: Readonly<Record<"ops", string>>;
  /**
   * Admits no more requests, lets running answers end, sends the usage that it can, and closes. Engines keep running
   * unless `stopEngines` is set.
   */
  close(options: { readonly stopEngines: boolean }): Promise<void>;
}

/**
 * Time for the slots to find running engines before the first report, so that routers do not start these models on
 * other nodes. A slower slot delays only its own requests.
 */
const adoptMsMax = 500;

/** Time for the routers to commit the last records. The next agent sends the rest. */
const flushMsMax = 2_000;

/** `environment`: the agent's environment. Engines get a part of it. */
export async function createAgent(
  config: AgentConfig,
  environment: NodeJS.ProcessEnv,
  options: Partial<AgentOptions> = {},
): Promise<Agent> {
  await using opened = new AsyncDisposableStack();
  const core = createCore(config, options, opened);
  const { clock, loopClock, log, metrics, job, gpuReader, life } = core;
  opened.use(lockDirectory(config.stateDir));
  const maintenance = new Maintenance(config.stateDir);
  const linkEvents = createLinkEvents(log, metrics);
  const ops = opened.use(
    await openOpsServer({
      config: config.ops,
      metrics: metrics.scrape,
      ready: () => life.ready,
      clock,
      events: linkEvents,
    }),
  );
  const tls = config.tls && opened.use(openTlsFiles(config.tls, clock, linkEvents));
  const usage = await openUsage(core);
  const engines = await openSlots(core, environment);
  const { slots } = engines;
  const engineLife = new EngineLife(loopClock);
  const telemetry = new Telemetry({ gpuReader, dialects, life: engineLife, awake: () => slots.awake() });
  const measuring = job("measurements", measureEveryMs, () => telemetry.measure(), { atStart: true });
  opened.defer(() => void measuring[Symbol.asyncDispose]()); // A stop does not wait for nvidia-smi.
  const machine = openMachine(core, environment);
  const requests = openRequests(core, usage, engines, engineLife);
  const links = openLinks(core, {
    usage,
    slots,
    history: engines.history,
    failures: engines.failures,
    requests,
    telemetry,
    machine,
    maintenance,
    tls,
  });
  const certificates = { links: tls, ops: ops.tls };
  tellEnding(certificates, clock.now(), linkEvents);
  const gauged = { ...usage, slots, ingress: requests.ingress, links, telemetry, machine, maintenance, certificates };
  metrics.scrape.onScrape(() => publishGauges(metrics, gauged));

  slots.setMaintenance(maintenance.on);
  const adopted = slots.readopt();
  const profile = openProfile(core, engines, engineLife);
  await openAdmin(core, { ...usage, engines, telemetry, machine, links, profile, maintenance, certificates });
  await within(clock, adoptMsMax, adopted);
  life.ready = true;
  links.reportSoon();
  machine.start();

  const closing = opened.move();
  return {
    log,
    listen: { ops: formatListen(ops.address) },
    async close({ stopEngines }) {
      life.ready = false;
      links.reportSoon();
      await Promise.all([
        links.drain(config.shutdownMsMax),
        requests.ingress.stop(config.shutdownMsMax),
        slots.close({ stopEngines, deadlineMs: config.shutdownMsMax }),
      ]);
      await usage.delivery.flush(flushMsMax);
      await closing.disposeAsync();
    },
  };
}
