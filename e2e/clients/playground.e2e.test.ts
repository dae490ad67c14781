/**
 * Tests the portal's playground with the whole system. The cost that it shows equals the recorded cost, even of a
 * stopped chat.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, until } from "../cluster/cluster.ts";
import { joinAsOwner, type PortalOwner } from "../cluster/portal-owner.ts";
import { simNodes } from "../cluster/sim-node.ts";
import { dumpUsage } from "../cluster/usage-dump.ts";

let cluster: Cluster;
let ada: PortalOwner;

beforeAll(async () => {
  cluster = await Cluster.start(simNodes(["chat-a", "chat-b"], ["n1"]));
  ada = await joinAsOwner(cluster);
}, 90_000);
afterAll(() => cluster[Symbol.asyncDispose]());

const question = (model: string, maxTokens: number) => ({
  model,
  max_tokens: maxTokens,
  ...{ stream: true, stream_options: { include_usage: true } },
  messages: [{ role: "user", content: `sim:tokens=${maxTokens} Hello` }],
});

interface Row {
  readonly key: { readonly kind: string; readonly name: string | null };
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly credits: string;
}

async function recorded(requests: number): Promise<Row> {
  const read = async () => (await ada.get<{ items: Row[] }>("/usage?by=key")).items;
  await until(`${requests} requests to be recorded`, async () => (await read())[0]?.requests === requests, 30_000);
  const rows = await read();
  expect(rows).toHaveLength(1);
  return rows[0]!;
}

test("a chat is activated, answered and billed as shown, and a stopped chat costs the tokens generated until then", async () => {
  const text = await (await ada.send("/chat", question("chat-a", 30))).text();
  expect(text.startsWith('event: state\ndata: {"state":"activating"}\n\n')).toBe(true);
  const done = JSON.parse(/event: done\ndata: (.*)\n/.exec(text)![1]!) as { promptTokens: number; credits: string };
  const first = await recorded(1);
  expect(first).toMatchObject({ key: { kind: "test-chat", name: null } });
  expect(done).toMatchObject({
    promptTokens: first.promptTokens,
    completionTokens: first.completionTokens,
    credits: first.credits,
  });

  const stop = new AbortController();
  const reader = (await ada.send("/chat", question("chat-a", 20_000), stop.signal)).body!.getReader();
  let seen = "";
  while (seen.split("data: ").length < 12) seen += Buffer.from((await reader.read()).value!).toString();
  expect(seen.startsWith('event: state\ndata: {"state":"active"}\n\n')).toBe(true);
  stop.abort();
  const both = await recorded(2);
  expect(both.completionTokens - first.completionTokens).toBeGreaterThanOrEqual(5);
  expect(both.completionTokens - first.completionTokens).toBeLessThan(20_000);
  const records = await dumpUsage(cluster);
  expect(records.map(({ outcome }) => outcome).toSorted()).toEqual(["client-ended", "finished"]);
  const tokens = records.reduce((sum, { promptTokens, completionTokens }) => sum + promptTokens + completionTokens, 0);
  expect(both.credits).toBe(`${tokens}.000`);
}, 90_000);
