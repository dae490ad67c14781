/**
 * Tests engines of each dialect that send wrong data, break off or hang, with a real agent. One bad answer ends one
 * request, and nothing else.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../cluster/cluster.ts";
import { LoneAgent, type LoneAnswer } from "../cluster/lone-agent.ts";
import { seriesOf } from "../cluster/metrics-text.ts";
import { SimNodeEngine, simEngine } from "../cluster/sim-node.ts";
import { SimTrio, simDialects } from "../cluster/sim-trio.ts";
import { chat } from "../sim-engine/sim-client.ts";
import type { SimDialectName } from "../sim-engine/sim-engine.ts";

/** An engine may be silent for half of a request's time. */
const requestSeconds = 12;
const silenceMs = (requestSeconds * 1_000) / 2;

/** Engines that answer badly, engines that hang, engines that work for others, and frozen processes. */
let bad: SimTrio;
let hanging: SimTrio;
let busy: SimTrio;
let agent: LoneAgent;
/** Long tests that run beside the table. */
let slow: {
  readonly hung: Promise<LoneAnswer>[];
  readonly working: ReturnType<typeof work>[];
  readonly frozen: ReturnType<typeof freeze>[];
};

const frozenModel = (dialect: SimDialectName) => `frozen-${dialect}`;

beforeAll(async () => {
  [bad, hanging, busy] = await Promise.all([
    ...["bad", "hanging", "busy"].map((prefix) => SimTrio.start(prefix, { ttftMs: 2, itlMs: 5, maxRunning: 8 })),
  ] as [Promise<SimTrio>, Promise<SimTrio>, Promise<SimTrio>]);
  const frozen = simDialects.map((dialect) => {
    const engine = { ...simEngine(frozenModel(dialect), { dialect }), dialect, sleep: undefined };
    return { name: frozenModel(dialect), backoffSeconds: { min: 0.2, max: 0.2 }, engines: [engine] };
  });
  const trios = [bad, hanging, busy];
  agent = await LoneAgent.start({
    models: [...trios.flatMap(({ models }) => models), ...simDialects.map(frozenModel)],
    slots: [...trios.flatMap((trio) => trio.slots()), ...frozen],
    more: { requestSeconds },
  });
  slow = {
    hung: hanging.models.map((model) => ask(model, "sim:fault=hang:0 hello")),
    working: simDialects.map(work),
    frozen: simDialects.map(freeze),
  };
  for (const each of Object.values(slow).flat() as Promise<unknown>[]) each.catch(() => {}); // their tests await them
});
afterAll(async () => {
  await agent[Symbol.asyncDispose]();
  await Promise.all([bad, hanging, busy].map((trio) => trio[Symbol.asyncDispose]()));
});

/**
 * Number of requests lost with the data connection to the agent. On a busy machine an agent that answers a PING late
 * looks dead.
 */
let lost = 0;

async function ask(...question: Parameters<LoneAgent["chat"]>): Promise<LoneAnswer> {
  try {
    return await agent.chat(...question);
  } catch (error) {
    if (!/was lost before|no data connection/.test(String(error)) || ++lost > 100) throw error;
    await sleep(250);
    // Three failures in a row would make the agent suspect the engine. A whole answer ends the row.
    const [model] = question;
    if (bad.models.includes(model)) expectWhole(await ask(model, "sim:tokens=2 hello"));
    return ask(...question);
  }
}

function reportOf(model: string) {
  return agent.registry.details(performance.now())[0]!.report?.slots.find(({ name }) => name === model);
}

