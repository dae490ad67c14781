/** For tests of engine processes: a state directory per test, the agents' lives in it, and the patience that most have. */
import { afterEach, beforeEach } from "vitest";
import { openHost, temporaryState, type Host, type HostOptions } from "./engines-on-host.ts";

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
  return {
    hosts,
    get directory() {
      return state.directory;
    },
    open(options) {
      const host = openHost(state.directory, options);
      hosts.push(host);
      return host;
    },
  };
}
