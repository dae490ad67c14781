/** Measures engines for `weiche-agent profile`. */
import { servedBy } from "./engines/engine.ts";
import { EngineConnections } from "./answer/engine-connections.ts";
import type { Core } from "./core.ts";
import { dialects } from "./engines/dialects/all.ts";
import type { EngineLife } from "./engines/engine-life.ts";
import type { OpenedSlots } from "./open-slots.ts";
import { readGpuModels } from "./host/gpu.ts";
import type { SlotConfig } from "./config/config.ts";
import { version as agent } from "@weiche/shared/program/version.ts";
import { profileEngine } from "./profile/engine-profile.ts";
import { ProfileRun } from "./profile/profile-run.ts";

/** A prompt of the profile is short, so an engine that is silent for longer is broken. */
const silenceMsMax = 60_000;

export function openProfile({ config, clock, opened }: Core, { slots, history }: OpenedSlots, life: EngineLife) {
  const connections = opened.use(new EngineConnections(clock, life, silenceMsMax));
  const run = new ProfileRun(async (model, signal, events) => {
    const slot = config.slots.find(({ engines }) => engines.some((engine) => servedBy(engine).includes(model)))!;
    const view = () => slots.views().find(({ name }) => name === slot.name)!;
    const { activeModel: before } = view();
    const asleep = () => view().sleepers.map((sleeper) => sleeper.model);
    try {
      const options = { slots, connections, dialects, clock, signal, config: slot, history, asleep, ...events };
      const profile = await profileEngine(options, model);
      return { ...profile, gpus: await gpusOf(slot), agent, measured: new Date(clock.now()).toISOString() };
    } finally {
      if (before !== undefined) slots.prewarm(before, slot.name);
    }
  });
  opened.defer(() => run.stop());
  return run;
}

async function gpusOf({ gpus }: SlotConfig): Promise<string[]> {
  const known = await readGpuModels().catch(() => []);
  return known.filter(({ index }) => gpus.includes(index)).map(({ name }) => name);
}
