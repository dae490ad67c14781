/** Tests that `weiche requests`, `explain`, `top` and `nodes --watch` describe real requests without their content. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { askStream, type Answer } from "../cluster/api-client.ts";
import { Cluster, until, type Account } from "../cluster/cluster.ts";
import { catalogueOf, simEngine } from "../cluster/sim-node.ts";
import { RunningCommand, type TerminalSize } from "./simulated-terminal.ts";

const [first, second] = ["chat-a", "chat-b"];
const secret = "Zwiebelfisch";
const night: TerminalSize = { columns: 80, rows: 24 };
let cluster: Cluster;
let account: Account;
const printed: string[] = [];

beforeAll(async () => {
  const engines = [simEngine(first), simEngine(second, { "start-ms": 1_000 })];
  cluster = await Cluster.start({
    catalogue: catalogueOf(first, second, "nowhere"),
    agents: { n1: { slots: [{ name: "a", gpus: [0], minResidencySeconds: 0, engines }] } },
  });
  account = await cluster.account();
}, 90_000);
afterAll(() => cluster[Symbol.asyncDispose]());

function chat(model: string, words: string, more: { signal?: AbortSignal; toTheEnd?: boolean } = {}) {
  return askStream({
    ...{ baseUrl: cluster.baseUrl, apiKey: account.apiKey, model, text: `${words} ${secret}` },
    ...more,
  });
}

/** Runs a command on a terminal and returns what it prints. */
async function shown(...args: string[]): Promise<string> {
  const command = new RunningCommand(cluster, args, night);
  const code = await command.ended;
  printed.push(command.output, command.errors);
  expect([code, command.errors]).toEqual([0, ""]);
  expect(command.output.split("\n").filter(({ length }) => length > night.columns)).toEqual([]);
  return command.output;
}

interface Live {
  readonly items: readonly {
    id: string;
    state: string;
    waitsFor?: string;
    position?: number;
    estimateSeconds?: number;
    tokensPerSecond?: number;
  }[];
}
const live = async (...args: string[]) => (await cluster.weiche("requests", "--live", ...args)) as Live;

test("a running request shows its speed, a waiting one shows its reason, and both are explained afterwards [B9]", async () => {
  const client = new AbortController();
  const running = chat(first, "sim:tokens=30000", { signal: client.signal });
  await until("tokens to come", async () => ((await live()).items[0]?.tokensPerSecond ?? 0) > 0);
  const waiting = chat(second, "sim:tokens=3", { toTheEnd: true });
  await until("the other request to wait", async () =>
    (await live()).items.some(({ waitsFor }) => waitsFor === "switch"),
  );

  const [one, other] = (await live()).items as unknown as [{ id: string }, { id: string }];
  expect((await live("--model", second)).items).toMatchObject([
    { id: other.id, state: "waiting", position: 1, estimateSeconds: expect.any(Number) },
  ]);
  const nodes = (await cluster.weiche("nodes")) as [{ slots: [{ estimates: object[] }] }];
  expect(nodes[0].slots[0].estimates).toMatchObject([{ model: second, nextSeconds: expect.any(Number) }]);
  expect((await live("--account", account.accountId)).items).toHaveLength(2);
  const table = await shown("requests", "--live");
  expect(table).toMatch(/^2 running\n\nID +MODEL +NODE +STATE +AGE +POS +LEFT +TOKENS\/S/);
  const [, start] = /^(\S+) +chat-b +n1 +waits: switch +[\d.]+ s +1 +[\d.]+ s/m.exec(table)!;
  const explained = await shown("explain", one.id);
  expect(explained).toMatch(/^It has run for \d+\.\d s: it is being answered \(\d+ tokens, [\d.]+ a second\)\.$/m);
  expect(explained).toContain("Its cost is not known yet");
  expect((await shown("explain", start!)).replaceAll(/\s+/g, " ")).toMatch(
    /it waits for its slot \(draining-\w+\) to switch to its model\. Its position for this model is 1\. The estimated time left is [\d.]+ s\./,
  );
  const top = await shown("top", "--once");
  expect(top).toMatch(/^2 requests by this router, 1 waiting on all nodes\n/);
  expect(top).toMatch(new RegExp(`^Test +${account.accountId} +2$`, "m"));

  client.abort();
  const state = async () => ((await cluster.weiche("nodes")) as [{ slots: [{ state: string }] }])[0].slots[0].state;
  await until("its model to start", async () => (await state()) === "starting");
  expect((await live()).items).toMatchObject([{ id: other.id, waitsFor: "switch" }]);
  expect([(await running).ending, (await waiting).ending]).toEqual(["left", "whole"]);
  await until("usage", async () => ((await cluster.weiche("explain", other.id)) as { usage: [] }).usage.length > 0);
  const waited = await shown("explain", other.id);
  expect(waited).toMatch(/^Attempt 1: sent to n1, slot a after 0\.\d s\.$/m);
  expect(waited).toMatch(
    /^ {2}It waited \d+\.\d s for the slot to switch to its model\. The estimate was [\d.]+ s\.$/m,
  );
  expect(waited.replaceAll(/\s+/g, " ")).toMatch(
    / The client received the whole answer \(200\) after \d+\.\d s; \d+ bytes were sent to the client\. /,
  );
  expect(waited).toMatch(/^ +1 +n1 +finished +\d+ +3 +1\.000 +\d+\.000$/m);
  await until(
    "the usage of the other request",
    async () => ((await cluster.weiche("explain", one.id)) as { usage: [] }).usage.length > 0,
  );
  expect(await shown("explain", one.id)).toMatch(/^The client disconnected after [\s\S]* client-ended /m);
}, 90_000);

