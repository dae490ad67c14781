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
import { dumpUsage, type DumpedRecord } from "../cluster/usage-dump.ts";
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
  readonly endedAtMs: number;
}

/** When something was killed, and when all was back. */
interface Outage {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** So long the news of a client's leaving may take to the agent. Who leaves right before a kill is in doubt. */
const leavingMsMax = 1_000;

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
  const endedAtMs = performance.now();
  if (seen.ending === "whole")
    return { id, ending: "whole", promptTokens, completionTokens: seen.completionTokens, endedAtMs };
  const cut = leaving.signal.aborted ? "left" : "broken";
  const ending = seen.ending === "refused" ? "refused" : cut;
  return { id, ending, promptTokens, completionTokens: seen.pieces, endedAtMs };
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
    const outages: Outage[] = [];
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
      await sleep(leavingMsMax + 300 + random.below(700));
      const fromMs = performance.now();
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
      outages.push({ fromMs, untilMs: performance.now() });
      const wholeBefore = seen.filter(({ ending }) => ending === "whole").length;
      await until(
        "answers to be whole again",
        () => seen.filter(({ ending }) => ending === "whole").length > wholeBefore + clients,
      );
    }
    stopped = true;
    await Promise.all(load);

    expect(enginePids(dataDir), "engines were not restarted").toEqual(enginesBefore);
    const by = (ending: Seen["ending"]) => seen.filter((one) => one.ending === ending);
    const inDoubt = ({ endedAtMs }: Seen) =>
      outages.some(({ fromMs, untilMs }) => endedAtMs > fromMs - leavingMsMax && endedAtMs < untilMs);
    const owed = [...by("whole"), ...by("left").filter((one) => !inDoubt(one))];
    expect(by("whole").length).toBeGreaterThan(50);
    expect(owed.length - by("whole").length).toBeGreaterThan(5);

    let records: ReadonlyMap<string, readonly DumpedRecord[]> = new Map();
    const missing = () => owed.filter(({ id = "" }) => !records.has(id));
    await until("the outbox to be empty", outboxEmpty);
    const unrecorded = await until("every finished or client-ended request to be recorded", async () => {
      records = Map.groupBy(await paidRecords(), ({ requestId }) => requestId);
      return missing().length === 0;
    }).then(() => [], missing);
    expect(unrecorded).toEqual([]);

    const engine = new SimNodeEngine(dataDir, "a", "sim");
    const generated = new Map((await engine.requests()).map((request) => [request.id, request]));
    for (const [id, found] of records) {
      expect(found, `records of ${id}`).toHaveLength(1);
      expect(generated.has(id), `${id} is a request that the engine met`).toBe(true);
    }
    const costOf = ({ id = "" }: Seen) => (records.get(id) ?? [])[0]!;
    for (const one of by("whole"))
      expect(costOf(one)).toMatchObject({ promptTokens: one.promptTokens, completionTokens: one.completionTokens });
    // Who leaves has the engine stopped a moment later: at least what arrived, at most what was made.
    for (const one of by("left").filter((left) => costOf(left))) {
      expect(costOf(one).completionTokens).toBeGreaterThanOrEqual(one.completionTokens);
      expect(costOf(one).completionTokens).toBeLessThanOrEqual(generated.get(one.id!)!.generated);
    }
    // What was broken is paid for only where its engine had finished before, and then whole.
    for (const one of by("broken").filter((broken) => costOf(broken))) {
      const { finished, generated: made } = generated.get(one.id!)!;
      expect({ finished, made }).toEqual({ finished: true, made: costOf(one).completionTokens });
    }

    const paid = [...records.values()].flat();
    const sum = (field: "promptTokens" | "completionTokens") => paid.reduce((total, one) => total + one[field], 0);
    expect(await usageTotals(), "the command's totals are the sum of the records").toEqual({
      requests: paid.length,
      promptTokens: sum("promptTokens"),
      completionTokens: sum("completionTokens"),
    });
  },
  kills * 60_000,
);

/** What costs something: an attempt that we broke leaves a record of zero. */
async function paidRecords(): Promise<DumpedRecord[]> {
  return (await dumpUsage(cluster)).filter(({ outcome }) => outcome !== "broken");
}

async function outboxEmpty(): Promise<boolean> {
  const metrics = await (await fetch(`http://${cluster.agents.get("node-1")!.listen["ops"]}/metrics`)).text();
  return metrics.includes("weiche_agent_outbox_records 0\n");
}
