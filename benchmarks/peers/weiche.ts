/**
 * Weiche as in production: a router with its embedded database, keys, limits and metering, and agents over mutual TLS. The
 * requests use the keys of many accounts in turn. Roles are `router`, `database`, `agent`, then `router 2`, `agent 2`, ….
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Cluster, until, type ClusterOptions } from "../../e2e/cluster/cluster.ts";
import { readSamples, seriesOf } from "../../e2e/cluster/metrics-text.ts";
import { RouterGroup } from "../../e2e/cluster/router-group.ts";
import { catalogueOf } from "../../e2e/cluster/sim-node.ts";
import { postmasterOf } from "../../e2e/cluster/usage-dump.ts";
import { insertAccounts } from "../load/accounts.ts";
import type { Program, RunningProgram, Upstream } from "./program.ts";

interface WeicheOptions {
  readonly tls: boolean;
  readonly agents?: number;
  /** The address of a limit store. If undefined, the router counts the limits alone. */
  readonly store?: string;
  /** The number of routers that share the database. Defaults to one. */
  readonly routers?: number;
  /** The longest request. Defaults to 600, as in production. */
  readonly requestSeconds?: number;
}

/** Many accounts are needed, because a package allows only 150 requests a minute and 20 at once. */
const accounts = 4_000;
const root = join(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

export function weiche(name: string, what: string, options: WeicheOptions): Program {
  const start = (upstream: Upstream) => startWeiche(upstream, options);
  // The router holds the client's connection, and the agent holds the connection to the engine.
  return { name, what, connectionsPerStream: 1, missing: () => undefined, start };
}

export async function startWeiche(upstream: Upstream, options: WeicheOptions): Promise<RunningProgram> {
  const { tls, agents = 1, routers = 1, store = "memory", requestSeconds = 600 } = options;
  const nodes = Array.from({ length: agents }, (_, n) => `node-${n + 1}`);
  const files = tls ? makeCertificates(join(upstream.directory, "certificates"), nodes) : undefined;
  const ports = [upstream.port, ...(upstream.otherPorts ?? [])];
  const agentOf = (node: string, n: number) => {
    const engine = engineEntry({ model: upstream.model, port: ports[n % ports.length]! });
    return { requestSeconds, slots: [{ name: "a", engines: [engine] }], ...(files && { tls: files(`node-${node}`) }) };
  };
  const { cluster, running, close } = await startRouters(routers, {
    catalogue: loadCatalogue(upstream.model),
    router: {
      ...{ requestSeconds, limits: { perIpPerSecond: 0, store } },
      ...(files && { nodes: { tls: files("router-localhost") } }),
    },
    agents: Object.fromEntries(nodes.map((node, n) => [node, agentOf(node, n)])),
  });
  // Placement uses an inactive engine only when the others are full.
  for (const node of nodes) await cluster.weiche("prewarm", upstream.model, "--node", node);
  await until("every engine to be active", async () =>
    (await cluster.nodes()).every(({ slots }) => slots.every(({ active }) => active === upstream.model)),
  );
  if (store !== "memory") await until("the router to use the store", () => usesStore(cluster));
  const keys = await insertAccounts(cluster, accounts);
  const [port, ...otherPorts] = running.map(({ listen }) => Number(listen["api"]!.split(":").at(-1)));
  return {
    ...{ port: port!, otherPorts, keys, version },
    processes: {
      ...rolesOf("router", running),
      database: postmasterOf(cluster).pid,
      ...rolesOf("agent", [...cluster.agents.values()]),
    },
    [Symbol.asyncDispose]: close,
  };
}

async function usesStore({ router }: Cluster): Promise<boolean> {
  return (await readSamples(router)).get(seriesOf("weiche_router_limit_store_up", {})) === 1;
}

async function startRouters(count: number, options: ClusterOptions) {
  if (count > 1) {
    const group = await RouterGroup.start(count, options);
    return { cluster: group.cluster, running: group.routers, close: () => group[Symbol.asyncDispose]() };
  }
  const cluster = await Cluster.start(options);
  return { cluster, running: [cluster.router], close: () => cluster[Symbol.asyncDispose]() };
}

function rolesOf(role: string, running: readonly { readonly pid: number }[]): Record<string, number> {
  return Object.fromEntries(running.map(({ pid }, index) => [index === 0 ? role : `${role} ${index + 1}`, pid]));
}

/** Returns the entry of a load's engine for a node's file. */
export function engineEntry({ model, port }: Pick<Upstream, "model" | "port">): object {
  const url = `http://127.0.0.1:${port}`;
  return { model, dialect: "vllm", launcher: "external", url, maxConcurrent: 20_000 };
}

export function loadCatalogue(model: string): object[] {
  return catalogueOf(model).map((entry) => ({ ...entry, contextTokens: 1_000_000 }));
}

/** Makes certificates as operators do. Returns a function that returns the paths of a certificate. */
export function makeCertificates(directory: string, nodes: readonly string[]) {
  const weiche = join(root, "router/bin/weiche.js");
  const make = (...args: string[]) =>
    execFileSync(process.execPath, [weiche, "certificates", ...args, "--dir", directory], { stdio: "pipe" });
  make("ca");
  make("router", "localhost", "127.0.0.1");
  for (const node of nodes) make("node", node);
  return (name: string) => {
    const path = join(directory, name);
    return { cert: `${path}.pem`, key: `${path}.key`, ca: join(directory, "ca.pem") };
  };
}
