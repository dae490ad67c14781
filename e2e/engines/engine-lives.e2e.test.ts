/**
 * Tests phases of an engine's life with a real agent: the deep sleep, and deaths while requests wait for the engine.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { enginePids, isAlive, reachableDirectory, until } from "../cluster/cluster.ts";
import { LoneAgent } from "../cluster/lone-agent.ts";
import { seriesOf } from "../cluster/metrics-text.ts";
import { SimNodeEngine, simEngine } from "../cluster/sim-node.ts";

const directory = reachableDirectory("weiche-lives-");
/** The faults with which the next process of `probed` begins. */
const faultFile = join(directory, "faults");
const backoffSeconds = 0.5;
let agent: LoneAgent;

beforeAll(async () => {
  const slot = { minResidencySeconds: 0, backoffSeconds: { min: backoffSeconds, max: backoffSeconds } };
  const deep = (model: string) => ({ ...simEngine(model), sleep: { level: 2 } });
  agent = await LoneAgent.start({
    models: ["deep", "other", "drained", "waiting", "probed", "beside"],
    slots: [
      { ...slot, name: "sleep", engines: [deep("deep"), deep("other")] },
      { ...slot, name: "drain", engines: [simEngine("drained"), simEngine("waiting")] },
      { ...slot, name: "probe", engines: [simEngine("probed", { "fault-file": faultFile }), simEngine("beside")] },
    ],
  });
});
afterAll(async () => {
  await agent[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

function engineOf(slot: string, model: string): SimNodeEngine {
  return new SimNodeEngine(agent.directory, slot, model);
}

async function sample(name: string, labels: Readonly<Record<string, string>>): Promise<number | undefined> {
  return (await agent.samples()).get(seriesOf(name, labels));
}

/** Returns the text of an answer. Fails if the answer is not whole. */
async function said(model: string, text: string): Promise<string> {
  const { status, body, ending } = await agent.chat(model, text);
  expect({ status, ending, body: status === 200 ? "" : body }).toEqual({ status: 200, ending: "complete", body: "" });
  return [...body.matchAll(/"content":"([^"]*)"/g)].map(([, piece]) => piece).join("");
}

async function served(model: string): Promise<void> {
  await until(`${model} to be served`, async () => {
    const { status, body } = await agent.chat(model, "sim:tokens=2 hello");
    if (status !== 200 && status !== 503) throw new Error(body);
    return status === 200;
  });
}

test("after a sleep of level 2, which drops the weights, the agent reloads them in this order before the first request", async () => {
  const engine = engineOf("sleep", "deep");
  const moves = async () => (await (await fetch(`${engine.origin}/sim/moves`)).json()) as string[];
  expect(await said("deep", "sim:tokens=3 hello")).toBe("t0 t1 t2 ");
  const { pid } = engine;
  const cycle = [
    ...["/sleep?level=2&mode=wait", "/wake_up?tags=weights", '/collective_rpc {"method":"reload_weights"}'],
    ...["/wake_up?tags=kv_cache", "/reset_prefix_cache"],
  ];
  for (let turn = 1; turn <= 2; turn++) {
    await said("other", "sim:tokens=1 hello");
    expect((await moves()).at(-1)).toBe(cycle[0]);
    expect(await said("deep", "sim:tokens=3 hello"), "the weights are right").toBe("t0 t1 t2 ");
    expect(await moves()).toEqual(Array.from({ length: turn }, () => cycle).flat());
  }
  expect(engine.pid, "the engine was never restarted").toBe(pid);
  expect(await engine.state()).toMatchObject({ sleptBusy: 0, running: 0, waiting: 0 });
});

test("if an engine dies during its drain, its stream ends in an error and waiters for the other model are served", async () => {
  await served("drained");
  const { pid } = engineOf("drain", "drained");
  const begun = Promise.withResolvers<void>();
  const stream = agent.chat("drained", "sim:tokens=5000,itl=10 hello", { onBegun: begun.resolve });
  await begun.promise;
  const waiting = said("waiting", "sim:tokens=2 hello");
  await until("the drain, with a waiter", async () => {
    const isDraining = await sample("weiche_agent_slot_state", { slot: "drain", state: "draining-open" });
    return isDraining === 1 && (await sample("weiche_agent_waiting_requests", { slot: "drain" })) === 1;
  });
  process.kill(pid!, "SIGKILL");
  const { status, body, ending } = await stream;
  expect({ status, ending }).toEqual({ status: 200, ending: "error" });
  expect(body).toMatch(/data: \{"error":\{.*\}\}\n\n$/);
  expect(await waiting).toBe("t0 t1 ");
  expect(await sample("weiche_agent_running_requests", { slot: "drain" })).toBe(0);
  await served("drained");
  expect(engineOf("drain", "drained").pid).not.toBe(pid);
});

test("if an engine dies at its first token, waiters are refused with the backoff and nothing of it is left", async () => {
  await served("beside");
  writeFileSync(faultFile, "crash:0");
  const refused = await agent.chat("probed", "sim:tokens=2 hello");
  expect(refused.status).toBe(503);
  expect(refused.body).toContain('"model_unavailable"');
  expect([...enginePids(agent.directory).keys()]).not.toContain("probe-probed");
  rmSync(faultFile);
  const isTold = (line: string) => line.includes('"model":"probed"') && line.includes("did not start");
  await until("the reason in the log", () => agent.program.output.some(isTold));
  await served("probed");
  expect(await sample("weiche_agent_engine_restarts_total", { model: "probed", reason: "start" })).toBe(1);
});

test("an engine that dies at its first token after its wake is started cold for the same request", async () => {
  await served("probed");
  const { pid } = engineOf("probe", "probed");
  await said("beside", "sim:tokens=1 hello");
  await engineOf("probe", "probed").setFaults("crash:0*1");
  expect(await said("probed", "sim:tokens=2 hello")).toBe("t0 t1 ");
  expect(engineOf("probe", "probed").pid).not.toBe(pid);
  expect(isAlive(pid!)).toBe(false);
});
