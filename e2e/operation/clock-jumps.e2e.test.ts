/**
 * Tests jumps of the wall clocks of router and agent, together and separately, during streams and usage delivery. No stream
 * ends, every answer is recorded once, and no limit per minute changes.
 */
import { writeFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, reachableDirectory, until } from "../cluster/cluster.ts";
import { preload } from "../cluster/preloaded-file.ts";
import { catalogueOf, simEngine } from "../cluster/sim-node.ts";
import { askStream, type Answer } from "../cluster/api-client.ts";
import { dumpUsage } from "../cluster/usage-dump.ts";

const hourMs = 3_600_000;
const shiftsMs = process.env["WEICHE_NIGHTLY"]
  ? [hourMs, 0, -hourMs, 0, 48 * hourMs, 0, -48 * hourMs, 0, 48 * hourMs, -48 * hourMs, 0]
  : [48 * hourMs, 0, -hourMs, 0];
const programs = ["router", "node-agent"] as const;
const whose = process.env["WEICHE_NIGHTLY"] ? [programs, ["router"], ["node-agent"]] : [programs];

const directory = reachableDirectory("weiche-clocks-");

let cluster: Cluster;
const keys: string[] = [];
const seen: Answer[] = [];

beforeAll(async () => {
  // Accounts have no package before the time of their creation. These are older than every jump.
  jump(programs, -72 * hourMs);
  cluster = await Cluster.start({
    catalogue: catalogueOf("sim"),
    agents: { "node-1": { slots: [{ name: "a", engines: [simEngine("sim", { "itl-ms": 20 })] }] } },
    environment: { NODE_OPTIONS: preload(join(import.meta.dirname, "shifted-clock.ts"), directory) },
  });
  for (const name of ["One", "Two", "Three"]) keys.push((await cluster.account(name)).apiKey);
  jump(programs, 0);
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

async function ask(apiKey: string, tokens: number): Promise<Answer> {
  const one = await askStream({ baseUrl: cluster.baseUrl, apiKey, model: "sim", text: `sim:tokens=${tokens} go on` });
  seen.push(one);
  return one;
}

async function metric(name: string, program: "router" | "agent"): Promise<number> {
  const { listen } = program === "router" ? cluster.router : cluster.agents.get("node-1")!;
  const text = await (await fetch(`http://${listen["ops"]}/metrics`)).text();
  const values = text.split("\n").flatMap((line) => (line.startsWith(name) ? [Number(line.split(" ").at(-1))] : []));
  return values.reduce((sum, value) => sum + value, 0);
}

function jump(jumping: readonly string[], shiftMs: number): void {
  for (const program of jumping) writeFileSync(join(directory, program), String(shiftMs));
}

test(
  "streams continue and every answer is recorded once",
  async () => {
    let stopped = false;
    const load = keys.slice(0, 2).map(async (apiKey) => {
      while (!stopped) await ask(apiKey, 40);
    });
    const whole = () => seen.length;
    await until("the first answers", () => whole() >= 2);
    for (const jumping of whose) {
      for (const shiftMs of shiftsMs) {
        jump(jumping, shiftMs);
        const before = whole();
        await until("answers that began after the jump", () => whole() >= before + 3);
      }
    }
    stopped = true;
    await Promise.all(load);
    expect(seen.filter(({ ending }) => ending !== "whole")).toEqual([]);
    await until("all usage to be committed", async () => (await metric("weiche_agent_outbox_records", "agent")) === 0);
    expect(await metric('weiche_router_usage_records_total{result="refused"}', "router")).toBe(0);
    const recorded = (await dumpUsage(cluster)).filter(({ outcome }) => outcome !== "broken");
    const show = (id: string | undefined, tokens: number) => `${id} ${tokens}`;
    expect(recorded.map(({ requestId, completionTokens }) => show(requestId, completionTokens)).toSorted()).toEqual(
      seen.map(({ id, usage }) => show(id, usage!.completion_tokens!)).toSorted(),
    );
    expect(await metric("weiche_router_parallel_requests", "router")).toBe(0);
    expect(await metric("weiche_agent_running_requests", "agent")).toBe(0);
  },
  60_000 + whose.length * shiftsMs.length * 15_000,
);

test("a used-up limit per minute lasts at most a minute, whatever the wall clock shows", async () => {
  const apiKey = keys[2]!;
  let refused: Answer | undefined;
  await until("the limit to be reached", async () => {
    const asked = await Promise.all([1, 2, 3, 4].map(() => ask(apiKey, 1)));
    refused = asked.find(({ status }) => status === 429);
    return refused !== undefined;
  });
  for (const shiftMs of [hourMs, -hourMs, 0]) {
    jump(programs, shiftMs);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const again = await ask(apiKey, 1);
    expect([again.status, again.error?.code]).toEqual([429, "rate_limit_exceeded"]);
    expect(again.retryAfterSeconds).toBeLessThanOrEqual(60);
  }
});
