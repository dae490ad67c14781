/** `weiche` with the limits of accounts in a separate store, as several routers share them. Adds the role `store`. */
import { freePort } from "@weiche/node-agent/src/engines/launchers/loopback-ports.ts";
import { findProgram } from "@weiche/shared/testing/needs.ts";
import { startChild, type Child } from "./child.ts";
import type { Program } from "./program.ts";
import { startWeiche } from "./weiche.ts";

export const weicheStore: Program = {
  name: "weiche-store",
  what: "weiche with the limits of accounts in a separate Valkey (or Redis), as several routers share them: the difference is the cost of the store",
  scenarios: ["json-64", "first-byte"],
  connectionsPerStream: 1,
  missing: () =>
    storeProgram() === undefined ? "not installed (apt-get install valkey-server or redis-server)" : undefined,
  async start(upstream) {
    await using opened = new AsyncDisposableStack();
    const store = opened.use(await startStore(upstream.directory));
    const running = opened.use(await startWeiche(upstream, { tls: true, store: `valkey://127.0.0.1:${store.port}` }));
    const closing = opened.move();
    return {
      ...running,
      processes: { ...running.processes, store: store.pid },
      [Symbol.asyncDispose]: () => closing.disposeAsync(),
    };
  },
};

function storeProgram(): string | undefined {
  return findProgram("valkey-server");
}

/** Starts a store with the settings of docs/install.md. */
async function startStore(directory: string): Promise<Child> {
  const port = await freePort();
  const settings = ["--bind", "127.0.0.1", "--port", String(port), "--save", "", "--maxmemory-policy", "noeviction"];
  return await startChild(storeProgram()!, settings, port, directory);
}
