/** Tests that a request with two attempts or without an answer costs only what its client received. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Received } from "../cluster/billing-check.ts";
import { until } from "../cluster/cluster.ts";
import { dumpUsage } from "../cluster/usage-dump.ts";
import { KillCluster } from "./kill-cluster.ts";

const stoppedMs = 7_000;
/** A silent node is not chosen after this time. */
const noticedMsMax = 5_000;

let system: KillCluster;
beforeAll(async () => (system = await KillCluster.start({ nodes: 2, itlMs: 20 })));
afterAll(() => system[Symbol.asyncDispose]());
afterEach(() => system.settled());

test("a request whose node falls silent before the first byte is answered by the other node and costs once [A1]", async () => {
  const asked = askUntilBegun(system, 4);
  const node = await asked.node;
  await system.silence([node], "data", ["up", "down"], () => asked.answers);
  const other = system.nodes.find((name) => name !== node);
  for (const one of await asked.answers) {
    expect(one.ending).toBe("whole");
    expect(system.nodeOf(one.usage!.completion_tokens!)).toBe(other);
  }
});

test("if an agent freezes for 7 s, answers of the other node cost once, cut streams cost nothing, and the frozen node is not chosen after 5 s [C1]", async () => {
  const node = system.nodes[0]!;
  const slow = { steering: "itl=50" };
  const bodies = Array.from({ length: 10 }, () => system.ask({ ...slow, kind: "json" }));
  let begun = 0;
  const onPiece = (pieces: number) => pieces === 1 && begun++;
  const streams = Array.from({ length: 10 }, () => system.ask({ ...slow, onPiece }));
  await until("all streams to have begun", () => begun === streams.length);
  const late: Received[] = [];
  await system.stopAgent(node, async () => {
    await sleep(noticedMsMax);
    late.push(...(await Promise.all(Array.from({ length: 10 }, () => system.ask({ kind: "json" })))));
    await sleep(stoppedMs - noticedMsMax);
  });
  const cut = (await Promise.all(streams)).filter(({ ending }) => ending !== "whole");
  expect(cut.length).toBeGreaterThan(0);
  expect(new Set(cut.map(({ ending }) => ending))).toEqual(new Set(["error"]));
  expect([...(await Promise.all(bodies)), ...late].filter(({ ending }) => ending !== "whole")).toEqual([]);
  await system.settled();
  const ids = new Set(late.map(({ id }) => id));
  const records = (await dumpUsage(system.cluster)).filter(({ requestId }) => ids.has(requestId));
  expect(new Set(records.map((record) => `attempt ${record.attempt} on ${record.node}`))).toEqual(
    new Set([`attempt 1 on ${system.nodes[1]}`]),
  );
});

test("a client that received no_node_available pays nothing, whatever its nodes generated [A1]", async () => {
  const asked = askUntilBegun(system, 3);
  await asked.node;
  await system.silence(system.nodes, "data", ["up", "down"], () => asked.answers);
  expect((await asked.answers).map(({ status, error }) => [status, error?.code])).toEqual(
    Array.from({ length: 3 }, () => [503, "no_node_available"]),
  );
});

/** Sends requests for one body. The first runs on `node`. */
function askUntilBegun(system: KillCluster, requests: number) {
  const answers = Promise.all(Array.from({ length: requests }, () => system.ask({ kind: "json" })));
  const node = (async () => {
    let found: string | undefined;
    await until("an engine to work", async () => {
      for (const name of system.nodes) if ((await system.engine(name).state()).running > 0) found = name;
      return found !== undefined;
    });
    return found!;
  })();
  return { answers, node };
}
