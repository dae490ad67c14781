/** Opens the telemetry of the machine: its hardware and its load. */
import { join } from "node:path";
import type { Log } from "@weiche/shared/program/log.ts";
import { beginAtZero } from "@weiche/shared/program/metric-registry.ts";
import type { AgentConfig } from "./config/config.ts";
import type { Core } from "./core.ts";
import type { KeptPath } from "./host/file-systems.ts";
import {
  MachineTelemetry,
  readEveryMs,
  takeStockAgainMs,
  type MachineTelemetryEvents,
} from "./host/machine-telemetry.ts";
import type { Metrics } from "./metrics/metrics.ts";

export function openMachine(core: Core, environment: NodeJS.ProcessEnv) {
  const { config, clock, log, metrics, job, measuresMachine, opened } = core;
  const events = createMachineEvents(log, metrics);
  const parts = { clock, kept: keptPaths(config), path: environment["PATH"], events };
  const telemetry = opened.use(new MachineTelemetry(parts));
  return Object.assign(telemetry, {
    /** Begins the measurements. */
    start(): void {
      if (!measuresMachine) return;
      const jobs = [
        job("machine", readEveryMs, () => telemetry.read(), { atStart: true }),
        job("inventory", takeStockAgainMs, () => telemetry.takeStock(), { atStart: true }),
      ];
      for (const each of jobs) opened.defer(() => void each[Symbol.asyncDispose]()); // A stop does not wait for a thread.
    },
  });
}

function keptPaths({ modelPaths, stateDir }: AgentConfig): readonly KeptPath[] {
  return [
    ...modelPaths.map((path): KeptPath => ({ path, holds: "models" })),
    { path: stateDir, holds: "state" },
    { path: join(stateDir, "outbox"), holds: "outbox" },
  ];
}

function createMachineEvents(log: Log, metrics: Metrics): MachineTelemetryEvents {
  beginAtZero(metrics.machine.threadsLost, { thread: ["inventory", "reading"] });
  return {
    machineThreadLost(thread, reason) {
      metrics.machine.threadsLost.inc({ thread });
      log.warn({ thread, reason }, "a thread that measures the host was lost; it is started again");
    },
  };
}
