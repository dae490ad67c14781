/** Everything an agent is made of, in the order it is made; it is closed in reverse. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { systemClock, within } from "@weiche/shared/time/clock.ts";
import { LoopClock } from "@weiche/shared/time/loop-clock.ts";
import { lockDirectory } from "@weiche/shared/files/directory-lock.ts";
import { uuidv7, type ModelId } from "@weiche/shared/ids.ts";
import { formatListen } from "@weiche/shared/http/listen.ts";
import { createLog, type Log } from "@weiche/shared/program/log.ts";
import { returnMemory } from "@weiche/shared/program/memory-return.ts";
import { openOpsServer } from "@weiche/shared/program/ops-server.ts";
import { openTlsFiles } from "@weiche/shared/http/tls-files.ts";
import { openAdminApi } from "./status/admin-api.ts";
import { engineStatuses } from "./status/engine-status.ts";
import { slotStatus } from "./status/status.ts";
import type { AgentConfig } from "./config/config.ts";
import { createEngineEvents, createSlotEvents } from "./engine-events.ts";
import { EngineRestarts } from "./engine-restarts.ts";
import { dialects } from "./engines/dialects/all.ts";
import { EngineLife } from "./engines/engine-life.ts";
import { EngineWindows } from "./engines/engine-windows.ts";
import { createSlotEngines, stopForgottenEngines } from "./node-engines.ts";
import type { SlotMemory } from "./engines/slot-memory.ts";
import { createEngineHost } from "./engines/engine-host.ts";
import { Ingress } from "./exchange/ingress.ts";
import { createIngressEvents, createLinkEvents, createUsageEvents } from "./link-events.ts";
import { Maintenance } from "./maintenance.ts";
import { createMetrics } from "./metrics.ts";
import { createGpuReader } from "./host/gpu.ts";
import { lookupAll } from "./links/router-addresses.ts";
import { RouterLinks } from "./links/router-links.ts";
import { SlotFailures } from "./slot-failures.ts";
import { createSlots } from "./slots/slots.ts";
import { Telemetry } from "./telemetry.ts";
import { UsageDelivery } from "./outbox/delivery.ts";
import { UnsettledAnswers } from "./outbox/unsettled-answers.ts";
import { openOutboxDirectory } from "./outbox/outbox-disk.ts";
import { openOutbox } from "./outbox/outbox.ts";

export interface Agent {
  readonly log: Log;
  readonly listen: Readonly<Record<"ops", string>>;
  /** Takes nothing new, lets running answers end, sends what usage it can, and closes. Engines stay unless told otherwise. */
  close(options: { readonly stopEngines: boolean }): Promise<void>;
}

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8")) as {
  version: string;
};

/**
 * How long a start waits to know what every slot has active, so that no router looks elsewhere for an engine that is found
 * in a moment. A slot that takes longer keeps its own requests waiting, and no others.
 */
const adoptMsMax = 500;

/** What the routers are given to commit the last records; what they have not by then, the next agent sends. */
const flushMsMax = 2_000;

