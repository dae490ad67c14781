/** For tests of engine processes: a state directory per test, the agents' lives in it, and the patience that most have. */
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

/** A signal that never comes. */
export const never = new AbortController().signal;
/** Hears of a switch's phases and does nothing. */
export const quiet = () => {};

/** Lets an agent activate its engine of A, take the `steps` and end. Returns the pid of the engine that it leaves behind. */
export async function pidLeftBy(host: Host, ...steps: ((host: Host) => Promise<unknown>)[]): Promise<number> {
  await host.engines.activate(modelA, never, quiet);
  for (const step of steps) await step(host);
  host.close();
  return (await host.handles.read())[0]!.pid!;
}

/** To be called once in a file: every test that follows has its own directory, which goes with all that ran in it. */
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
    /** An agent's life in the directory; it is closed after the test, if not before. */
    open,
    /** The same with these engines, and nothing else set. */
    openWith: (...engines: EngineSpec[]) => open({ engines }),
    /** The process groups that live and were started for this test. */
    engineGroups: async () => [...(await procTable.groupsWith(`WEICHE_ENGINE=${state.directory}/`)).keys()],
  };
}

/** To be called once in a file: every test that follows has a simulated GPU, which its hosts measure. */
export function gpuPerTest(state: ReturnType<typeof statePerTest>) {
  let gpu: Awaited<ReturnType<typeof simulatedNvidiaSmi>>;
  beforeEach(async () => {
    gpu = await simulatedNvidiaSmi(state.directory);
  });
  const set = (...usage: Parameters<typeof gpu.set>) => gpu.set(...usage);
  return {
    set,
    /** A reading of a moment ago serves a switch: this one is taken before the test goes on. */
    async setSeen(host: Host, ...usage: Parameters<typeof set>): Promise<void> {
      await set(...usage);
      await host.memory.freeBytes();
    },
    open: (engines: readonly EngineSpec[], more: Partial<HostOptions> = {}) =>
      state.open({ engines, gpus: [0], nvidiaSmi: gpu.path, ...more }),
  };
}
