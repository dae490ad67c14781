/**
 * `npm run bench:agent [seconds]`: what the agent costs. A real agent process below a simulated vLLM engine; this process
 * is its router end, link and data session, without API, keys and limits. Measured: the agent's processor time per
 * streamed chunk under load, and the time to the first byte through the agent against that of the engine asked directly.
 */
import { randomBytes } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createGrants } from "@weiche/router/src/usage/grants.ts";
import { openDataConnections } from "@weiche/router/src/nodes/data-connections.ts";
import { openNodeLink } from "@weiche/router/src/nodes/node-link.ts";
import { NodeRegistry } from "@weiche/router/src/nodes/registry.ts";
import { parseCatalogue, rulesOf } from "@weiche/shared/catalogue.ts";
import { systemClock as clock } from "@weiche/shared/time/clock.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type ModelId, type NodeId, type RequestId } from "@weiche/shared/ids.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { plainJobs } from "@weiche/shared/testing/plain-jobs.ts";
import { stringify } from "yaml";
import { RunningProgram, isAlive, reachableDirectory, until } from "./cluster/cluster.ts";
import { describeMachine, quantiles, round, writeResult } from "./cluster/result.ts";
import { SimNodeEngine, catalogueOf, simEngine } from "./cluster/sim-node.ts";

const seconds = Number(process.argv[2] ?? 20);
const streams = 32;
const itlMs = 10;
const ttftMs = 5;
const samples = 300;
const node = asId<NodeId>("node-1");
const model = asId<ModelId>("model-a");
/** Of the kernel's accounting of processes. */
const ticksPerSecond = 100;

const machine = describeMachine();
const directory = reachableDirectory("weiche-bench-agent-");
const registry = new NodeRegistry();
const silent = new Proxy({}, { get: () => () => {} }) as never;
const listen = { host: "127.0.0.1", port: 0 };
const grants = createGrants(randomBytes(32));
const shared = { routerId: uuidv7(clock), clock, events: silent };
const rules = parseCatalogue(stringify(catalogueOf(model)))
  .catalogue!.values()
  .map(rulesOf)
  .toArray();
const data = await openDataConnections({ ...shared, listen, grants, counts: registry });
const link = await openNodeLink({
  ...{ ...shared, listen, registry, job: plainJobs(clock) },
  dataAddress: `127.0.0.1:${data.address.port}`,
  ledger: { record: async () => {} },
  rulesOf: () => rules,
  mayHost: () => true,
  desiredStateOf: () => undefined,
  onBoot: () => {},
});
const agent = await startAgent();
const engine = new SimNodeEngine(directory, "a", model);
try {
  await until("the agent to link", () => registry.view(clock.monotonicMs())[0]?.reachable ?? false);
  for (let n = 0; n < 100; n++) await throughAgent(3); // starts the engine, warms the code
  const added = await firstBytes();
  const load = await underLoad();
  report(added, load);
} finally {
  const { pid } = engine;
  await agent.stop();
  if (pid !== undefined && isAlive(pid)) process.kill(pid, "SIGKILL");
  await Promise.all([link.close(0), data.close(0)]);
  rmSync(directory, { recursive: true, force: true });
}

async function startAgent(): Promise<RunningProgram> {
  const file = join(directory, "agent.yaml");
  const slots = [{ name: "a", engines: [simEngine(model, { "itl-ms": itlMs, "ttft-ms": ttftMs })] }];
  writeFileSync(file, stringify({ node, routers: [`127.0.0.1:${link.address.port}`], shutdownSeconds: 5, slots }));
  const env = { WEICHE_DATA_DIR: directory, WEICHE_AGENT_CONFIG: file, WEICHE_AGENT_OPS_LISTEN: "127.0.0.1:0" };
  return await RunningProgram.start("node-agent/src/main.ts", [], env);
}

interface Answer {
  readonly firstByteMs: number;
  readonly chunks: number;
}

function bodyOf(tokens: number): string {
  return JSON.stringify({ model, stream: true, messages: [{ role: "user", content: `sim:tokens=${tokens}` }] });
}

