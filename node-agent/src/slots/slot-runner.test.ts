/** A slot with its runner, as clients, the operator and the router see it. */
import { describe, expect, test } from "vitest";
import { settle } from "@weiche/shared/testing/virtual-clock.ts";
import { Node, refusal } from "../../test/slots/slot-node.ts";
import { a, b, c, endpoint } from "../../test/slots/slot-play.ts";
import { stateWords, WireState } from "./slot-view.ts";

describe("a slot", () => {
  test("holds requests until the engines of an earlier agent are known, and serves their models without a restart", async () => {
    const node = new Node();
    const ready = node.slots.readopt();
    const held = node.request(a);
    await settle();
    expect(node.slots.views()[0]).toMatchObject({ state: WireState.STARTING, waiting: 1 });
    node.engine.adoption!.resolve({ model: a, endpoint });
    await ready;
    expect((await held).endpoint).toBe(endpoint);
    expect(node.engine.asked).toEqual(["readopt"]);
  });

  test("looks for these engines again after a pause if that failed", async () => {
    const node = new Node();
    const ready = node.slots.readopt();
    const early = node.request(a);
    node.engine.adoption!.reject(new Error("no"));
    expect(await refusal(early)).toBe("model_unavailable 2");
    await ready;
    expect(node.slots.views()[0]!.state, "the node works without this slot").toBe(WireState.FAILED);
    await node.clock.advanceAsync(2_000);
    node.engine.adoption!.resolve(undefined);
    await settle();
    expect(node.slots.views()[0]!.state).toBe(WireState.EMPTY);
  });

  test("does not delay other slots while the engines of an earlier agent are unknown", async () => {
    const node = new Node({ s: [a], t: [b] });
    const ready = node.slots.readopt();
    node.engines.get("t")!.adoption!.resolve(undefined);
    await node.clock.advanceAsync(20_000);
    await ready;
    expect(node.slots.views().map(({ state }) => state)).toEqual([WireState.FAILED, WireState.EMPTY]);
    expect((await node.activated(b, "t")).slot).toBe("t");
    expect(await refusal(node.request(a))).toMatch(/^model_unavailable/);
  });

  test("shows the standing of each waiting request, and on admission the estimate of its arrival [B9]", async () => {
    const node = await Node.begun();
    const [first, second] = [node.request(a), node.request(a)];
    expect([...node.slots.waiting().values()]).toEqual([
      { position: 1, estimateMs: 10_000 },
      { position: 2, estimateMs: 10_000 },
    ]);
    await node.clock.advanceAsync(4_000);
    expect([...node.slots.waiting().values()].map(({ estimateMs }) => estimateMs)).toEqual([6_000, 6_000]);
    node.engine.activation!.resolve(endpoint);
    expect(await first).toMatchObject({ waitedMs: 4_000, estimatedMs: 10_000 });
    (await second).release();
    expect(node.slots.waiting().size).toBe(0);
    expect((await node.request(a)).estimatedMs, "the request did not wait").toBeUndefined();
    const admitted = node.told.filter(([event]) => event === "requestAdmitted");
    expect(admitted.map(([, , , ...ms]) => ms)).toEqual([
      [4_000, 10_000],
      [4_000, 10_000],
      [0, undefined],
    ]);
  });

  test("sends an engine no more requests than it reports to run, whatever is configured", async () => {
    const node = await Node.begun();
    const first = node.request(a);
    const second = node.request(a);
    node.engine.activation!.resolve({ ...endpoint, parallelMax: 1 });
    (await first).release();
    const admission = await second;
    expect(node.slots.views()[0]).toMatchObject({ running: 1, maxConcurrent: 1 });
    const third = node.request(a);
    await settle();
    expect(node.slots.views()[0]).toMatchObject({ running: 1, waiting: 1 });
    admission.release();
    expect((await third).waitedMs).toBe(0);
  });

  test("counts answers, not requests, in running, in waiting, and in the retry-after of a refused request", async () => {
    const node = await Node.begun();
    const both = node.request(a, { answers: 2 });
    node.engine.activation!.resolve({ ...endpoint, parallelMax: 2 });
    void node.request(a, { answers: 2, routerId: "r2" });
    await both;
    expect(node.slots.views()[0]).toMatchObject({
      ...{ running: 2, runningByRouter: new Map([["r1", 2]]), waiting: 2, waiters: [{ model: a, waiting: 2 }] },
    });
    const error = await node.request(a, { answers: 3 }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      kind: "invalid_request",
      param: "n",
      message: expect.stringContaining("at most 2:"),
    });
    expect(node.told.at(-1)).toEqual(["requestRefused", "s", a, "too_many_answers"]);
  });

  test("gives an admission its slot, engine, endpoint and waiting time", async () => {
    const node = await Node.begun();
    const held = node.request(a);
    await node.clock.advanceAsync(1_500);
    node.engine.activation!.resolve(endpoint);
    expect(await held).toMatchObject({ slot: "s", engine: { model: a }, endpoint, waitedMs: 1_500 });
  });

  test("reports its state, running requests per router, waiters, and when it closes", async () => {
    const node = await Node.begun();
    await node.activated(a);
    await node.clock.advanceAsync(1_000);
    await node.request(a, { routerId: "r2" });
    void node.request(b);
    await node.clock.advanceAsync(4_000);
    expect(node.slots.views()[0]).toEqual({
      name: "s",
      models: [a, b, c],
      state: WireState.DRAINING_OPEN,
      activeModel: a,
      nextModel: b,
      running: 2,
      runningByRouter: new Map([
        ["r1", 1],
        ["r2", 1],
      ]),
      waiting: 1,
      waiters: [{ model: b, waiting: 1, nextServedMs: 26_000, lastServedMs: 26_000 }],
      oldestRunningMs: 5_000,
      oldestWaitingMs: 4_000,
      closesInMs: 6_000,
      stateAgeMs: 4_000,
      maxConcurrent: 2,
      sleepers: [],
    });
  });

  test("loses an engine that reports that it is dead, with all its requests, and restarts it", async () => {
    const node = await Node.begun();
    const admissions = [await node.activated(a), await node.request(a)];
    const deaths: unknown[] = [];
    for (const one of admissions) one.onEngineLost((death) => deaths.push(death));
    for (const one of admissions) one.lose("core died");
    expect([deaths, node.engine.asked.at(-1)]).toEqual([["shared", "shared"], "retire a for good"]);
    node.engine.retirement!.resolve();
    await node.clock.advanceAsync(2_000);
    node.engine.activation!.resolve(endpoint);
    await settle();
    admissions[0]!.lose("core died");
    expect(node.slots.views()[0]).toMatchObject({ state: WireState.ACTIVE, activeModel: a });
    expect(node.told.filter(([event]) => event === "engineDied")).toEqual([["engineDied", "s", a, "core died"]]);
  });

  test("notifies running requests that their engine exited", async () => {
    const node = await Node.begun();
    const told: string[] = [];
    const running = await node.activated(a);
    running.onEngineLost(() => told.push("running"));
    const ended = await node.request(a);
    ended.onEngineLost(() => told.push("ended"));
    ended.release();
    node.engine.exit(a, { reason: "signal SIGKILL", output: "" });
    expect(node.slots.views()[0]).toMatchObject({ running: 0, runningByRouter: new Map() });
    expect(node.slots.views()[0]!.oldestRunningMs).toBeUndefined();
    expect(told).toEqual(["running"]);
    running.onEngineLost(() => told.push("late"));
    expect(told).toEqual(["running", "late"]);
    expect(node.engine.asked.at(-1)).toBe("retire a for good");
  });

  test("distinguishes the requests of a new engine from requests of the engine before", async () => {
    const node = await Node.begun();
    const told: string[] = [];
    const before = await node.activated(a);
    before.onEngineLost(() => told.push("before"));
    before.suspect("silent for 60 s");
    before.release();
    node.engine.retirement!.resolve();
    await node.clock.advanceAsync(2_000);
    node.engine.activation!.resolve(endpoint);
    await settle();
    const after = await node.request(a);
    after.onEngineLost(() => told.push("after"));
    before.suspect("silent for 60 s");
    expect(node.slots.views()[0]!.state).toBe(WireState.ACTIVE);
    expect(told).toEqual([]);
  });

  test("measures the phases of a switch", async () => {
    const node = await Node.begun();
    const first = await node.activated(a);
    void node.request(b);
    await node.clock.advanceAsync(12_000);
    first.release();
    await node.clock.advanceAsync(300);
    node.engine.retirement!.onPhase("memory");
    await node.clock.advanceAsync(500);
    node.engine.retirement!.resolve();
    await settle();
    node.engine.retirement!.onPhase("memory"); // Too late: this retirement has already ended.
    await node.clock.advanceAsync(2_000);
    expect(node.slots.views()[0]!.switching).toEqual({ ageMs: 2_800, phase: "start" });
    node.engine.activation!.onPhase("probe");
    expect(node.slots.views()[0]!.switching).toEqual({ ageMs: 2_800, phase: "probe" });
    await node.clock.advanceAsync(40);
    node.engine.activation!.resolve(endpoint);
    await settle();
    const phasesMs = { drain: 12_000, stop: 300, memory: 500, start: 2_000, probe: 40 };
    const switches = node.told.filter(([event]) => event === "switched");
    expect(switches.at(-1)).toEqual(["switched", "s", { from: a, model: b, tookMs: 14_840, phasesMs }]);
  });

  test("reports that a request for a model whose drain is closed waited for a switch", async () => {
    const node = await Node.begun();
    const first = await node.activated(a);
    const other = node.request(b);
    await node.clock.advanceAsync(10_000);
    const held = node.request(a);
    first.release();
    const start = async () => {
      await node.clock.advanceAsync(5_000); // the minimum residency
      node.engine.retirement!.resolve();
      await settle();
      node.engine.activation!.resolve(endpoint);
    };
    await start();
    (await other).release();
    await start();
    expect(await held).toMatchObject({ engine: { model: a }, waitedFor: "switch" });
  });

  test("calls back at once when the state or the next model changes, not for each request", async () => {
    const node = await Node.begun();
    let moves: string[] = [];
    const forget = node.slots.onMove((slot) => {
      const { state, activeModel, nextModel } = node.slots.views()[0]!;
      moves.push([slot, stateWords[state], activeModel, nextModel].filter(Boolean).join(" "));
    });
    const admission = await node.activated(a);
    expect(moves).toEqual(["s starting a", "s active a"]);
    moves = [];
    (await node.request(a)).release();
    expect(moves, "of requests").toEqual([]);
    const waiter = new AbortController();
    void node.request(b, { signal: waiter.signal });
    void node.request(c);
    waiter.abort();
    void node.request(b);
    await node.clock.advanceAsync(10_000);
    expect(moves).toEqual(["s draining-open a b", "s draining-open a c", "s draining-closed a c"]);
    forget();
    admission.release();
    expect(moves).toHaveLength(3);
  });

  test("has no timer when nothing is due", async () => {
    const node = await Node.begun();
    const first = await node.activated(a);
    void node.request(b);
    expect(node.clock.pending).toBe(1);
    first.release();
    await node.clock.advanceAsync(10_000);
    node.engine.retirement!.resolve();
    await settle();
    node.engine.activation!.resolve(endpoint);
    await settle();
    expect(node.clock.pending).toBe(0);
  });
});

describe("closing", () => {
  test("refuses waiting and new requests, lets running ones end, and leaves the engines alone [B6]", async () => {
    const node = await Node.begun();
    const first = await node.activated(a);
    const waiter = node.request(b);
    const closed = node.slots.close({ stopEngines: false, deadlineMs: 60_000 });
    node.slots.setMaintenance(false);
    expect(await refusal(waiter)).toBe("maintenance 30");
    expect(await refusal(node.request(a))).toBe("maintenance 30");
    first.release();
    await closed;
    expect(node.engine.asked).toEqual(["readopt", "activate a"]);
    expect(node.clock.pending).toBe(0);
  });

  test("ends at its deadline, and if asked stops the engines and notifies their requests", async () => {
    const node = await Node.begun();
    let isTold = false;
    (await node.activated(a)).onEngineLost(() => (isTold = true));
    const closed = node.slots.close({ stopEngines: true, deadlineMs: 10_000 });
    await node.clock.advanceAsync(9_999);
    expect(isTold).toBe(false);
    await node.clock.advanceAsync(1);
    await closed;
    expect(isTold).toBe(true);
    expect(node.engine.asked.at(-1)).toBe("stop all");
  });
});
