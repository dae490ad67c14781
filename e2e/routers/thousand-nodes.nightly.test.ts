/** Tests real routers with a thousand nodes, whose real links and data connections run in one process. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { GpuReading } from "@weiche/node-agent/src/host/gpu.ts";
import type { RouterState } from "@weiche/node-agent/src/links/router-links.ts";
import { issueCertificate, type Authority } from "@weiche/router/src/certificates/issue.ts";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import { until, type RunningProgram } from "../cluster/cluster.ts";
import { readSamples } from "../cluster/metrics-text.ts";
import { RouterGroup } from "../cluster/router-group.ts";
import { catalogueOf } from "../cluster/sim-node.ts";
import { cpuSecondsOf, memoryBytesOf, raiseDescriptors } from "../cluster/processes.ts";
import { Certificates } from "../links/link-ends.ts";
import { model, openWholeAgent, type WholeAgent } from "../links/whole-links.ts";

const nodes = 1_000;
/** One process dials for all nodes. At first it dials in groups, because it could not open all connections at once. */
const startedAtOnce = 100;
const firstMsMax = 180_000;
const againMsMax = 15_000;
/** Bounds that reveal a fault. The goals are 350 MB and 8 %. */
const megabytesMax = 500;
const coreShareMax = 0.25;
const idleSeconds = 20;

/** The report of an idle host with eight GPUs, sent each second. */
const gpu = { memoryTotalBytes: 150e9, memoryUsedBytes: 120e9, utilisation: 0, temperatureCelsius: 40, powerWatts: 90 };
const gpus = Array.from({ length: 8 }, (_, index): GpuReading => ({ index, uuid: `GPU-${index}`, ...gpu }));
const load = { gpus, host: { cpuUse: 0.1, memoryTotalBytes: 1e12, memoryAvailableBytes: 9e11 } };

test("1,000 nodes are linked within 15 s after a stop or kill of their router, and none is lost while idle", async () => {
  raiseDescriptors();
  await using opened = new AsyncDisposableStack();
  const certificates = opened.use(new Certificates());
  const tls = certificates.router("localhost", "127.0.0.1");
  const options = { catalogue: catalogueOf(model), agents: {}, router: { nodes: { tls } } };
  const group = opened.use(await RouterGroup.start(1, options));
  const tlsOf = issuer(certificates);
  const identities = Array.from({ length: nodes }, (_, index) => `node-${index}`).map((node) => ({
    node,
    tls: tlsOf(node),
  }));

  const seed = group.routers[0]!.listen["nodes"]!;
  const agents: WholeAgent[] = [];
  opened.defer(async () => void (await Promise.all(agents.map((agent) => agent[Symbol.asyncDispose]()))));
  for (let at = 0; at < nodes; at += startedAtOnce) {
    const some = identities.slice(at, at + startedAtOnce);
    agents.push(...some.map((identity) => openWholeAgent([seed], { ...identity, load })));
    const all = () => agents.every((agent) => isLinked(agent, seed));
    await until(`${agents.length} nodes to be linked`, all, firstMsMax);
  }
  const [router] = group.routers;
  const measure = async (start: string, boundMs: number) => {
    const linking = await untilLinked(agents, group.routers[0]!, boundMs);
    console.log(JSON.stringify({ nodes, start, ...linking }));
  };
  expect(await router!.stop()).toBe(0);
  await group.startAt(0);
  await measure("of the router that was stopped", againMsMax);
  group.routers[0]!.kill("SIGKILL");
  await group.routers[0]!.exited();
  await group.startAt(0);
  await measure("of the router that was killed", againMsMax);

  const lost = lossesOf(agents);
  const idle = await idleOf(group.routers);
  console.log(JSON.stringify({ nodes, idle }));
  expect(lossesOf(agents)).toEqual(lost);
  expect(await Promise.all(group.routers.map(linked))).toEqual(group.routers.map(() => nodes));
  for (const { megabytes, coreShare } of idle) {
    expect(megabytes).toBeLessThan(megabytesMax);
    expect(coreShare).toBeLessThan(coreShareMax);
  }
}, 600_000);

/** Returns a function that gives each node a certificate, without files. */
function issuer({ directory }: Certificates): (node: string) => TlsFiles {
  const ca = readFileSync(`${directory}/ca.pem`);
  const authority: Authority = {
    cert: new X509Certificate(ca),
    key: createPrivateKey(readFileSync(`${directory}/ca.key`)),
  };
  return (node) => {
    const { cert, key } = issueCertificate(authority, [node], { fromMs: Date.now(), days: 1 });
    return {
      paths: { cert: "", key: "" },
      current: { cert: Buffer.from(cert), key: Buffer.from(key), ca, minVersion: "TLSv1.3" },
      onChange: () => () => {},
      [Symbol.dispose]() {},
    };
  };
}

interface Linking {
  readonly seconds: number;
  /** Processor time of the router and of all nodes, in seconds. */
  readonly routerCpu: number;
  readonly nodesCpu: number;
}

/** Asks the nodes, because a router that returns the metrics of a thousand nodes does little else. */
async function untilLinked(
  agents: readonly WholeAgent[],
  { pid, listen }: RunningProgram,
  boundMs: number,
): Promise<Linking> {
  const routerCpu = () => cpuSecondsOf({ router: pid })["router"]!;
  const look = () => ({ ms: performance.now(), nodes: process.cpuUsage(), router: routerCpu() });
  const from = look();
  const all = () => agents.every((agent) => isLinked(agent, listen["nodes"]!));
  await until(`${nodes} nodes to be linked`, all, boundMs);
  const to = look();
  const { user, system } = process.cpuUsage(from.nodes);
  return {
    seconds: (to.ms - from.ms) / 1_000,
    routerCpu: to.router - from.router,
    nodesCpu: (user + system) / 1e6,
  };
}

function isLinked({ links }: WholeAgent, address: string): boolean {
  const is = (each: RouterState) => each.address === address && each.state === "linked" && each.dataSessions > 0;
  return links.states().some(is);
}

/** Returns the number of nodes with a link and a data connection to the router. */
async function linked(router: RunningProgram): Promise<number> {
  const samples = await readSamples(router);
  const has = (_: unknown, index: number) =>
    samples.get(`weiche_router_node_link_up{node="node-${index}"}`) === 1 &&
    samples.get(`weiche_router_data_sessions{node="node-${index}"}`)! > 0;
  return Array.from({ length: nodes }, has).filter(Boolean).length;
}

/** Returns all events of links and data connections that ended or failed at the nodes. */
function lossesOf(agents: readonly WholeAgent[]): readonly unknown[][] {
  return agents.flatMap(({ told }) => told.filter(([event]) => !String(event).endsWith("Up")));
}

async function idleOf(routers: readonly RunningProgram[]) {
  const roots = Object.fromEntries(routers.map(({ pid }, index) => [`router ${index + 1}`, pid]));
  const before = cpuSecondsOf(roots);
  await sleep(idleSeconds * 1_000);
  const after = cpuSecondsOf(roots);
  return Object.entries(memoryBytesOf(roots)).map(([router, bytes]) => ({
    router,
    megabytes: Math.round(bytes / 2 ** 20),
    coreShare: (after[router]! - before[router]!) / idleSeconds,
  }));
}
