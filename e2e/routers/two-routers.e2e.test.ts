/** Tests two routers on one database with a node linked to both. They serve together, agree on the bill and know each other. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { until, type Cluster, type RunningProgram } from "../cluster/cluster.ts";
import { RouterGroup } from "../cluster/router-group.ts";
import { simNodes } from "../cluster/sim-node.ts";
import { parseMetrics, samplesOf, seriesOf } from "../cluster/metrics-text.ts";
import { askStream } from "../cluster/api-client.ts";

const opened = new AsyncDisposableStack();
let cluster: Cluster;
let second: RunningProgram;
let secondDataDir: string;
let account: { readonly accountId: string; readonly apiKey: string };

beforeAll(async () => {
  const group = opened.use(await RouterGroup.start(2, simNodes(["model-a"])));
  cluster = group.cluster;
  second = group.routers[1]!;
  secondDataDir = group.dataDir(1);
  account = await cluster.account();
}, 180_000);
afterAll(() => opened.disposeAsync());

async function firstNode(dataDir?: string): Promise<{ readonly state: string } | undefined> {
  return ((await cluster.weiche("nodes", ...at(dataDir))) as { state: string }[])[0];
}

function at(dataDir: string | undefined): string[] {
  return dataDir === undefined ? [] : ["--data-dir", dataDir];
}

test("each router lists both routers [R1]", async () => {
  for (const dataDir of [undefined, secondDataDir]) {
    const told = async () =>
      (await cluster.weiche("routers", ...at(dataDir))) as { state: string; linkAddress: string }[];
    await until("both to be ready", async () => (await told()).filter(({ state }) => state === "ready").length === 2);
    const addresses = [cluster.router, second].map(({ listen }) => listen["nodes"]);
    expect((await told()).map(({ linkAddress }) => linkAddress)).toEqual(addresses);
  }
});

test("both routers serve together and show the same usage, which is what the clients received", async () => {
  const bases = [cluster.baseUrl, `http://${second.listen["api"]}/v1`];
  const seen = await Promise.all(
    Array.from({ length: 16 }, (_, index) =>
      askStream({
        baseUrl: bases[index % 2]!,
        apiKey: account.apiKey,
        model: "model-a",
        text: `sim:tokens=${index + 1}`,
      }),
    ),
  );
  expect(seen.map(({ ending }) => ending)).toEqual(seen.map(() => "whole"));
  const received = {
    requests: seen.length,
    promptTokens: seen.reduce((sum, one) => sum + one.usage!.prompt_tokens, 0),
    completionTokens: seen.reduce((sum, one) => sum + one.usage!.completion_tokens!, 0),
  };
  const usage = async (dataDir?: string) =>
    ((await cluster.weiche("usage", "--account", account.accountId, ...at(dataDir))) as { totals: typeof received })
      .totals;
  await until("all usage to be recorded", async () => (await usage()).requests === seen.length, 10_000);
  expect(await usage()).toMatchObject(received);
  expect(await usage(secondDataDir)).toEqual(await usage());
});

test("an operator's command at one router reaches the other", async () => {
  await cluster.weiche("node", "maintenance", "node-1", "on", ...at(secondDataDir));
  await until("the first router to know", async () => (await firstNode())?.state === "maintenance", 5_000);
  const refused = await askStream({ baseUrl: cluster.baseUrl, apiKey: account.apiKey, model: "model-a", text: "x" });
  expect(refused).toMatchObject({ status: 503, error: { code: "maintenance" } });
  // The first router ends a maintenance that began at the second.
  expect(await cluster.weiche("node", "maintenance", "node-1", "off")).toMatchObject({ state: "live" });
  await until("the second router to know", async () => (await firstNode(secondDataDir))?.state === "live", 5_000);
});

/** Reads a sample of a router's metrics. */
async function committed({ listen }: RunningProgram): Promise<number> {
  const samples = samplesOf(parseMetrics(await (await fetch(`http://${listen["ops"]}/metrics`)).text()));
  return samples.get(seriesOf("weiche_router_usage_records_total", { result: "committed" })) ?? 0;
}

function says(program: RunningProgram, text: string): boolean {
  return program.output.some((line) => line.includes(text));
}

test("the later router warns that limits apply per router, and the first only logs that another joined", async () => {
  await until("the later router to warn", () => says(second, "parallel requests apply per router"));
  await until("the other router to know", () =>
    says(cluster.router, "other routers of this database have started or ended"),
  );
  expect(says(cluster.router, "parallel requests apply per router")).toBe(false);
});

test("a stopping router lets its answers end, and its node's usage goes to the other router meanwhile [B6]", async () => {
  const routers = [cluster.router, second];
  const ask = (router: RunningProgram, text: string, onPiece = () => {}) =>
    askStream({
      baseUrl: `http://${router.listen["api"]}/v1`,
      apiKey: account.apiKey,
      model: "model-a",
      text,
      onPiece,
    });

  // The test stops the router to which the node sends its usage.
  const before = await Promise.all(routers.map(committed));
  await ask(second, "sim:tokens=1");
  const moved = async () => (await Promise.all(routers.map(committed))).findIndex((now, index) => now > before[index]!);
  await until("a commit", async () => (await moved()) >= 0);
  const [leaving, staying] = (await moved()) === 0 ? [cluster.router, second] : [second, cluster.router];
  const committedBefore = await committed(staying!);

  const begun = Promise.withResolvers<void>();
  const running = ask(leaving!, "sim:tokens=400", begun.resolve);
  await begun.promise;
  leaving!.kill("SIGTERM");
  await until(
    "the router to be unready",
    async () => (await fetch(`http://${leaving!.listen["ops"]}/readyz`)).status === 503,
    5_000,
  );
  expect(await ask(staying!, "sim:tokens=2")).toMatchObject({ ending: "whole" });
  await until("its usage to be committed", async () => (await committed(staying!)) === committedBefore + 1);
  expect(await running).toMatchObject({ ending: "whole", usage: { completion_tokens: 400 } });
  expect(await leaving!.exited()).toBe(0);
  await until("the other usage, too", async () => (await committed(staying!)) === committedBefore + 2);
  const alone = "no other router uses this database any more";
  await until("the other router to log that it is alone", () => says(staying!, alone));
  expect(says(leaving!, alone)).toBe(false);
});
