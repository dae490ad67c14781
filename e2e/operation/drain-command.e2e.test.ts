/** Tests `weiche node drain`: it waits for running requests, ends with the right code, and cuts nothing. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { askStream, type Answer } from "../cluster/api-client.ts";
import { Cluster, until, type Account } from "../cluster/cluster.ts";
import { simNodes } from "../cluster/sim-node.ts";
import { RunningCommand } from "./simulated-terminal.ts";

const model = "chat-a";
let cluster: Cluster;
let account: Account;

beforeAll(async () => {
  cluster = await Cluster.start(simNodes([model], ["n1"]));
  account = await cluster.account();
}, 90_000);
afterAll(() => cluster[Symbol.asyncDispose]());

/** Resolves once the answer has begun. */
async function longAnswer(tokens: number): Promise<{ readonly leave: () => void; readonly answer: Promise<Answer> }> {
  const begun = Promise.withResolvers<void>();
  const client = new AbortController();
  const { baseUrl } = cluster;
  const answer = askStream({
    ...{ baseUrl, apiKey: account.apiKey, model, text: `sim:tokens=${tokens} Go on` },
    ...{ signal: client.signal, onPiece: () => begun.resolve() },
  });
  await begun.promise;
  return { leave: () => client.abort(), answer };
}

const stateOfNode = async () => ((await cluster.weiche("nodes", "show", "n1")) as { state: string }).state;

async function backInService(): Promise<void> {
  await cluster.weiche("node", "maintenance", "n1", "off");
  await until("the node to be live again", async () => (await stateOfNode()) === "live");
}

test("a drain that takes longer than --timeout ends with exit code 1 and prints what still runs", async () => {
  const { leave } = await longAnswer(30_000);
  const command = new RunningCommand(cluster, ["node", "drain", "n1", "--wait", "--timeout", "2s"]);
  expect(await command.ended).toBe(1);
  expect(command.errors).toMatch(
    /^weiche: after 2\.0 s: n1 still has requests \(slot a: 1 running, the oldest for \d+\.\d s, 0 waiting, 1 by this router\); n1 stays in maintenance$/m,
  );
  expect(command.output).toMatch(/^\d\d:\d\d:\d\d {2}n1\/a {2}1 running, 0 waiting, 1 by this router$/m);
  expect(await stateOfNode()).toBe("maintenance");
  leave();
  await backInService();
}, 60_000);

test("a node that has turned its own maintenance on stays in it, and the command says how to end it", async () => {
  await cluster.weicheAgent("n1", "maintenance", "on");
  await until("the router to know", async () => (await stateOfNode()) === "maintenance");
  const command = new RunningCommand(cluster, ["node", "maintenance", "n1", "off"]);
  expect(await command.ended).toBe(1);
  expect(command.errors).toBe(
    'weiche: n1 stays in maintenance, because it was turned on at the node: run "weiche-agent maintenance off" there\n',
  );
  await cluster.weicheAgent("n1", "maintenance", "off");
  await backInService();
}, 60_000);

test("a drain waits for the last answer and does not cut it", async () => {
  const { answer } = await longAnswer(1_500);
  const { baseUrl } = cluster;
  const piped = new RunningCommand(cluster, ["node", "drain", "n1", "--wait", "--json"]);
  const drawn = new RunningCommand(cluster, ["node", "drain", "n1", "--wait"], { columns: 80, rows: 24 });
  await until("both to show what runs", () => piped.output.includes('"running":1') && /active +/.test(drawn.output));
  const refused = await askStream({ baseUrl, apiKey: account.apiKey, model, text: "Hi" });
  expect(refused.error).toMatchObject({ code: "maintenance" });
  expect(drawn.picture).toMatch(/^n1: in maintenance, requests are finishing\n\nSLOT {2}STATE/);
  expect(drawn.picture.split("\n").filter(({ length }) => length > 80)).toEqual([]);
  expect([await piped.ended, await drawn.ended, (await answer).ending]).toEqual([0, 0, "whole"]);
  const lines = piped.output.trim().split("\n");
  const seen = lines.map((line) => JSON.parse(line) as { drained: boolean; slots: { running: number }[] });
  expect(seen.map(({ drained }) => drained)).toEqual([...seen.slice(1).map(() => false), true]);
  expect(seen.at(-1)!.slots[0]!.running).toBe(0);
  expect(piped.errors).toBe("");
  expect(drawn.output).toMatch(/n1 is drained\. To end maintenance: weiche node maintenance n1 off\n$/);
  await backInService();
}, 120_000);

test("an unlinked node does not count as drained", async () => {
  const agent = cluster.agents.get("n1")!;
  agent.kill("SIGKILL");
  await agent.exited();
  await until("the node to be gone", async () => (await stateOfNode()) === "gone");
  const command = new RunningCommand(cluster, ["node", "drain", "n1", "--wait", "--timeout", "1s"]);
  expect(await command.ended).toBe(1);
  expect(command.errors).toContain("n1 is not linked to this router, its requests are unknown");
}, 60_000);