/** Sends a prompt that takes longer to read than an engine may be silent, while the engine works for another client. */
async function work(dialect: SimDialectName) {
  const model = `busy-${dialect}`;
  const elsewhere = new AbortController();
  const others = chat(busy.of(dialect).origin, "sim:tokens=20000,itl=10 hello", {}, { signal: elsewhere.signal });
  await ask(model, "sim:tokens=1 hello");
  const measured = () => reportOf(model);
  await until("the first measurement of the counters", () => measured()?.engine !== undefined);
  const asked = ask(model, `sim:tokens=3,ttft=${silenceMs + 1_500} hello`);
  await until("both requests to be measured", () => measured()?.engine?.running === 2);
  const { engine } = measured()!;
  const answer = await asked;
  elsewhere.abort();
  await others.catch(() => {});
  return { answer, measured: engine! };
}

async function freeze(dialect: SimDialectName) {
  const model = frozenModel(dialect);
  const engine = new SimNodeEngine(agent.directory, model, model);
  await served(model);
  await until("the first measurement, which a hang is compared with", () => reportOf(model)?.engine !== undefined);
  const answer = ask(model, "sim:tokens=5000,itl=10 hello");
  await until("the stream to run", async () => engine.pid !== undefined && (await generated(engine)) > 5);
  const pid = engine.pid!;
  process.kill(pid, "SIGSTOP");
  const ended = await answer;
  const running = (await agent.samples()).get(seriesOf("weiche_agent_running_requests", { slot: model }));
  process.kill(pid, "SIGCONT");
  await served(model);
  return { ended, running, pids: [pid, engine.pid] };
}

/** Asks until the model is served again. Until then it may only be refused. */
async function served(model: string): Promise<void> {
  await until(`${model} to be served`, async () => {
    const answer = await ask(model, "sim:tokens=2 hello");
    if (answer.status !== 503) expectWhole(answer);
    return answer.status === 200;
  });
}

async function restarts(model: string, reason: string): Promise<number | undefined> {
  return (await agent.samples()).get(seriesOf("weiche_agent_engine_restarts_total", { model, reason }));
}

/** Returns the number of tokens generated for the last request, or 0 while its engine does not answer yet. */
async function generated(engine: SimNodeEngine): Promise<number> {
  return (await engine.requests().catch(() => [])).at(-1)?.generated ?? 0;
}

/** Checks that an incomplete answer ends honestly: with a status, or with an error event as its last event. */
function expectHonest({ status, body, ending }: LoneAnswer): void {
  expect(["500 complete", "500 error", "200 error"]).toContain(`${status} ${ending}`);
  const last = status === 200 ? body.split("\n\n").at(-2)!.slice("data: ".length) : body;
  expect(JSON.parse(last)).toMatchObject({
    error: { type: "server_error", message: expect.stringMatching(/engine failed/) as string },
  });
  expect(body).not.toContain("[DONE]");
}

function expectWhole({ status, body, ending }: LoneAnswer): void {
  expect({ status, ending }).toEqual({ status: 200, ending: "complete" });
  expect(body).toMatch(/data: \[DONE\]\n\n$/);
}

/** Faults before the first byte, and in the middle of a stream. */
const faults = [
  ...["html", "empty", "wrong-length", "500"],
  ...["usage-only:0", "terminator-first:0", "invalid-utf8:0", "cut-chunk:0", "reset:0"],
  ...["usage-only:2", "terminator-first:2", "huge-event:2", "no-newline:2", "invalid-utf8:2", "cut-chunk:2", "cut:2"],
  ...["not-json:2", "error-event:2", "abort:2", "reset:2", "no-finish:2"],
];
/**
 * Faults that a client may provoke through the text that it makes the model write. It pays for the tokens that it
 * received.
 */
const ofAnswer = ["huge-event:2", "no-newline:2", "invalid-utf8:2", "not-json:2", "error-event:2"];

