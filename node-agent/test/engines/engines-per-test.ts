/** For tests of engine processes: a state directory per test, its agents, and the usual time limits. */
import { afterEach, beforeEach } from "vitest";
import type { EngineSpec } from "../../src/engines/engine.ts";
import { procTable } from "../../src/engines/launchers/process-table.ts";
import {
  modelA,
  openHost,
  simulatedNvidiaSmi,
  temporaryState,
  type Host,
  type HostOptions,
} from "./engines-on-host.ts";

/** A signal that never aborts. */
export const never = new AbortController().signal;
/** Ignores the phases of a switch. */
export const quiet = () => {};

/** Runs an agent that activates model A and takes the `steps`. Returns the pid of the engine that it leaves behind. */
export async function pidLeftBy(host: Host, ...steps: ((host: Host) => Promise<unknown>)[]): Promise<number> {
  await host.engines.activate(modelA, never, quiet);
  for (const step of steps) await step(host);
  host.close();
  return (await host.handles.read())[0]!.pid!;
}

/** Call this once in a file. Every later test gets its own directory, and all processes that ran in it are stopped. */
export function statePerTest() {
  let state: Awaited<ReturnType<typeof temporaryState>>;
  const hosts: Host[] = [];
  beforeEach(async () => {
    state = await temporaryState();
  });
  afterEach(async () => {
    for (const host of hosts.splice(0)) host.close();
    await state[Symbol.asyncDispose]();
  });
  const open = (options: HostOptions) => {
    const host = openHost(state.directory, options);
    hosts.push(host);
    return host;
  };
  return {
    /** The hosts that the test has opened. */
    hosts,
    get directory() {
      return state.directory;
    },
    /** Opens an agent in the directory. It is closed after the test, if not before. */
    open,
    /** Opens an agent with these engines and default options. */
    openWith: (...engines: EngineSpec[]) => open({ engines }),
    /** Returns the living process groups that were started for this test. */
    engineGroups: async () => [...(await procTable.groupsWith(`WEICHE_ENGINE=${state.directory}/`)).keys()],
  };
}

/** Call this once in a file. Every later test gets a simulated GPU, which its hosts measure. */
export function gpuPerTest(state: ReturnType<typeof statePerTest>) {
  let gpu: Awaited<ReturnType<typeof simulatedNvidiaSmi>>;
  beforeEach(async () => {
    gpu = await simulatedNvidiaSmi(state.directory);
  });
  const set = (...usage: Parameters<typeof gpu.set>) => gpu.set(...usage);
  return {
    set,
    /** Sets the usage and takes a reading before the test continues, because a switch reuses a recent reading. */
    async setSeen(host: Host, ...usage: Parameters<typeof set>): Promise<void> {
      await set(...usage);
      await host.memory.freeBytes();
    },
    open: (engines: readonly EngineSpec[], more: Partial<HostOptions> = {}) =>
      state.open({ engines, gpus: [0], nvidiaSmi: gpu.path, ...more }),
  };
}
