/** Tests a prompt that kills engines. After two deaths it is refused, and all other clients are served. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, until } from "../cluster/cluster.ts";
import { simNodes } from "../cluster/sim-node.ts";
import { askStream, type Answer } from "../cluster/api-client.ts";

const nodes = ["node-1", "node-2"];
const poison = "sim:fault=crash:0 poison";
let cluster: Cluster;
let apiKey: string;

beforeAll(async () => {
  cluster = await Cluster.start(simNodes(["model-a"], nodes, { backoffSeconds: { min: 0.2, max: 0.2 } }));
  ({ apiKey } = await cluster.account());
});
afterAll(() => cluster[Symbol.asyncDispose]());

function ask(text: string, onPiece?: (pieces: number) => void): Promise<Answer> {
  return askStream({ baseUrl: cluster.baseUrl, apiKey, model: "model-a", text, onPiece });
}

/**
 * Repeats a request while it gets 503, because an engine is coming back. Pauses stay within the limits of the package.
 */
async function askThrough(text: string): Promise<Answer> {
  let seen = await ask(text);
  for (let times = 0; seen.status === 503 && times < 60; times++) {
    await sleep(250);
    seen = await ask(text);
  }
  return seen;
}

async function liveNodes(): Promise<number> {
  const seen = await cluster.nodes();
  return seen.filter(({ state }) => state === "live").length;
}

/** Number of engines that have ended, by the agents' own counts. */
async function engineExits(): Promise<number> {
  let exits = 0;
  for (const agent of cluster.agents.values()) {
    const text = await (await fetch(`http://${agent.listen["ops"]}/metrics`)).text();
    for (const [, count] of text.matchAll(/^weiche_agent_engine_restarts_total\{.*reason="exit".*\} (\d+)$/gm))
      exits += Number(count);
  }
  return exits;
}

test("after two deaths a prompt gets 500 at once, nodes stay up, and all other requests are served, even if their first answers were cut [C7]", async () => {
  expect((await askThrough("sim:tokens=3")).ending).toBe("whole");
  let innocent: Promise<Answer> | undefined;
  const begun = new Promise<void>((resolve) => {
    innocent = ask("sim:tokens=2000,itl=20 innocent", () => resolve());
  });
  await begun;
  for (const code of ["engine_died", "engine_died", "request_barred"])
    expect(await askThrough(poison)).toMatchObject({ status: 500, error: { code } });
  await until("the engines to be back", async () => (await engineExits()) === 2);
  for (let times = 0; times < 3; times++)
    expect(await ask(poison)).toMatchObject({ status: 500, error: { code: "request_barred" } });
  for (const text of ["sim:tokens=3 another", "sim:tokens=3 innocent"])
    expect((await askThrough(text)).ending).toBe("whole");
  expect([await engineExits(), await liveNodes()]).toEqual([2, nodes.length]);
  expect((await innocent!).ending).toMatch(/^(whole|error)$/);
});