test.each(simDialects)(
  "%s: one bad answer is an error for its client, and the next answer is whole [C6]",
  async (dialect) => {
    const model = `bad-${dialect}`;
    let [streamsBroken, wholes, billed] = [0, 0, 0];
    const lostBefore = lost;
    for (const fault of faults) {
      const question = `sim:tokens=5,fault=${fault} hello`;
      const [streamed, collected] = await Promise.all([ask(model, question), ask(model, question, { stream: false })]);
      for (const answer of [streamed, collected]) {
        expectHonest(answer);
        expect(answer.body).not.toMatch(/It works|EngineCore|Compute error/);
      }
      if (streamed.status === 200) streamsBroken++;
      if (streamed.status === 200 && ofAnswer.includes(fault)) billed++;
      expectWhole(await ask(model, "sim:tokens=2 hello"));
      wholes++;
    }
    expect(streamsBroken).toBeGreaterThan(0);
    const samples = await agent.samples();
    const tokens = samples.get(seriesOf("weiche_agent_tokens_total", { model, kind: "completion" }))!;
    const ended = (outcome: string) => samples.get(seriesOf("weiche_agent_requests_total", { model, outcome }));
    // A request that was lost with its connection may have ended in any way before it was asked again.
    const again = lost - lostBefore;
    for (const [outcome, count] of [
      ["limit-ended", billed],
      ["broken", streamsBroken - billed],
    ] as const) {
      expect(ended(outcome)).toBeGreaterThanOrEqual(count);
      expect(ended(outcome)).toBeLessThanOrEqual(count + again);
    }
    expect(tokens, "answers that the service broke cost nothing").toBeGreaterThanOrEqual(2 * wholes + billed);
    expect(tokens).toBeLessThanOrEqual(2 * (wholes + billed) + (5 + 2) * again);
    expect(
      samples.get(seriesOf("weiche_agent_engine_failures_total", { slot: model, model, what: "answer" })),
    ).toBeGreaterThanOrEqual(2 * faults.length);
    const restarted = [...samples].filter(
      ([series, count]) => series.startsWith(`weiche_agent_engine_restarts_total{model="${model}"`) && count > 0,
    );
    expect(restarted).toEqual([]);
    expect(samples.get(seriesOf("weiche_agent_running_requests", { slot: model }))).toBe(0);
  },
);

test("characters that are cut between two packets arrive whole", async () => {
  for (const model of bad.models) {
    const answer = await ask(model, "sim:tokens=3,fault=split:0 hello");
    expectWhole(answer);
    expect(answer.body).toContain('"content":"ü2 "');
  }
});

test("a stream that ends after its finish reason, without its terminator, is whole", async () => {
  for (const model of bad.models) {
    const answer = await ask(model, "sim:tokens=3,fault=no-terminator:2 hello");
    expectWhole(answer);
    expect(answer.body).toContain('"completion_tokens":3');
  }
});

test("a request whose prompt is read for ever ends in an error once no counter moves, and the engine is restarted [C6]", async () => {
  for (const hung of slow.hung) expectHonest(await hung);
  await Promise.all(hanging.models.map(served));
  for (const model of hanging.models) expect(await restarts(model, "silent")).toBe(1);
});

test("an engine that works for another client does not count as hanging, because its counters move", async () => {
  const [vllm, llamaServer, openai] = await Promise.all(slow.working);
  for (const { answer } of [vllm!, llamaServer!, openai!]) expectWhole(answer);
  expect(vllm!.measured).toMatchObject({ running: 2, waiting: 0, kvCacheUse: 2 / 8, prefixCacheHitRate: 0 });
  expect(openai!.measured).toMatchObject({ running: 2, waiting: 0, kvCacheUse: 2 / 8 });
  expect(llamaServer!.measured).toMatchObject({ running: 2, waiting: 0 });
  expect(llamaServer!.measured.kvCacheUse).toBeUndefined();
  for (const model of busy.models) expect(await restarts(model, "silent")).toBe(0);
});

test("the client of a frozen engine gets an error, its place is free, and a new engine takes over [C6]", async () => {
  for (const { ended, running, pids } of await Promise.all(slow.frozen)) {
    expectHonest(ended);
    expect(ended.status).toBe(200);
    expect(running).toBe(0);
    expect(pids[1]).not.toBe(pids[0]);
  }
});
