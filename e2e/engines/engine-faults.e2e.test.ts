/**
 * Tests engines that die or freeze at every moment of their lives. The client gets a clear answer, and the model comes
 * back.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Cluster, isAlive, reachableDirectory, until } from "../cluster/cluster.ts";
import { SimNodeEngine, catalogueOf, simEngine } from "../cluster/sim-node.ts";
import { askStream, type Answer } from "../cluster/api-client.ts";

const directory = reachableDirectory("weiche-faults-");
/** The faults with which the next process of model-a begins. */
const faultFile = join(directory, "faults");
const backoffSeconds = 3;

let cluster: Cluster;
let apiKey: string;
let frozen: ReturnType<typeof freeze>;
let silenced: ReturnType<typeof silence>;

beforeAll(async () => {
  const slot = {
    minResidencySeconds: 0,
    startSeconds: 6,
    backoffSeconds: { min: backoffSeconds, max: backoffSeconds },
  };
  cluster = await Cluster.start({
    catalogue: catalogueOf("model-a", "model-b", "model-c", "model-d"),
    agents: {
      "node-1": {
        requestSeconds: 12,
        slots: [
          { ...slot, name: "a", engines: [simEngine("model-a", { "fault-file": faultFile }), simEngine("model-b")] },
          { ...slot, name: "frozen", engines: [simEngine("model-c")] },
          { ...slot, name: "deaf", engines: [simEngine("model-d")] },
        ],
      },
    },
  });
  ({ apiKey } = await cluster.account());
  frozen = freeze();
  silenced = silence();
  for (const beside of [frozen, silenced]) beside.catch(() => {}); // the test itself awaits it
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

function ask(model: string, text = "sim:tokens=3", onPiece?: (pieces: number) => void): Promise<Answer> {
  return askStream({ baseUrl: cluster.baseUrl, apiKey, model, text, onPiece });
}

/**
 * Codes of honest refusals. A request that is held while a hung engine is replaced may reach its own timeout of 12 s.
 */
const refusals: readonly (string | undefined)[] = ["model_unavailable", "timeout"];

/** Asks until the model is served again. Every earlier answer must be an honest refusal. */
async function served(model: string): Promise<void> {
  await until(`${model} to be served`, async () => {
    const seen = await ask(model);
    const isHonest = seen.ending === "whole" || (seen.status !== 200 && refusals.includes(seen.error?.code));
    if (!isHonest) throw new Error(JSON.stringify(seen));
    if (seen.ending !== "whole") await sleep(250); // stays within the limits of the package
    return seen.ending === "whole";
  });
}

function engineOf(model: string, slot = "a"): SimNodeEngine {
  return new SimNodeEngine(join(cluster.directory, "node-1"), slot, model);
}

async function running(slot: string): Promise<number> {
  const nodes = await cluster.nodes();
  return nodes[0]!.slots.find(({ name }) => name === slot)!.running;
}

async function stopEngine(model: string): Promise<void> {
  const { pid } = engineOf(model);
  if (pid === undefined) return;
  process.kill(pid, "SIGKILL");
  await until("the engine to be gone", () => engineOf(model).pid !== pid);
}

describe("a slot whose engine fails", () => {
  beforeEach(() => rmSync(faultFile, { force: true }));

  // First, because after an earlier failure in a row the requests would be refused.
  test("because it no longer listens, although its process runs, is restarted while requests are held [C6]", async () => {
    await served("model-a");
    const engine = engineOf("model-a");
    const { pid, origin } = engine;
    await engine.setFaults("silent-at-sigterm");
    process.kill(pid!, "SIGTERM");
    const listens = () =>
      fetch(origin).then(
        () => true,
        () => false,
      );
    await until("the engine to refuse connections", async () => !(await listens()));
    const asked = await Promise.all(Array.from({ length: 8 }, () => ask("model-a")));
    const ends = asked.map(({ ending, status, error }) => [ending, status, error?.code]);
    expect(ends).toEqual(asked.map(() => ["whole", 200, undefined]));
    expect(engineOf("model-a").pid).not.toBe(pid);
  });

  test.each([
    ["dies at its start", "crash:start"],
    ["never becomes ready", "never-ready"],
  ])(
    "that %s answers 503 with the backoff, is not started before the backoff ends, and then serves [C6]",
    async (_, fault) => {
      await served("model-b");
      await stopEngine("model-a");
      writeFileSync(faultFile, fault);
      const first = await ask("model-a");
      expect(first).toMatchObject({
        ending: "refused",
        status: 503,
        error: { code: "model_unavailable" },
        retryAfterSeconds: backoffSeconds,
      });
      const startMs = performance.now();
      const again = await ask("model-a");
      expect(again).toMatchObject({ status: 503, error: { code: "model_unavailable" } });
      expect(again.retryAfterSeconds).toBeGreaterThanOrEqual(1);
      expect(performance.now() - startMs, "the second request is refused at once").toBeLessThan(backoffSeconds * 1_000);
      expect(await ask("model-b"), "the slot serves other models meanwhile").toMatchObject({ ending: "whole" });
      rmSync(faultFile);
      await served("model-a");
    },
  );

  test("in the middle of a stream sends an error event and starts the engine again", async () => {
    await served("model-a");
    const { pid } = engineOf("model-a");
    expect(await ask("model-a", "sim:tokens=50,fault=crash:10")).toMatchObject({
      ending: "error",
      status: 200,
      error: { code: "engine_died" },
    });
    await served("model-a");
    expect(engineOf("model-a").pid).not.toBe(pid);
    await until("the slot to be idle", async () => (await running("a")) === 0);
  });

  test("because vLLM's core dies takes no more requests, even while vLLM's front end answers, and restarts vLLM [C6]", async () => {
    await served("model-a");
    const { pid } = engineOf("model-a");
    const died = await ask("model-a", "sim:tokens=50,fault=core-dies:10");
    expect(died).toMatchObject({ ending: "error", status: 200, error: { code: "engine_died" } });
    await served("model-a"); // no client got an engine failure
    expect(engineOf("model-a").pid).not.toBe(pid);
  });

  test.each(["crash:sleep*1", "500:sleep*1"])(
    "at its sleep with %s stops the engine and serves the other model",
    async (fault) => {
      await served("model-a");
      const { pid } = engineOf("model-a");
      await engineOf("model-a").setFaults(fault);
      expect(await ask("model-b")).toMatchObject({ ending: "whole" });
      expect(isAlive(pid!)).toBe(false);
      await served("model-a");
    },
  );

  test.each(["crash:wake*1", "500:wake*1"])(
    "at its wake with %s starts the engine cold for the same request",
    async (fault) => {
      await served("model-a");
      const { pid } = engineOf("model-a");
      expect(await ask("model-b")).toMatchObject({ ending: "whole" });
      await engineOf("model-a").setFaults(fault);
      expect(await ask("model-a")).toMatchObject({ ending: "whole" });
      expect(engineOf("model-a").pid).not.toBe(pid);
    },
  );
});

/** Takes long. It runs on a slot of its own beside the other tests. */
async function freeze() {
  await served("model-c");
  const { pid } = engineOf("model-c", "frozen");
  const seen = await ask("model-c", "sim:tokens=200,itl=20", (pieces) => {
    if (pieces === 5) process.kill(pid!, "SIGSTOP");
  });
  await until("the place to be free", async () => (await running("frozen")) === 0, 5_000);
  await served("model-c");
  return { seen, pid: pid!, pidAfter: engineOf("model-c", "frozen").pid };
}

test("an engine that freezes in the middle of a stream is started again, its client gets an error, and its place is free [C6]", async () => {
  const { seen, pid, pidAfter } = await frozen;
  expect(seen).toMatchObject({ ending: "error", status: 200, error: { code: "500" } });
  expect(pidAfter).not.toBe(pid);
  expect(isAlive(pid), "the frozen process is gone").toBe(false);
});

/** Also runs beside the other tests. */
async function silence() {
  await served("model-d");
  const engine = engineOf("model-d", "deaf");
  const { pid } = engine;
  await engine.setFaults("silent-at-sigterm");
  const seen = await ask("model-d", "sim:tokens=200,itl=20", (pieces) => {
    if (pieces === 5) process.kill(pid!, "SIGTERM");
  });
  await served("model-d");
  return { seen, pid: pid!, pidAfter: engineOf("model-d", "deaf").pid };
}

test("a vLLM that ignores SIGTERM and falls silent is ended by two more SIGTERMs, and its client gets an error [C6]", async () => {
  const { seen, pid, pidAfter } = await silenced;
  expect(seen).toMatchObject({ ending: "error", status: 200, error: { code: "500" } });
  expect(pidAfter).not.toBe(pid);
  expect(isAlive(pid)).toBe(false);
});
