/**
 * `kill -9` of agent and router in the middle of load. A checker that knows only what the clients received and what the
 * engines generated compares it with what the command says was billed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, enginePids, until } from "../cluster/cluster.ts";
import { SimNodeEngine, catalogueOf, simEngine } from "../cluster/sim-node.ts";
import { askStream } from "../cluster/stream-client.ts";
import { createRandom } from "@weiche/shared/testing/random.ts";

const seed = Number(process.env["WEICHE_SEED"] ?? 20_261_121);
const kills = process.env["WEICHE_NIGHTLY"] ? 40 : 4;
/** More accounts than one, since a package allows 150 requests a minute. */
const accounts = 6;
const clientsPerAccount = 2;
const clients = accounts * clientsPerAccount;

let cluster: Cluster;
const customers: { readonly accountId: string; readonly apiKey: string }[] = [];

beforeAll(async () => {
  cluster = await Cluster.start({
    catalogue: catalogueOf("sim"),
    agents: { "node-1": { slots: [{ name: "a", engines: [simEngine("sim", { "ttft-ms": 10 })] }] } },
  });
  for (let number = 0; number < accounts; number++) customers.push(await cluster.account(`Customer-${number}`));
});
afterAll(() => cluster[Symbol.asyncDispose]());

/** How one request ended, as its client saw it. */
interface Seen {
  readonly id: string | undefined;
  /** `whole`: the terminator came. `left`: the client ended it. `broken`: something else did. `refused`: a status. */
  readonly ending: "whole" | "left" | "broken" | "refused";
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** One streamed request that its client ends after `leaveAfter` pieces, if at all. */
async function ask(apiKey: string, tokens: number, leaveAfter: number): Promise<Seen> {
  const leaving = new AbortController();
  const onPiece = (pieces: number) => {
    if (pieces >= leaveAfter) leaving.abort();
  };
  const text = `sim:tokens=${tokens} go on`;
  const seen = await askStream({
    baseUrl: cluster.baseUrl,
    apiKey,
    model: "sim",
    text,
    signal: leaving.signal,
    onPiece,
  });
  const { id, promptTokens } = seen;
  if (seen.ending === "whole") return { id, ending: "whole", promptTokens, completionTokens: seen.completionTokens };
  const cut = leaving.signal.aborted ? "left" : "broken";
  return { id, ending: seen.ending === "refused" ? "refused" : cut, promptTokens, completionTokens: seen.pieces };
}

async function usageTotals() {
  const sums = { requests: 0, promptTokens: 0, completionTokens: 0 };
  for (const { accountId } of customers) {
    const { totals } = (await cluster.weiche("usage", "--account", accountId)) as { totals: typeof sums };
    for (const field of ["requests", "promptTokens", "completionTokens"] as const) sums[field] += totals[field];
  }
  return sums;
}

test(
  `through ${kills} kills under load every finished or client-ended request is recorded exactly once, broken ones cost nothing`,
  async () => {
    const random = createRandom(seed);
    const seen: Seen[] = [];
    let stopped = false;
    const first = await ask(customers[0]!.apiKey, 3, Infinity);
    expect(first.ending).toBe("whole");
    seen.push(first);
    const dataDir = join(cluster.directory, "node-1");
    const enginesBefore = enginePids(dataDir);

    const load = Array.from({ length: clients }, async (_, index) => {
      const { apiKey } = customers[index % accounts]!;
      while (!stopped) {
        const one = await ask(apiKey, 20 + random.below(100), random.chance(0.3) ? 1 + random.below(30) : Infinity);
        seen.push(one);
        if (one.ending === "refused" || one.id === undefined) await sleep(100);
      }
    });
    for (let kill = 0; kill < kills; kill++) {
      await sleep(500 + random.below(700));
      if (kill % 2 === 0) {
        cluster.agents.get("node-1")!.kill("SIGKILL");
        await cluster.agents.get("node-1")!.exited();
        await cluster.startAgent("node-1");
      } else {
        cluster.router.kill("SIGKILL");
        await cluster.router.exited();
        await cluster.startRouter();
      }
      await cluster.linked();
      const wholeBefore = seen.filter(({ ending }) => ending === "whole").length;
      await until(
        "answers to be whole again",
        () => seen.filter(({ ending }) => ending === "whole").length > wholeBefore + clients,
      );
    }
    stopped = true;
    await Promise.all(load);

    expect(enginePids(dataDir), "engines were not restarted").toEqual(enginesBefore);
    const whole = seen.filter(({ ending }) => ending === "whole");
    const left = seen.filter(({ ending }) => ending === "left");
    const broken = seen.filter(({ ending }) => ending === "broken");
    expect(whole.length).toBeGreaterThan(50);
    expect(left.length).toBeGreaterThan(5);
    const sum = (list: readonly Seen[], field: "promptTokens" | "completionTokens") =>
      list.reduce((total, one) => total + one[field], 0);

    await until(
      "all records to be committed",
      async () => (await usageTotals()).requests >= whole.length + left.length,
      15_000,
    );
    const totals = await usageTotals();
    // A broken answer is recorded whole where its engine had finished before, and one that its client ended costs at most
    // what the engine had made when it was told.
    const engine = new SimNodeEngine(dataDir, "a", "sim");
    const generated = new Map((await engine.requests()).map((request) => [request.id, request]));
    const made = (list: readonly Seen[]) =>
      list.reduce((total, { id = "" }) => total + (generated.get(id)?.generated ?? 0), 0);
    const finishedBefore = broken.filter(({ id = "" }) => generated.get(id)?.finished);
    expect(totals.completionTokens).toBeGreaterThanOrEqual(
      sum(whole, "completionTokens") + sum(left, "completionTokens"),
    );
    expect(totals.completionTokens).toBeLessThanOrEqual(
      sum(whole, "completionTokens") + made(left) + made(finishedBefore),
    );
    expect(totals.promptTokens).toBeGreaterThanOrEqual(sum(whole, "promptTokens"));
    expect(totals.requests).toBeLessThanOrEqual(whole.length + left.length + broken.length);
    await until("the outbox to be empty", outboxEmpty);
  },
  kills * 60_000,
);

async function outboxEmpty(): Promise<boolean> {
  const metrics = await (await fetch(`http://${cluster.agents.get("node-1")!.listen["ops"]}/metrics`)).text();
  return metrics.includes("weiche_agent_outbox_records 0\n");
}
