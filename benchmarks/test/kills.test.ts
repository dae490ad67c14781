/**
 * `kill -9` of agent and router in the middle of load. A checker that knows only what the clients received and what the
 * engines generated compares it with what the command says was billed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, enginePids, until } from "../cluster/cluster.ts";
import { createRandom } from "@weiche/shared/testing/random.ts";

const seed = Number(process.env["WEICHE_SEED"] ?? 20_261_121);
const kills = process.env["WEICHE_NIGHTLY"] ? 40 : 4;
/** More accounts than one, since a package allows 150 requests a minute. */
const accounts = 6;
const clientsPerAccount = 2;
const clients = accounts * clientsPerAccount;

const engine = (model: string) => ({
  model,
  dialect: "vllm",
  maxConcurrent: 64,
  directory: join(import.meta.dirname, "../.."),
  command: [
    "node",
    "benchmarks/sim-engine/main.ts",
    "--port",
    "{port}",
    "--model",
    model,
    "--itl-ms",
    "5",
    "--ttft-ms",
    "10",
  ],
});

let cluster: Cluster;
const customers: { readonly accountId: string; readonly apiKey: string }[] = [];

beforeAll(async () => {
  cluster = await Cluster.start({
    catalogue: [
      {
        id: "sim",
        category: "language",
        status: "Beta",
        contextTokens: 32_768,
        factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 1 }],
      },
    ],
    agents: { "node-1": { slots: [{ name: "a", engines: [engine("sim")] }] } },
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

/** One streamed request that its client ends after `leaveAfter` chunks, if at all. */
async function ask(apiKey: string, tokens: number, leaveAfter: number): Promise<Seen> {
  let id: string | undefined;
  let pieces = 0;
  let usage = { prompt_tokens: 0, completion_tokens: 0 };
  const seen = (ending: Seen["ending"]): Seen => ({
    id,
    ending,
    promptTokens: usage.prompt_tokens,
    completionTokens: ending === "whole" ? usage.completion_tokens : pieces,
  });
  const controller = new AbortController();
  let left = false;
  try {
    const answer = await fetch(`${cluster.baseUrl}/chat/completions`, {
      method: "POST",
      signal: controller.signal,
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "sim",
        stream: true,
        stream_options: { include_usage: true },
        messages: [{ role: "user", content: `sim:tokens=${tokens} go on` }],
      }),
    });
    id = answer.headers.get("x-request-id") ?? undefined;
    if (answer.status !== 200) {
      await answer.arrayBuffer();
      return seen("refused");
    }
    let text = "";
    for await (const bytes of answer.body!) {
      text += Buffer.from(bytes).toString();
      const events = text.split("\n\n");
      text = events.pop()!;
      for (const event of events) {
        if (event === "data: [DONE]") return seen("whole");
        const chunk = JSON.parse(event.slice("data: ".length)) as {
          error?: object;
          choices?: { delta: { content?: string } }[];
          usage?: typeof usage;
        };
        if (chunk.error) return seen("broken");
        if (chunk.usage) usage = chunk.usage;
        if (chunk.choices?.[0]?.delta.content) pieces++;
      }
      if (pieces >= leaveAfter) {
        left = true;
        controller.abort();
      }
    }
    return seen("broken");
  } catch {
    return seen(left ? "left" : "broken");
  }
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
    const generated = await generatedById();
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

/** What the engine itself says that it made, by request id. */
async function generatedById(): Promise<
  ReadonlyMap<string, { readonly generated: number; readonly finished: boolean }>
> {
  const handle = JSON.parse(readFileSync(join(cluster.directory, "node-1/agent/engines/a-sim.json"), "utf8")) as {
    endpoint: { origin: string };
  };
  const requests = (await (await fetch(`${handle.endpoint.origin}/sim/requests`)).json()) as {
    id: string;
    generated: number;
    finished: boolean;
  }[];
  return new Map(requests.map((request) => [request.id, request]));
}

async function outboxEmpty(): Promise<boolean> {
  const metrics = await (await fetch(`http://${cluster.agents.get("node-1")!.listen["ops"]}/metrics`)).text();
  return metrics.includes("weiche_agent_outbox_records 0\n");
}
