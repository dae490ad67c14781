/** For tests of engine processes: a state directory per test, the agents' lives in it, and the patience that most have. */
import { afterEach, beforeEach } from "vitest";
import type { EngineSpec } from "../../src/engines/engine.ts";
import { modelA, openHost, temporaryState, type Host, type HostOptions } from "./engines-on-host.ts";

/** A signal that never comes. */
export const never = new AbortController().signal;
/** Hears of a switch's phases and does nothing. */
export const quiet = () => {};

export interface StatePerTest {
  readonly directory: string;
  /** The hosts that the test has opened. */
  readonly hosts: readonly Host[];
  /** An agent's life in the directory; it is closed after the test, if not before. */
  open(options: HostOptions): Host;
  /** The same with these engines, and nothing else set. */
  readonly openWith: (...engines: EngineSpec[]) => Host;
}

/** Lets an agent activate its engine of A, take the `steps` and end. Returns the pid of the engine that it leaves behind. */
export async function pidLeftBy(host: Host, ...steps: ((host: Host) => Promise<unknown>)[]): Promise<number> {
  await host.engines.activate(modelA, never, quiet);
  for (const step of steps) await step(host);
  host.close();
  return (await host.handles.read())[0]!.pid!;
}

/** To be called once in a file: every test that follows has its own directory, which goes with all that ran in it. */
export function statePerTest(): StatePerTest {
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
    hosts,
    get directory() {
      return state.directory;
    },
    open,
    openWith: (...engines) => open({ engines }),
  };
}
