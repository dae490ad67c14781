/**
 * Weiche as in production: router with its embedded database, keys, limits and metering, and one or more agents behind
 * mutual TLS; each request comes with another account's key. Roles: `router`, `database`, `agent`.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Cluster, until } from "../cluster/cluster.ts";
import { catalogueOf } from "../cluster/sim-node.ts";
import { insertAccounts, postmasterOf } from "../load/accounts.ts";
import type { Program, RunningProgram, Upstream } from "./program.ts";

export interface WeicheOptions {
  readonly tls: boolean;
  readonly agents?: number;
  /** A package allows 150 requests a minute and 20 at once. */
  readonly accounts?: number;
  /** The longest request, above the 600 s of production for what lasts longer. */
  readonly requestSeconds?: number;
}

const root = join(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

export function weiche(name: string, what: string, options: WeicheOptions): Program {
  const start = (upstream: Upstream) => startWeiche(upstream, options);
  // The router's with the client, the agent's with the engine.
  return { name, what, connectionsPerStream: 1, missing: () => undefined, start };
}

export async function startWeiche(upstream: Upstream, options: WeicheOptions): Promise<RunningProgram> {
  const { tls, agents = 1, accounts = 4_000, requestSeconds = 600 } = options;
  const nodes = Array.from({ length: agents }, (_, n) => `node-${n + 1}`);
  const files = tls ? makeCertificates(join(upstream.directory, "certificates"), nodes) : undefined;
  const engine = {
    model: upstream.model,
    dialect: "vllm",
    launcher: "external",
    url: `http://127.0.0.1:${upstream.port}`,
    maxConcurrent: 20_000,
  };
  const catalogue = catalogueOf(upstream.model).map((entry) => ({ ...entry, contextTokens: 1_000_000 }));
  const cluster = await Cluster.start({
    catalogue,
    router: { requestSeconds, ...(files && { nodes: { tls: files("router-localhost") } }) },
    agents: Object.fromEntries(
      nodes.map((node) => [
        node,
        { requestSeconds, ...(files && { tls: files(`node-${node}`) }), slots: [{ name: "a", engines: [engine] }] },
      ]),
    ),
  });
  // All of them: an engine that nobody has started is asked only when the others are full.
  for (const node of nodes) await cluster.weiche("prewarm", upstream.model, "--node", node);
  const isActive = (node: NodeLine) => node.slots.every(({ active }) => active === upstream.model);
  await until("every engine to be active", async () => ((await cluster.weiche("nodes")) as NodeLine[]).every(isActive));
  const keys = await insertAccounts(cluster, accounts);
  const [first, ...others] = [...cluster.agents.values()].map(({ pid }) => pid) as [number, ...number[]];
  return {
    port: Number(cluster.router.listen["api"]!.split(":").at(-1)),
    keys,
    processes: {
      router: cluster.router.pid,
      database: postmasterOf(cluster).pid,
      agent: first,
      ...Object.fromEntries(others.map((pid, n) => [`agent ${n + 2}`, pid])),
    },
    version,
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}

interface NodeLine {
  readonly slots: readonly { readonly active?: string }[];
}

/** As an operator makes them. Returns the paths of one certificate by its file's name. */
export function makeCertificates(directory: string, nodes: readonly string[]) {
  const make = (...args: string[]) =>
    execFileSync(join(root, "deploy/make-certificates.sh"), [directory, ...args], { stdio: "pipe" });
  make("ca");
  make("router", "localhost", "127.0.0.1");
  for (const node of nodes) make("node", node);
  return (name: string) => {
    const path = join(directory, name);
    return { cert: `${path}.pem`, key: `${path}.key`, ca: join(directory, "ca.pem") };
  };
}