test("a refused request shows its reason, the remedy and that it cost nothing", async () => {
  const refused = await chat("nowhere", "Hi");
  expect(refused.status).toBe(503);
  const text = await shown("explain", refused.id!);
  expect(text).toMatch(/^It was not sent to any node\.\nIt was refused after \d\.\d s with 503: no_node_available\.$/m);
  expect(text).toMatch(/^What helps: retry later\.\n`weiche models` shows which nodes [^]*\n\nIt cost nothing\.$/m);
  expect(await shown("requests", "--here", "--outcome", "refused")).toMatch(
    / refused +503 +no_node_available +\d\.\d s/,
  );
  const past = () => shown("requests", "--code", "no_node_available");
  await until("the refusal in the database", async () => (await past()).includes(refused.id!.slice(0, 13)));
  expect(await past()).toMatch(/ nowhere .* refused +503 +no_node_available +\d\.\d s/);
});

test("an id may be shortened while it is unique, and otherwise the candidates are listed", async () => {
  const both: Answer[] = await Promise.all([chat(first, "sim:tokens=1"), chat(first, "sim:tokens=1")]);
  const [a, b] = both.map(({ id }) => id!) as [string, string];
  let same = 0;
  while (a[same] === b[same]) same++;
  const cut = a.slice(0, Math.max(8, same));
  const command = new RunningCommand(cluster, ["explain", cut, "--json"]);
  expect(await command.ended).toBe(1);
  const { error } = JSON.parse(command.errors) as { error: string };
  expect([error.includes(a), error.includes(b)]).toEqual([true, true]);
  expect(await shown("explain", a.slice(0, -2))).toContain(a);
  const four = new RunningCommand(cluster, ["explain", a.slice(0, 4)]);
  expect(await four.ended).toBe(1);
  expect(four.errors).toContain(`${a.slice(0, 4)} is the beginning of several ids: `);
});

test("an id is found in the form in which the client's answer has it", async () => {
  const { id } = (await chat(first, "sim:tokens=1")) as { id: string };
  for (const form of [`chatcmpl-${id}`, `cmpl-${id}`, id.toUpperCase(), `chatcmpl-${id.slice(0, -2)}`])
    expect(await shown("explain", form)).toContain(id);
});

test("a watched node is drawn as a picture on a terminal and printed line by line elsewhere", async () => {
  const drawn = new RunningCommand(cluster, ["nodes", "--watch"], night);
  const told = new RunningCommand(cluster, ["nodes", "--watch"]);
  const json = new RunningCommand(cluster, ["nodes", "--watch", "--json"]);
  for (const command of [drawn, told, json]) void command.ended.catch(() => {});
  await until("the first output", () => [drawn, told, json].every(({ output }) => output.includes("n1")));
  await chat(second, "sim:tokens=1");
  await until("the output of the change", () => [drawn, told, json].every(({ output }) => output.includes(second)));
  expect(drawn.picture.split("\n").filter(({ length }) => length > night.columns)).toEqual([]);
  expect(told.output).toMatch(/^\d\d:\d\d:\d\d {2}n1\/a {2}\S+ chat-b.*, \d running, \d waiting$/m);
  for (const line of json.output.trim().split("\n")) expect(JSON.parse(line)).toMatchObject([{ name: "n1" }]);
});

test("after a restart the router shows what the database knows, and that its own memory of the request is gone", async () => {
  const { id } = await chat(first, "sim:tokens=5");
  const refused = await chat("nowhere", "Hi");
  await until("usage", async () => ((await cluster.weiche("explain", id!)) as { usage: [] }).usage.length > 0);
  await cluster.router.stop();
  await cluster.startRouter();
  await cluster.linked();
  const text = await shown("explain", id!);
  expect(text).toContain("This router does not remember the request. It has restarted");
  expect(text).toMatch(/^ +1 +n1 +finished +\d+ +5 /m);
  expect(await shown("explain", refused.id!)).toMatch(/^It was refused after \d\.\d s with 503: no_node_available\.$/m);
  expect(await shown("requests", "--here")).toMatch(/^none\n\nThis router remembers 0 requests/);
  const past = await shown("requests");
  for (const [one, end] of [
    [id, "answered +200"],
    [refused.id, "refused +503 +no_node_available"],
  ])
    expect(past).toMatch(new RegExp(`^${one!.slice(0, 13)} .* ${end} `, "m"));
}, 60_000);

test("no output contains content of a request", () => {
  expect(printed.length).toBeGreaterThan(10);
  expect(printed.filter((text) => text.includes(secret) || text.includes(account.apiKey))).toEqual([]);
});
