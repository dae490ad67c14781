/**
 * Measures the agent's cost (`npm run bench:agent [seconds]`): its processor time per streamed chunk under load, and the time
 * it adds to the engine's first byte. The agent is a real process with a simulated vLLM engine. This process is its router,
 * without API, keys and limits.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describeMachine, markdownTable, quantiles, round, type Quantiles } from "../e2e/cluster/measurement.ts";
import { writeResult } from "./load/result-files.ts";
import { LoneAgent, type LoneAnswer } from "../e2e/cluster/lone-agent.ts";
import { SimNodeEngine, simEngine } from "../e2e/cluster/sim-node.ts";

const seconds = Number(process.argv[2] ?? 20);
const streams = 32;
const itlMs = 10;
const ttftMs = 5;
const samples = 300;
const model = "model-a";
/** The unit of the kernel's processor times. */
const ticksPerSecond = 100;

const machine = describeMachine();
await using agent = await LoneAgent.start({
  models: [model],
  slots: [{ name: "a", engines: [simEngine(model, { "itl-ms": itlMs, "ttft-ms": ttftMs })] }],
});
const engine = new SimNodeEngine(agent.directory, "a", model);
for (let n = 0; n < 100; n++) await throughAgent(3); // starts the engine and compiles the code
const added = await firstBytes();
report(added, await underLoad());

function textOf(tokens: number): string {
  return `sim:tokens=${tokens}`;
}

async function throughAgent(tokens: number): Promise<LoneAnswer> {
  const answer = await agent.chat(model, textOf(tokens));
  if (answer.status !== 200) throw new Error(`the agent answers ${answer.status}`);
  if (answer.ending !== "complete") throw new Error("an answer was cut");
  return answer;
}

async function direct(tokens: number): Promise<number> {
  const startMs = performance.now();
  const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content: textOf(tokens) }] });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${engine.origin}/v1/chat/completions`, { method: "POST", headers, body });
  let firstByteMs = NaN;
  for await (const _ of answer.body!) if (Number.isNaN(firstByteMs)) firstByteMs = performance.now() - startMs;
  return firstByteMs;
}

/** Asks agent and engine in turn, so that disturbances of the machine affect both. */
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
        const { body } = await throughAgent(200);
        chunks += body.split("\n\n").length - 1;
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

/** Returns the processor time of the agent's process, user and system together. */
function cpuMs(): number {
  const fields = readFileSync(`/proc/${agent.program.pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1_000;
}

function report(first: Awaited<ReturnType<typeof firstBytes>>, load: Awaited<ReturnType<typeof underLoad>>): void {
  const { agentMs, engineMs } = first;
  const added = { p50: round(agentMs.p50 - engineMs.p50), p99: round(agentMs.p99 - engineMs.p99) };
  const row = (what: string, { p50, p99 }: Omit<Quantiles, "max">) => [what, p50, p99];
  writeResult("agent", machine, { seconds, streams, itlMs, ttftMs, ...load, firstByteMs: { ...first, added } }, [
    `${streams} streams of a simulated vLLM, a token each ${itlMs} ms, for ${seconds} s; router end, engine and agent share the machine.`,
    "",
    `- **${load.microsPerChunk} µs of processor time per streamed chunk** (whole process, ${load.chunks} chunks, ${load.chunksPerSecond} per second, ${load.coreShare} % of a core; idle it uses ${load.idleMsPerSecond} ms per second)`,
    "",
    `Time to the first byte in ms, ${samples} requests one after the other (the engine's own first token: ${ttftMs} ms):`,
    "",
    ...markdownTable(
      ["", "p50", "p99"],
      [row("engine asked directly", engineMs), row("through the agent", agentMs), row("added", added)],
    ),
  ]);
}