async function throughAgent(tokens: number): Promise<Answer> {
  const startMs = performance.now();
  const who = asId<never>(uuidv7(clock));
  const request = {
    ...{ path: nodePaths.chat, requestId: asId<RequestId>(uuidv7(clock)), attempt: 1, model },
    billing: { accountId: who, userId: who, keyId: who, factor: millicredits(1_000n) },
    tokensMax: 1_000_000,
    remainingMs: 600_000,
    body: Buffer.from(bodyOf(tokens)),
  };
  const answer = await data.send(node, request, new AbortController().signal);
  if (answer.status !== 200) throw new Error(`the agent answers ${answer.status}`);
  let firstByteMs = NaN;
  let chunks = 0;
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const take = (bytes: Buffer) => {
    if (chunks === 0) firstByteMs = performance.now() - startMs;
    chunks += bytes.toString().split("\n\n").length - 1;
  };
  answer.body.readInto({ take, end });
  await ended;
  if (answer.body.ending !== "complete") throw new Error("an answer was cut");
  return { firstByteMs, chunks };
}

async function direct(tokens: number): Promise<number> {
  const startMs = performance.now();
  const headers = { "content-type": "application/json" };
  const url = `${engine.origin}/v1/chat/completions`;
  const answer = await fetch(url, { method: "POST", headers, body: bodyOf(tokens) });
  let firstByteMs = NaN;
  for await (const _ of answer.body!) if (Number.isNaN(firstByteMs)) firstByteMs = performance.now() - startMs;
  return firstByteMs;
}

/** One after the other, in turn, so that both meet the same machine. */
async function firstBytes() {
  const times = { agent: [] as number[], engine: [] as number[] };
  for (let n = 0; n < samples; n++) {
    times.engine.push(await direct(2));
    times.agent.push((await throughAgent(2)).firstByteMs);
  }
  return { agentMs: quantiles(times.agent), engineMs: quantiles(times.engine) };
}

async function underLoad() {
  const idleFrom = cpuMs();
  await sleep(4_000);
  const idleMsPerSecond = (cpuMs() - idleFrom) / 4;
  const [fromMs, fromCpu] = [performance.now(), cpuMs()];
  let chunks = 0;
  await Promise.all(
    Array.from({ length: streams }, async () => {
      while (performance.now() - fromMs < seconds * 1_000) {
        const answer = await throughAgent(200);
        chunks += answer.chunks;
      }
    }),
  );
  const tookS = (performance.now() - fromMs) / 1_000;
  const usedMs = cpuMs() - fromCpu;
  return {
    chunks,
    chunksPerSecond: Math.round(chunks / tookS),
    coreShare: round(usedMs / tookS / 10),
    microsPerChunk: round((usedMs * 1_000) / chunks),
    idleMsPerSecond: round(idleMsPerSecond),
  };
}

/** Processor time of the agent's process, user and system. */
function cpuMs(): number {
  const fields = readFileSync(`/proc/${agent.pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1_000;
}

function report(first: Awaited<ReturnType<typeof firstBytes>>, load: Awaited<ReturnType<typeof underLoad>>): void {
  const { agentMs, engineMs } = first;
  const added = { p50: round(agentMs.p50 - engineMs.p50), p99: round(agentMs.p99 - engineMs.p99) };
  const row = (what: string, { p50, p99 }: { p50: number; p99: number }) => `| ${what} | ${p50} | ${p99} |`;
  writeResult("agent", machine, { seconds, streams, itlMs, ttftMs, ...load, firstByteMs: { ...first, added } }, [
    `${streams} streams of a simulated vLLM, a token each ${itlMs} ms, for ${seconds} s; router end, engine and agent share the machine.`,
    "",
    `- **${load.microsPerChunk} µs of processor time per streamed chunk** (whole process, ${load.chunks} chunks, ${load.chunksPerSecond} per second, ${load.coreShare} % of a core; idle it uses ${load.idleMsPerSecond} ms per second)`,
    "",
    `Time to the first byte in ms, ${samples} requests one after the other (the engine's own first token: ${ttftMs} ms):`,
    "",
    "| | p50 | p99 |",
    "|---|---|---|",
    row("engine asked directly", engineMs),
    row("through the agent", agentMs),
    row("added", added),
  ]);
}
