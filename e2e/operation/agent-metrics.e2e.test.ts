/** Tests the exact values in `/metrics` of a real agent after real requests. Engines and nvidia-smi are simulated. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { enginePids, until } from "../cluster/cluster.ts";
import { LoneAgent } from "../cluster/lone-agent.ts";
import { samplesOf, seriesOf, type MetricFamily } from "../cluster/metrics-text.ts";
import { simEngine } from "../cluster/sim-node.ts";

const programs = mkdtempSync(join(tmpdir(), "weiche-programs-"));
const madeUpNames = process.env["WEICHE_NIGHTLY"] ? 100_000 : 2_000;
const slot = { name: "a", minResidencySeconds: 0, backoffSeconds: { min: 0.2, max: 5 } };
let agent: LoneAgent;

/** Makes a program that replaces nvidia-smi and prints these CSV rows. */
function nvidiaSmi(row: string): void {
  mkdirSync(programs, { recursive: true });
  const script = `#!/bin/sh\ncase "$1" in --query-gpu=*) echo "${row}" ;; esac\n`;
  writeFileSync(join(programs, "nvidia-smi"), script);
  chmodSync(join(programs, "nvidia-smi"), 0o755);
}

beforeAll(async () => {
  nvidiaSmi("0, GPU-1, 143771, 1024, 142000, 37, 61, 276.5, 0x0000000000000044");
  agent = await LoneAgent.start({
    models: ["model-a", "model-b"],
    slots: [{ ...slot, engines: [simEngine("model-a"), simEngine("model-b")] }],
    environment: { PATH: `${programs}:${process.env["PATH"]}` },
  });
});
afterAll(async () => {
  await agent[Symbol.asyncDispose]();
  rmSync(programs, { recursive: true });
});

type Labels = Readonly<Record<string, string>>;

/** Returns the value of a series, or undefined if it does not exist. */
async function value(name: string, labels: Labels = {}): Promise<number | undefined> {
  return (await agent.samples()).get(seriesOf(name, labels));
}

async function becomes(name: string, labels: Labels, wanted: number | undefined): Promise<void> {
  await until(`${seriesOf(name, labels)} to be ${wanted}`, async () => (await value(name, labels)) === wanted);
}