export async function createAgent(config: AgentConfig, environment: NodeJS.ProcessEnv): Promise<Agent> {
  await using opened = new AsyncDisposableStack();
  const clock = systemClock;
  const log = createLog("node-agent", config.logLevel);
  const metrics = createMetrics();
  const usageEvents = createUsageEvents(log, metrics);
  const models = new Set(config.slots.flatMap(({ engines }) => engines.map(({ model }) => model)));
  const restarts = new EngineRestarts(metrics.engineRestarts, models);
  const failures = new SlotFailures();
  const engineEvents = createEngineEvents(log, metrics, restarts, failures);
  const linkEvents = createLinkEvents(log, metrics);
  const bootId = uuidv7(clock);
  let ready = false;

  opened.use(lockDirectory(config.stateDir));
  const maintenance = new Maintenance(config.stateDir);
  const scraped = {
    contentType: metrics.registry.contentType,
    async metrics() {
      if (ready) await telemetry.publish();
      return metrics.registry.metrics();
    },
  };
  const ops = opened.use(await openOpsServer(config.opsListen, scraped, () => ready, clock));
  const outbox = opened.use(
    await openOutbox(await openOutboxDirectory(join(config.stateDir, "outbox")), clock, usageEvents),
  );
  const unsettled = opened.use(
    new UnsettledAnswers({
      clock,
      append: (record) => outbox.append(record),
      hasDataSession: (routerId) => links.hasDataSession(routerId),
      events: usageEvents,
    }),
  );
  const delivery = opened.use(new UsageDelivery(outbox, clock, usageEvents));

  const gpuReader = createGpuReader({ clock });
  const host = opened.use(createEngineHost(config.stateDir, environment, clock, { ...engineEvents, ...usageEvents }));
  const { gone: forgotten } = await stopForgottenEngines(config.slots, host, engineEvents);
  const specs = config.slots.flatMap(({ engines }) => engines);
  const engineParts = { host, gpuReader, events: engineEvents, specs, forgotten };
  const memories: SlotMemory[] = [];
  const slots = createSlots({
    slots: config.slots,
    engines(slot) {
      const { engines, memory } = createSlotEngines(slot, engineParts);
      memories.push(memory);
      return opened.use(engines);
    },
    clock,
    events: createSlotEvents(log, metrics, restarts, failures),
  });

  let rules: ReadonlyMap<ModelId, ModelRules> = new Map();
  const loopClock = opened.use(new LoopClock(clock));
  const life = new EngineLife(loopClock);
  const windows = new EngineWindows(engineEvents);
  const compareWindows = () => windows.compare(slots.awake(), rules);
  const ingress = opened.use(
    new Ingress({
      admissions: slots,
      rules: (model) => rules.get(model),
      outbox,
      unsettled,
      dialects,
      clock,
      life,
      requestMsMax: config.requestMsMax,
      events: createIngressEvents(log, metrics, models),
    }),
  );
  opened.use(returnMemory(clock, () => ingress.running));
  const tls = config.tls && opened.use(openTlsFiles(config.tls, clock, linkEvents));
  const links = new RouterLinks({
    clock: loopClock,
    random: Math.random,
    resolve: lookupAll,
    ...(tls ? { tls } : {}),
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
      ...(telemetry.host ? { host: telemetry.host } : {}),
      ...(telemetry.gpus ? { gpus: telemetry.gpus } : {}),
      maintenance: maintenance.on,
      admitting: ready && outbox.admitting,
    }),
    usage: delivery,
    answers: unsettled,
    handle: ingress.handle,
    onRules(known) {
      rules = new Map(known.map((model) => [model.id, model]));
      compareWindows();
    },
    onDesiredState({ maintenance: wished, prewarmModels }) {
      maintenance.routerSays(wished);
      slots.setMaintenance(maintenance.on);
      for (const model of prewarmModels) slots.prewarm(model);
      links.reportSoon();
    },
    events: linkEvents,
  });
  opened.defer(() => links.close());
  const telemetry: Telemetry = opened.use(
    new Telemetry({
      clock,
      metrics,
      gpuReader,
      dialects,
      life,
      outbox,
      slots: () => slots.views(),
      routers: () => links.states(),
      awake: () => slots.awake(),
      lookForForeignProcesses: async () =>
        void (await Promise.all(memories.map((memory) => memory.foreignProcesses()))),
    }),
  );
  slots.onMove(() => {
    links.reportSoon();
    compareWindows();
  });

  slots.setMaintenance(maintenance.on);
  const adopted = slots.readopt();
  opened.use(
    await openAdminApi(join(config.stateDir, "admin.sock"), {
      async status() {
        const oldestMs = await outbox.oldestMs();
        return {
          node: config.node,
          version,
          maintenance: maintenance.on,
          admitting: ready && outbox.admitting,
          slots: slots.views().map((view) => slotStatus(view, failures.of(view.name))),
          engines: await engineStatuses({
            ...{ ...host, gpuReader, restarts },
            slots: () => slots.views(),
            measured: (slot) => telemetry.engines.get(slot),
          }),
          routers: links.states(),
          outbox: { records: outbox.depth, ...(oldestMs === undefined ? {} : { oldestAgeSeconds: oldestMs / 1000 }) },
          ...(telemetry.host ? { host: telemetry.host } : {}),
          ...(telemetry.gpus ? { gpus: telemetry.gpus } : {}),
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
    }),
  );
  await within(clock, adoptMsMax, adopted);
  ready = true;
  links.reportSoon();

  const closing = opened.move();
  return {
    log,
    listen: { ops: formatListen(ops.address) },
    async close({ stopEngines }) {
      ready = false;
      links.reportSoon();
      await Promise.all([
        links.drain(config.shutdownMsMax),
        ingress.stop(config.shutdownMsMax),
        slots.close({ stopEngines, deadlineMs: config.shutdownMsMax }),
      ]);
      await delivery.flush(flushMsMax);
      await closing.disposeAsync();
    },
  };
}
