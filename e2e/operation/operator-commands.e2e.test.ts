/** Tests commands that change the router temporarily or cost money, against real processes. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, until } from "../cluster/cluster.ts";
import { catalogueOf } from "../cluster/sim-node.ts";
import { RunningCommand } from "./simulated-terminal.ts";

let cluster: Cluster;
let account: string;

beforeAll(async () => {
  cluster = await Cluster.start({ catalogue: catalogueOf("chat-a"), agents: {} });
  const wish = ["--name", "ACME", "--owner-email", "ada@example.com"];
  account = ((await cluster.weiche("account", "create", ...wish)) as { id: string }).id;
}, 90_000);
afterAll(() => cluster[Symbol.asyncDispose]());

test("a changed log level applies for its time and then returns to the previous one", async () => {
  const debugLines = () => cluster.router.output.filter((line) => line.includes('"level":"debug"')).length;
  expect(await cluster.weiche("log")).toEqual({ level: "info" });
  await cluster.weiche("credits", "evaluate");
  expect(debugLines()).toBe(0);
  const set = await cluster.weiche("log", "debug", "--for", "20s");
  expect(set).toEqual({ level: "debug", then: { level: "info", seconds: 20 } });
  await cluster.weiche("credits", "evaluate");
  await until("a line of debug", () => debugLines() > 0);
  await cluster.weiche("log", "trace", "--for", "1s");
  await until("the previous level", async () => JSON.stringify(await cluster.weiche("log")) === '{"level":"info"}');
  const wrong = new RunningCommand(cluster, ["log", "debug", "--for", "25h", "--json"]);
  expect(await wrong.ended).toBe(1);
  expect(JSON.parse(wrong.errors)).toMatchObject({ code: "refused" });
}, 60_000);

test("an account with a package is created only after the sum was confirmed", async () => {
  const wish = ["account", "create", "--name", "Globex", "--owner-email", "bob@example.com", "--package", "pro"];
  const names = async () => ((await cluster.weiche("account", "list")) as { name: string }[]).map(({ name }) => name);
  const piped = new RunningCommand(cluster, wish);
  expect(await piped.ended).toBe(1);
  expect(piped.errors).toMatch(
    /^weiche: 35\.00 EUR net are charged to the new account for Pro now, then 35\.00 EUR a month: add --yes .*nothing was changed$/m,
  );
  const declined = new RunningCommand(cluster, wish, { columns: 80, rows: 24 });
  await until("the question", () => declined.errors.includes("[y/N]"));
  declined.type("n\n");
  expect([await declined.ended, await names()]).toEqual([1, ["ACME"]]);

  const agreed = new RunningCommand(cluster, wish, { columns: 80, rows: 24 });
  await until("the question", () => agreed.errors.includes("35.00 EUR net"));
  agreed.type("y\n");
  expect([await agreed.ended, await names()]).toEqual([0, ["ACME", "Globex"]]);
  const charged = await cluster.weiche("subscription", "invoice", "--account", "Globex");
  expect(charged).toMatchObject([{ package: "Pro", amountCents: 3_500 }]);
  await cluster.weiche(...wish.with(3, "Initech").with(5, "eve@example.com"), "--yes");
  expect(await names()).toHaveLength(3);
}, 60_000);

const invoice = async () => (await cluster.weiche("subscription", "invoice", "--account", account)) as unknown[];

test("a change that costs money is charged only after the sum was confirmed", async () => {
  const order = ["subscription", "order", "--account", account, "--package", "Pro"];
  const piped = new RunningCommand(cluster, order);
  expect(await piped.ended).toBe(1);
  expect(piped.errors).toMatch(
    /^weiche: 35\.00 EUR net are charged to \S+ now.*: add --yes to agree; nothing was changed$/m,
  );

  const declined = new RunningCommand(cluster, order, { columns: 80, rows: 24 });
  await until("the question", () => declined.errors.includes("[y/N]"));
  declined.type("\n");
  expect([await declined.ended, await invoice()]).toEqual([1, []]);

  const agreed = new RunningCommand(cluster, order, { columns: 80, rows: 24 });
  await until("the question", () => agreed.errors.includes("35.00 EUR net"));
  agreed.type("y\n");
  expect(await agreed.ended).toBe(0);
  expect(await invoice()).toMatchObject([{ package: "Pro", amountCents: 3_500 }]);
  await cluster.weiche("subscription", "downgrade", "--account", account, "--package", "Starter"); // costs nothing
  const upgraded = new RunningCommand(cluster, [
    "subscription",
    "upgrade",
    ...order.slice(2, 4),
    "--package",
    "Business",
    "--yes",
  ]);
  expect([await upgraded.ended, upgraded.errors]).toEqual([0, ""]);
  expect(await invoice()).toHaveLength(2);
}, 60_000);
