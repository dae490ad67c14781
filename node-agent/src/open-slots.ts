/** Opens the node's slots and their engines. */
import type { Core } from "./core.ts";
import { createEngineEvents, createSlotEvents } from "./metrics/engine-events.ts";
import { EngineRestarts } from "./metrics/engine-restarts.ts";
import { createEngineHost } from "./engines/engine-host.ts";
import { createSlotEngines, stopForgottenEngines } from "./slots/node-engines.ts";
import { beginSlotAtZero } from "./metrics/slot-metrics.ts";
import { EngineFailures } from "./slots/engine-failures.ts";
import { createSlots } from "./slots/slots.ts";
import { SwitchHistory } from "./slots/switch-history.ts";

export type OpenedSlots = Awaited<ReturnType<typeof openSlots>>;

const foreignEveryMs = 30_000;

export async function openSlots(core: Core, environment: NodeJS.ProcessEnv) {
  const { config, clock, log, metrics, models, gpuReader, job, opened } = core;
  const restarts = new EngineRestarts(metrics.engineRestarts, models);
  const failures = new EngineFailures(clock);
  const history = new SwitchHistory(clock);
  const events = createEngineEvents(log, metrics, restarts, failures);
  const host = opened.use(createEngineHost(config.stateDir, environment, clock, events));
  const { gone: forgotten } = await stopForgottenEngines(config.slots, host, events);
  const specs = config.slots.flatMap(({ engines }) => engines);
  const shared = { host, gpuReader, events, specs, forgotten };
  const inSlots = new Map(config.slots.map((slot) => [slot.name, createSlotEngines(slot, shared)]));
  for (const { engines } of inSlots.values()) opened.use(engines);
  const slots = createSlots({
    slots: config.slots,
    engines: ({ name }) => inSlots.get(name)!.engines,
    clock,
    events: createSlotEvents(log, metrics, restarts, failures, history),
  });
  for (const { name, engines } of config.slots)
    beginSlotAtZero(metrics, name, new Set(engines.map(({ model }) => model)));
  const lookForForeignProcesses = () =>
    Promise.all([...inSlots.values()].map(({ memory }) => memory.foreignProcesses()));
  const looking = job("foreign-processes", foreignEveryMs, lookForForeignProcesses);
  opened.defer(() => void looking[Symbol.asyncDispose]()); // Not awaited, so that a stop does not wait for nvidia-smi.
  return { slots, host, restarts, failures, history, events };
}
