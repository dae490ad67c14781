/** Creates the parts that all engines of this host share: launchers, dialects, stored handles, log files. */
import { join } from "node:path";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { dialects } from "./dialects/all.ts";
import { createEngineLogs, type EngineLogEvents } from "./log/engine-log.ts";
import { createHandleStore, type HandleStoreEvents } from "./handle-store.ts";
import { createExternalLauncher } from "./launchers/external.ts";
import { createLoopbackPorts } from "./launchers/loopback-ports.ts";
import { createProcessTable } from "./launchers/process-table.ts";
import { ProcessLauncher } from "./launchers/process.ts";
import { createSystemdLauncher, runCommand } from "./launchers/systemd.ts";
import { defaultEngineLimits, type EngineHost } from "./running-engine.ts";

/** `environment`: the agent's environment. Engines inherit an allow-listed part of it. */
export function createEngineHost(
  stateDir: string,
  environment: NodeJS.ProcessEnv,
  clock: Clock,
  events: HandleStoreEvents & EngineLogEvents,
): EngineHost & Disposable {
  const logs = createEngineLogs({ directory: join(stateDir, "logs"), clock, events });
  const processes = createProcessTable(process.platform);
  const parts = { stateDir, clock, processes, ports: createLoopbackPorts() };
  return {
    launchers: {
      process: new ProcessLauncher({ ...parts, environment, nodePath: process.execPath, logs }),
      systemd: createSystemdLauncher({ ...parts, runCommand }),
      external: createExternalLauncher(),
    },
    dialects,
    handles: createHandleStore(join(stateDir, "engines"), events),
    clock,
    limits: defaultEngineLimits,
    [Symbol.dispose]: () => logs[Symbol.dispose](),
  };
}
