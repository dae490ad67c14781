/** Several routers learn through their database of each other, and of the operators' wishes for the nodes. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { asId, type ModelId, type NodeId } from "@weiche/shared/ids.ts";
import type { Database } from "../../src/db/database.ts";
import { joinRouters } from "../../src/db/live-routers.ts";
import { openNodeWishes } from "../../src/nodes/node-wishes.ts";
import { startDatabaseServer, type DatabaseServer } from "./database-fixture.ts";

const node = asId<NodeId>("gpu-1");
const model = asId<ModelId>("small");
const ids = ["1", "2"].map((digit) => `0000000${digit}-0000-7000-8000-000000000000`);
let server: DatabaseServer;
let database: Database;

beforeAll(async () => {
  server = await startDatabaseServer();
  database = await server.newDatabase();
});
afterAll(() => server[Symbol.asyncDispose]());

test("a router hears when it reads what another one was told, and a higher generation each time", async () => {
  const told = await openNodeWishes(database);
  const other = await openNodeWishes(await server.openAgain(database));
  const heard: NodeId[] = [];
  other.onChange((changed) => heard.push(changed));
  expect(other.of(node)).toBeUndefined();

  await told.setMaintenance(node, true);
  expect(told.isMaintained(node)).toBe(true);
  expect(other.isMaintained(node)).toBe(false);
  await other.read();
  expect(other.isMaintained(node)).toBe(true);
  expect(heard).toEqual([node]);

  await told.prewarm(node, model);
  await other.read();
  const { generation, ...rest } = other.of(node)!;
  expect(rest).toEqual({ maintenance: true, prewarmModels: [model] });
  await other.setMaintenance(node, false);
  expect(other.of(node)).toMatchObject({ maintenance: false, prewarmModels: [] });
  expect(other.of(node)!.generation).toBeGreaterThan(generation);
});

test("a node that comes back late is not told again what was to be prewarmed", async () => {
  const wishes = await openNodeWishes(database);
  await wishes.prewarm(node, model);
  const { generation } = wishes.of(node)!;
  await database.pool.query("update node_wishes set prewarm_until = now()");
  await wishes.read();
  expect(wishes.of(node)).toEqual({ generation, maintenance: false, prewarmModels: [] });
});

test("generations grow in a new database too, since they begin with the time", async () => {
  const fresh = await server.newDatabase();
  const wishes = await openNodeWishes(fresh);
  const older = await openNodeWishes(database);
  await older.setMaintenance(node, true);
  await new Promise((resolve) => setTimeout(resolve, 5));
  await wishes.setMaintenance(node, false);
  expect(wishes.of(node)!.generation).toBeGreaterThan(older.of(node)!.generation);
});

test("another live router is noticed, by the later one as one that was first; its end too, and the own life before is no other", async () => {
  const told = ids.map(() => [] as [count: number, wereFirst: boolean][]);
  const events = told.map((each) => ({ otherRouters: (...seen: (typeof each)[number]) => void each.push(seen) }));
  await database.pool.query("insert into routers values ($1, now())", ["00000009-0000-7000-8000-000000000000"]);
  await using first = await joinRouters(database, ids[0]!, events[0]!);
  await first.beat();
  expect(told[0]).toEqual([]);
  {
    await using later = await joinRouters(database, ids[1]!, events[1]!);
    await first.beat();
    await later.beat();
  }
  await first.beat();
  const [ofFirst, ofLater] = told;
  expect(ofFirst).toEqual([
    [1, false],
    [0, false],
  ]);
  expect(ofLater).toEqual([[1, true]]);
});