async function slotState(): Promise<Record<string, number>> {
  const states = [...(await agent.samples())].filter(([series]) => series.startsWith("weiche_agent_slot_state{"));
  return Object.fromEntries(states.map(([series, is]) => [/state="([^"]+)"/.exec(series)![1]!, is]));
}

async function phases(): Promise<Record<string, number>> {
  const pattern = /^weiche_agent_switch_phase_seconds_count\{phase="(\w+)",slot="a"\}$/;
  const counts = [...(await agent.samples())].flatMap(([series, is]) => {
    const phase = pattern.exec(series)?.[1];
    return phase === undefined ? [] : [[phase, is] as const];
  });
  return Object.fromEntries(counts);
}

/** Counts the requests of a model by how they ended. */
async function outcomes(model: string): Promise<Record<string, number>> {
  const words = ["finished", "client-ended", "limit-ended", "broken", "refused"];
  const samples = await agent.samples();
  const of = (outcome: string) => samples.get(seriesOf("weiche_agent_requests_total", { model, outcome }));
  return Object.fromEntries(words.flatMap((word) => (of(word) ? [[word, of(word)!]] : [])));
}

function usageIn(body: string): { readonly prompt_tokens: number; readonly completion_tokens: number } {
  return (JSON.parse(/data: (\{.*"usage":\{.*)/.exec(body)![1]!) as { usage: ReturnType<typeof usageIn> }).usage;
}

describe("the agent's metrics", () => {
  test("show every counter that an alert uses as 0 before the first request", async () => {
    expect(await value("weiche_agent_requests_total", { model: "model-b", outcome: "broken" })).toBe(0);
    expect(await value("weiche_agent_engine_restarts_total", { model: "model-b", reason: "exit" })).toBe(0);
    for (const code of ["overloaded", "model_switching", "client_left"])
      expect(await value("weiche_agent_refusals_total", { slot: "a", model: "model-b", code })).toBe(0);
    expect(await value("weiche_agent_engine_failures_total", { slot: "a", model: "model-a", what: "start" })).toBe(0);
    expect(await value("weiche_agent_foreign_gpu_processes_total", { slot: "a" })).toBe(0);
    expect(await value("weiche_agent_tokens_total", { model: "model-a", kind: "completion" })).toBe(0);
    expect(await value("weiche_agent_maintenance")).toBe(0);
    expect(await slotState()).toMatchObject({ empty: 1, active: 0, starting: 0 });
    expect(Object.keys(await slotState())).toHaveLength(7);
  });

  test("show outcome, tokens, first token, gaps and the engine's start of one answer", async () => {
    const { body } = await agent.chat("model-a", "sim:tokens=5,ttft=200");
    const usage = usageIn(body);
    await until("the request to be counted", async () => (await outcomes("model-a"))["finished"] === 1);
    const samples = await agent.samples();
    const of = (name: string, labels: Labels) => samples.get(seriesOf(name, labels));
    const model = "model-a";
    expect(usage.completion_tokens).toBe(5);
    expect(of("weiche_agent_tokens_total", { model, kind: "completion" })).toBe(5);
    expect(of("weiche_agent_tokens_total", { model, kind: "prompt" })).toBe(usage.prompt_tokens);
    expect(of("weiche_agent_time_to_first_token_seconds_count", { model })).toBe(1);
    expect(of("weiche_agent_time_to_first_token_seconds_bucket", { model, le: "0.1" })).toBe(0);
    expect(of("weiche_agent_inter_token_seconds_count", { model })).toBe(4);
    expect(of("weiche_agent_wait_seconds_count", { model, slot: "a" })).toBe(1);
    expect(of("weiche_agent_switch_seconds_count", { slot: "a" })).toBe(1);
    expect(of("weiche_agent_engine_ready_total", { model, slot: "a", how: "started" })).toBe(1);
    expect(of("weiche_agent_engine_restarts_total", { model, reason: "start" })).toBe(0);
    expect(await phases()).toEqual({ start: 1, probe: 1 });
    expect(await slotState()).toMatchObject({ active: 1, empty: 0 });
  });

  test("show a pause in an answer as one long gap", async () => {
    await agent.chat("model-a", "sim:tokens=2,itl=1500");
    await until("the request to be counted", async () => (await outcomes("model-a"))["finished"] === 2);
    const name = "weiche_agent_inter_token_seconds";
    expect(await value(`${name}_count`, { model: "model-a" })).toBe(5);
    expect(await value(`${name}_bucket`, { model: "model-a", le: "1" })).toBe(4);
    expect(await value(`${name}_bucket`, { model: "model-a", le: "+Inf" })).toBe(5);
    expect(await value(`${name}_sum`, { model: "model-a" })).toBeGreaterThan(1.4);
  });

  test("show running and waiting requests, the state and each phase of a switch once", async () => {
    const leaves = new AbortController();
    const running = [1, 2].map(() =>
      agent.chat("model-a", "sim:tokens=5000,itl=20", { signal: leaves.signal }).catch(() => {}),
    );
    await becomes("weiche_agent_running_requests", { slot: "a" }, 2);
    const waiting = agent.chat("model-b", "sim:tokens=3");
    await becomes("weiche_agent_waiting_requests", { slot: "a" }, 1);
    expect(await slotState()).toMatchObject({ "draining-open": 1, active: 0 });
    const during = await agent.samples();
    const of = (name: string, model?: string) =>
      during.get(seriesOf(`weiche_agent_${name}`, { slot: "a", ...(model !== undefined && { model }) }));
    expect([of("slot_active_model", "model-a"), of("slot_active_model", "model-b")]).toEqual([1, 0]);
    expect([of("slot_next_model", "model-a"), of("slot_next_model", "model-b")]).toEqual([0, 1]);
    expect([of("model_waiting_requests", "model-a"), of("model_waiting_requests", "model-b")]).toEqual([0, 1]);
    expect(of("oldest_waiter_seconds")).toBeGreaterThan(0);
    expect(of("slot_drain_closes_seconds")).toBeGreaterThan(0);
    expect(of("slot_drain_closes_seconds")).toBeLessThanOrEqual(10);
    expect(of("slot_state_seconds")).toBeGreaterThanOrEqual(0);
    leaves.abort();
    await Promise.all(running);
    expect((await waiting).ending).toBe("complete");
    await until("the leavers to be counted", async () => (await outcomes("model-a"))["client-ended"] === 2);
    expect(await outcomes("model-b")).toEqual({ finished: 1 });
    expect(await phases()).toEqual({ drain: 1, stop: 1, memory: 1, start: 2, probe: 2 });
    expect(await value("weiche_agent_switch_seconds_count", { slot: "a" })).toBe(2);
    await becomes("weiche_agent_running_requests", { slot: "a" }, 0);
    await becomes("weiche_agent_waiting_requests", { slot: "a" }, 0);
    await agent.chat("model-a", "sim:tokens=1");
    expect(await value("weiche_agent_engine_ready_total", { model: "model-a", slot: "a", how: "woken" })).toBe(1);
    expect(await phases()).toEqual({ drain: 1, stop: 2, memory: 2, start: 3, probe: 3 });
  });

  test("count an answer ended by its limit, and an answer whose engine is killed and restarted", async () => {
    await agent.chat("model-a", "sim:tokens=5000,itl=20", { remainingMs: 300 });
    await until("the limit to be counted", async () => (await outcomes("model-a"))["limit-ended"] === 1);
    const begun = Promise.withResolvers<void>();
    const broken = agent.chat("model-a", "sim:tokens=5000,itl=20", { onBegun: begun.resolve }).catch(() => {});
    await begun.promise;
    process.kill(enginePids(agent.directory).get("a-model-a")!, "SIGKILL");
    await broken;
    await becomes("weiche_agent_engine_restarts_total", { model: "model-a", reason: "exit" }, 1);
    expect(await outcomes("model-a")).toEqual({ finished: 3, "client-ended": 2, "limit-ended": 1, broken: 1 });
    expect(await value("weiche_agent_engine_failures_total", { model: "model-a", slot: "a", what: "exit" })).toBe(1);
    expect(await value("weiche_agent_engine_ready_total", { model: "model-a", slot: "a", how: "started" })).toBe(2);
  });

  test("show the number and age of usage records that no router commits", async () => {
    const gate = Promise.withResolvers<void>();
    agent.recording = gate.promise;
    for (let n = 0; n < 3; n++) await agent.chat("model-a", "sim:tokens=1");
    await becomes("weiche_agent_outbox_records", {}, 3);
    await until(
      "the oldest record to be 0.5 s old",
      async () => (await value("weiche_agent_outbox_oldest_seconds"))! > 0.5,
    );
    const delivered = (await value("weiche_agent_usage_delivered_total"))!;
    gate.resolve();
    await becomes("weiche_agent_outbox_records", {}, 0);
    await becomes("weiche_agent_outbox_oldest_seconds", {}, 0);
    expect(await value("weiche_agent_usage_delivered_total")).toBe(delivered + 3);
    expect(await value("weiche_agent_outbox_admitting")).toBe(1);
    expect(await value("weiche_agent_outbox_disk_free_bytes")).toBeGreaterThan(1 << 20);
  });

  test("show the GPUs of nvidia-smi and remove GPUs and values that are no longer measured", async () => {
    const gpu = { gpu: "0" };
    await becomes("weiche_agent_gpu_memory_total_bytes", gpu, 143_771 * 2 ** 20);
    expect(await value("weiche_agent_gpu_memory_used_bytes", gpu)).toBe(1024 * 2 ** 20);
    expect(await value("weiche_agent_gpu_utilisation_ratio", gpu)).toBe(0.37);
    expect(await value("weiche_agent_gpu_temperature_celsius", gpu)).toBe(61);
    expect(await value("weiche_agent_gpu_power_watts", gpu)).toBe(276.5);
    const slowdown = (reason: string) => value("weiche_agent_gpu_slowdown", { ...gpu, reason });
    expect([await slowdown("sw_power_cap"), await slowdown("hw_thermal_slowdown")]).toEqual([1, 1]);
    expect([await slowdown("hw_slowdown"), await slowdown("sw_thermal_slowdown")]).toEqual([0, 0]);
    nvidiaSmi("0, GPU-1, 143771, 1024, 142000, [N/A], 61, [N/A], [N/A]");
    await becomes("weiche_agent_gpu_power_watts", gpu, undefined);
    expect(await value("weiche_agent_gpu_utilisation_ratio", gpu)).toBeUndefined();
    expect(await slowdown("sw_power_cap")).toBeUndefined();
    expect(await value("weiche_agent_gpu_temperature_celsius", gpu)).toBe(61);
  });

  test("get no series from made-up model names [E8]", { timeout: 120_000 }, async () => {
    const series = async () => new Set((await agent.samples()).keys());
    const before = await series();
    for (let n = 0; n < madeUpNames; n += 50)
      await Promise.all(Array.from({ length: 50 }, (_, k) => agent.chat(`made-up-${n + k}`, "x")));
    await becomes("weiche_agent_requests_total", { model: "other", outcome: "refused" }, madeUpNames);
    expect([...(await series())].filter((each) => !before.has(each) && each.startsWith("weiche_"))).toEqual([]);
  });

  test("show the event loop's lag and the link, which goes down with its router", async () => {
    const { router } = agent;
    expect(await value("weiche_agent_router_link_up", { router })).toBe(1);
    await becomes("weiche_agent_data_sessions", { router }, 1);
    expect(await value("nodejs_eventloop_lag_p99_seconds")).toBeGreaterThan(0);
    await agent.closeRouter();
    await becomes("weiche_agent_router_link_up", { router }, 0);
    await becomes("weiche_agent_data_sessions", { router }, 0);
  });

  test("follow the conventions of Prometheus: one help and type each, base units, and _total only at the end of counters", async () => {
    const families = [...(await agent.metrics()).values()].filter(({ name }) => name.startsWith("weiche_"));
    expect(families.length).toBeGreaterThan(25);
    expect(families.flatMap(mistakesOf)).toEqual([]);
    expect(samplesOf(await agent.metrics()).size).toBeLessThan(500);
  });
});

/** Finds the faults that `promtool check metrics` would report. */
function mistakesOf({ name, help, types, samples }: MetricFamily): string[] {
  const says = (isWrong: boolean, what: string) => (isWrong ? [`${name}: ${what}`] : []);
  const buckets = [...samples].filter(([series]) => series.startsWith(`${name}_bucket`));
  return [
    ...says(help.length !== 1 || /^\s*$|\.$/.test(help[0]!), "one help text, without a full stop"),
    ...says(types.length !== 1, "one type"),
    ...says(!/^[a-z][a-z0-9_]*$/.test(name), "lower case and underscores"),
    ...says(name.endsWith("_total") !== (types[0] === "counter"), "_total is the suffix of counters and nothing else"),
    ...says(/_(ms|millis\w*|minutes|hours|kb|mb|gb|kib|mib|gib|percent|kilo\w*)(_|$)/.test(name), "a base unit"),
    ...says(types[0] === "histogram" && !name.endsWith("_seconds"), "a histogram names its unit"),
    ...says(/_(count|sum|bucket)$/.test(name), "a suffix that means something else"),
    ...says(name.endsWith("_info") && [...samples.values()].some((is) => is !== 1), "an info is always 1"),
    ...says(
      types[0] === "histogram" &&
        buckets.filter(([series]) => series.includes('le="+Inf"')).length === 0 &&
        samples.size > 0,
      "a bucket for all",
    ),
  ];
}
