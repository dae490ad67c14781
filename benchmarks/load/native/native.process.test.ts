/** Tests the load client directly against the engine. The client must notice every defect of an answer. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { compileNatives, type Natives } from "./compile.ts";
import { runLoad, startEngine, type Ending, type Load, type RunningEngine } from "./run-load.ts";

const ifRun = needs("cc");

let natives: Natives;
let engine: RunningEngine;

beforeAll(async () => {
  natives = compileNatives();
  engine = await startEngine(natives, undefined, "m");
});
afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

function run(load: Partial<Load>) {
  return runLoad(natives, undefined, { port: engine.port, connections: 1, seconds: 20, ...load });
}

async function state({ port }: RunningEngine = engine): Promise<{
  requests: number;
  tokens: number;
  running: number;
  left: number;
}> {
  return (await (await fetch(`http://127.0.0.1:${port}/load/state`)).json()) as never;
}

function only(ending: Ending, count: number) {
  const none = { whole: 0, refused: 0, cut: 0, undone: 0, miscounted: 0, told: 0, unconnected: 0, stalled: 0 };
  return { ...none, [ending]: count };
}

test("whole streams are counted token by token", ifRun, async () => {
  const before = await state();
  const { endings, gapUs, delayUs } = await run({ connections: 3, each: 2, stream: true, tokens: 20, itl: 2_000 });
  expect(endings).toEqual(only("whole", 6));
  expect((await state()).tokens - before.tokens).toBe(6 * 20);
  expect(delayUs.count).toBe(6 * 20);
  expect(gapUs.count).toBe(6 * 19);
  expect(gapUs.p50).toBeGreaterThan(500);
});

test("connections use several ports in turn", ifRun, async () => {
  await using second = await startEngine(natives, undefined, "m");
  const { endings } = await run({ port: `${engine.port},${second.port}`, connections: 4, each: 1 });
  expect(endings).toEqual(only("whole", 4));
  expect(await state(second)).toMatchObject({ requests: 2 });
});

test("JSON answers to bodies of several megabytes are counted as whole", ifRun, async () => {
  const { endings, requests } = await run({ connections: 2, each: 3, tokens: 5, body: 3_000_000 });
  expect(endings).toEqual(only("whole", 6));
  expect(requests).toBe(6);
});

describe("the client notices", ifRun, () => {
  test.each<[string, Partial<Load>, Ending]>([
    ["a stream that is cut", { stream: true, steer: "cut=5" }, "cut"],
    ["a stream without [DONE]", { stream: true, steer: "undone=1" }, "undone"],
    ["a token too few", { stream: true, steer: "short=1" }, "miscounted"],
    ["a token too few in a JSON answer", { steer: "short=1" }, "miscounted"],
    ["a status that is not 200", { path: "/nothing" }, "refused"],
    ["silence", { stream: true, wait: 60_000_000, stall: 1 }, "stalled"],
  ])("%s", async (_what, load, ending) => {
    // The client tries again after a stall, so the run ends by its time.
    const { endings } = await run({
      connections: 2,
      each: 1,
      tokens: 10,
      ...load,
      ...(ending === "stalled" && { seconds: 3 }),
    });
    expect(endings[ending]).toBeGreaterThanOrEqual(2);
    expect({ ...endings, [ending]: 0 }).toEqual(only(ending, 0));
  });

  test("that no server listens", async () => {
    const { endings } = await run({ port: 1, seconds: 0.2 });
    expect(endings.unconnected).toBeGreaterThan(0);
    expect(endings.whole).toBe(0);
  });
});

test("the engine notices a client that leaves, and shows an agent its state", ifRun, async () => {
  const before = await state();
  const leave = new AbortController();
  const gone = runLoad(
    natives,
    undefined,
    { port: engine.port, connections: 2, seconds: 60, warmup: 0.5, stream: true, tokens: 10_000, itl: 10_000 },
    { measuring: (open) => open === 2 && leave.abort() },
    leave.signal,
  );
  await expect(gone).rejects.toThrow("without a result");
  await expect.poll(async () => (await state()).left - before.left, { timeout: 10_000 }).toBe(2);
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${engine.port}${path}`)).text();
  expect(await get("/v1/models")).toContain('"id":"m"');
  expect(await get("/metrics")).toContain('vllm:num_requests_running{model_name="m"} 0');
  const probe = await fetch(`http://127.0.0.1:${engine.port}/v1/completions`, {
    method: "POST",
    body: '{"prompt":"1"}',
  });
  expect(((await probe.json()) as { choices: unknown[] }).choices).toHaveLength(1);
});
