/**
 * Tests a primary that dies with commits that its standby has not received. The standby takes over, clients notice nothing,
 * and every answer is billed once.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openClient } from "@weiche/router/src/db/client.ts";
import { ReplicatedDatabase, urlOf, type Server } from "@weiche/router/test/db/replicated-database.ts";
import { askStream, type Answer } from "../cluster/api-client.ts";
import { billingFaults, type Received } from "../cluster/billing-check.ts";
import { until } from "../cluster/cluster.ts";
import { RouterGroup } from "../cluster/router-group.ts";
import { simNodes } from "../cluster/sim-node.ts";
import { readUsage } from "../cluster/usage-dump.ts";

const opened = new AsyncDisposableStack();
const answers: Answer[] = [];
let servers: ReplicatedDatabase;
let group: RouterGroup;
let apiKey: string;

beforeAll(async () => {
  servers = opened.use(await ReplicatedDatabase.start());
  group = opened.use(await RouterGroup.start(2, simNodes(["model-a"]), { databaseUrl: servers.url }));
  ({ apiKey } = await group.cluster.account());
}, 180_000);
afterAll(() => opened.disposeAsync());

async function askEach(times: number): Promise<void> {
  const asked = group.routers.flatMap(({ listen }) =>
    Array.from({ length: times }, () =>
      askStream({ baseUrl: `http://${listen["api"]}/v1`, apiKey, model: "model-a", text: "sim:tokens=7 go on" }),
    ),
  );
  answers.push(...(await Promise.all(asked)));
}

async function usageAt(server: Server) {
  await using client = await openClient({ connectionString: urlOf(server) });
  return await readUsage(client);
}

async function recordsAt(server: Server): Promise<number> {
  return (await usageAt(server)).records.length;
}

test("nodes deliver the usage of lost commits again, and it is committed once [R3]", async () => {
  await askEach(5);
  await until("the answers to be committed", async () => (await recordsAt(servers.primary)) === answers.length);
  await servers.caughtUp();
  await servers.cutOff();
  await askEach(5);
  await until("the next answers to be committed", async () => (await recordsAt(servers.primary)) === answers.length);
  expect(await recordsAt(servers.standby)).toBe(answers.length / 2);

  await servers.primary.kill();
  await askEach(5);
  await servers.promote();
  await askEach(5);
  expect(answers.map(({ ending }) => ending)).toEqual(answers.map(() => "whole"));
  const received = answers.map((answer, mark): Received => ({ ...answer, mark, kind: "stream" }));
  await until("the bill to be right", async () => {
    const usage = await usageAt(servers.standby);
    return billingFaults({ received, made: [], outages: [], usage }).length === 0;
  });
  expect(await recordsAt(servers.standby)).toBe(answers.length);
});

test("both routers have their portal, keys and audit on the new primary [R3]", async () => {
  const made = (await group.cluster.weiche("account", "create", "--name", "After", "--owner-email", "a@b.example")) as {
    readonly id: string;
  };
  for (const index of group.routers.keys())
    expect(await group.weiche(index, "account", "show", made.id)).toMatchObject({ name: "After" });
  expect(await group.weiche(1, "audit", "verify")).toMatchObject({ broken: [] });
});
