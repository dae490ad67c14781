/** Routers find each other and the operators' wishes for nodes through their database. */
import { describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { asId, type ModelId, type NodeId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { systemClock, type WallClock } from "@weiche/shared/time/clock.ts";
import type { Database } from "../../src/db/database.ts";
import { clockAhead, requireClock } from "../../src/db/clock-difference.ts";
import {
  addressesOf,
  joinRouters,
  requireAlone,
  type LiveRouter,
  type RouterFacts,
  type RouterIdentity,
} from "../../src/db/live-routers.ts";
import { openNodeWishes } from "../../src/nodes/node-wishes.ts";
import { testDatabases } from "./database-fixture.ts";

const node = asId<NodeId>("gpu-1");
const model = asId<ModelId>("small");
const ids = ["1", "2", "3", "4"].map((digit) => `0000000${digit}-0000-7000-8000-000000000000`);

const server = await forThisFile(testDatabases());
const database = await server.newDatabase();

test("a router reads the wishes that another router wrote, with a higher generation each time", async () => {
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
  expect(rest).toEqual({ maintenance: true, prewarmModels: [model], acknowledgedFailure: 0n });
  await other.setMaintenance(node, false);
  expect(other.of(node)).toMatchObject({ maintenance: false, prewarmModels: [] });
  expect(other.of(node)!.generation).toBeGreaterThan(generation);
});

test("a node that returns late does not get an expired prewarm wish", async () => {
  const wishes = await openNodeWishes(database);
  await wishes.prewarm(node, model);
  const { generation } = wishes.of(node)!;
  await database.pool.query("update node_wishes set prewarm_until = now()");
  await wishes.read();
  expect(wishes.of(node)).toEqual({ generation, maintenance: false, prewarmModels: [], acknowledgedFailure: 0n });
});

test("an acknowledgement reaches other routers, survives other wishes, and is never withdrawn by an earlier one", async () => {
  const wishes = await openNodeWishes(database);
  const other = await openNodeWishes(await server.openAgain(database));
  await wishes.acknowledge(node, 7n);
  await other.acknowledge(node, 5n);
  await other.setMaintenance(node, true);
  await wishes.read();
  for (const each of [wishes, other])
    expect(each.of(node)).toMatchObject({ maintenance: true, acknowledgedFailure: 7n });
  await wishes.setMaintenance(node, false);
});

test("generations also increase in a new database, because they begin with the time", async () => {
  const fresh = await server.newDatabase();
  const wishes = await openNodeWishes(fresh);
  const older = await openNodeWishes(database);
  await older.setMaintenance(node, true);
  await new Promise((resolve) => setTimeout(resolve, 5));
  await wishes.setMaintenance(node, false);
  expect(wishes.of(node)!.generation).toBeGreaterThan(older.of(node)!.generation);
});

const router = (id: string) => ({ id, host: "host", directory: `/${id}`, version: "1.0.0", limitStore: "memory" });

test("routers notice each other's start and stop, the later one as second, and ignore their own earlier rows", async () => {
  const told = ids.map(() => [] as [count: number, wereFirst: boolean][]);
  const events = told.map((each) => ({ otherRouters: (...seen: (typeof each)[number]) => void each.push(seen) }));
  await database.pool.query("insert into routers values ($1, now())", ["00000009-0000-7000-8000-000000000000"]);
  await using first = await joinRouters(database, systemClock, router(ids[0]!), events[0]!);
  await first.beat();
  expect(told[0]).toEqual([]);
  {
    await using later = await joinRouters(database, systemClock, router(ids[1]!), events[1]!);
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

describe("what routers report about themselves", () => {
  const quiet = { otherRouters() {} };
  const facts = (more: Partial<RouterFacts> = {}) => ({
    ...{ state: "ready" as const, linkAddress: "r1.example:7443", runningRequests: 3, nodes: ["gpu-1", "gpu-2"] },
    ...more,
  });
  /** Joins a router to a database. It never leaves, like a killed router. */
  const join = (at: Database, identity: RouterIdentity, clock: WallClock = systemClock) =>
    joinRouters(at, clock, identity, quiet);
  const age = (at: Database, id: string, interval: string) =>
    at.pool.query("update routers set seen_at = seen_at - $2::interval where id = $1", [id, interval]);

  test("is known to the other routers, and a changed address is announced [R1]", async () => {
    const fresh = await server.newDatabase();
    const [one, two] = [await join(fresh, router(ids[0]!)), await join(fresh, router(ids[1]!))];
    await one.announce(() => facts());
    let news = 0;
    two.onChange(() => news++);
    await two.announce(() => facts({ state: "starting", linkAddress: undefined }));
    expect(two.routers()).toMatchObject([
      {
        id: ids[0],
        state: "ready",
        host: "host",
        version: "1.0.0",
        linkAddress: "r1.example:7443",
        limitStore: "memory",
      },
      { id: ids[1], state: "starting", linkAddress: null, runningRequests: 3 },
    ]);
    expect(addressesOf(two.routers())).toEqual([{ routerId: ids[0], address: "r1.example:7443" }]);
    await two.beat();
    expect(news).toBe(1);
    await one.announce(() => facts({ state: "leaving" }));
    await two.beat();
    expect(addressesOf(two.routers())).toEqual([]);
    expect([news, two.routers()[0]!.state]).toEqual([2, "leaving"]);
    await one[Symbol.asyncDispose]();
    await two.beat();
    expect(two.routers().map(({ id }) => id)).toEqual([ids[1]]);
  });

  test("a router without a heartbeat for 15 s is gone, for a day or until another one has its address or directory [R1]", async () => {
    const fresh = await server.newDatabase();
    const [killed, other] = [await join(fresh, router(ids[0]!)), await join(fresh, router(ids[1]!))];
    await killed.announce(() => facts());
    await other.announce(() => facts({ linkAddress: "r2.example:7443" }));
    const states = async () => {
      await other.beat();
      return other.routers().flatMap(({ id, state }) => (id === ids[1] ? [] : [state]));
    };
    await age(fresh, ids[0]!, "14 seconds");
    expect(await states()).toEqual(["ready"]);
    await age(fresh, ids[0]!, "2 seconds");
    expect(await states()).toEqual(["gone"]);
    expect(addressesOf(other.routers()).map(({ routerId }) => routerId)).toEqual([ids[1]]);
    const again = await join(fresh, { ...router(ids[2]!), directory: `/${ids[0]}` });
    expect(await states()).toEqual(["starting"]);
    await again.announce(() => facts());
    await age(fresh, ids[2]!, "16 seconds");
    const moved = await join(fresh, router(ids[3]!));
    await moved.announce(() => facts()); // on another machine with the same address
    expect(await states()).toEqual(["ready"]);
    await age(fresh, ids[3]!, "23 hours");
    expect(await states()).toEqual(["gone"]);
    await age(fresh, ids[3]!, "2 hours");
    expect(await states()).toEqual([]);
  });

  test("a new router waits for the nodes that were linked in the last minute, also after a stop", async () => {
    const fresh = await server.newDatabase();
    const [one, two] = [await join(fresh, router(ids[0]!)), await join(fresh, router(ids[1]!))];
    await one.announce(() => facts());
    await two.announce(() => facts({ nodes: ["gpu-2", "gpu-3"] }));
    await one[Symbol.asyncDispose]();
    expect([...(await join(fresh, router(ids[2]!))).seenNodes].toSorted()).toEqual(["gpu-1", "gpu-2", "gpu-3"]);
    await age(fresh, ids[1]!, "61 seconds");
    expect([...(await join(fresh, router(ids[3]!))).seenNodes].toSorted()).toEqual(["gpu-1", "gpu-2"]);
  });

  test("a router knows whether nodes are linked to another live router", async () => {
    const fresh = await server.newDatabase();
    const [one, two] = [await join(fresh, router(ids[0]!)), await join(fresh, router(ids[1]!))];
    const twoHears = async () => {
      await two.beat();
      return two.othersHaveNodes();
    };
    await two.announce(() => facts({ linkAddress: "r2.example:7443" }));
    await one.announce(() => facts({ nodes: [] }));
    expect(await twoHears(), "only its own").toBe(false);
    await one.announce(() => facts());
    expect(await twoHears()).toBe(true);
    await age(fresh, ids[0]!, "16 seconds");
    expect(await twoHears(), "the other one is gone").toBe(false);
    await one.beat();
    expect(await twoHears()).toBe(true);
    await one[Symbol.asyncDispose]();
    expect(await twoHears(), "it has stopped").toBe(false);
  });

  test("a wrong clock is reported, and a router whose clock is a minute off refuses to start [R1]", async () => {
    const fresh = await server.newDatabase();
    const shifted = (ms: number) => ({ now: () => Date.now() + ms });
    const ahead = await join(fresh, router(ids[0]!), shifted(30_000));
    await ahead.beat();
    expect(ahead.routers()[0]!.clockAheadMs).toBeGreaterThan(29_000);
    expect(ahead.routers()[0]!.clockAheadMs).toBeLessThanOrEqual(30_000);
    await requireClock(fresh, shifted(-58_000));
    await expect(requireClock(fresh, shifted(-62_000))).rejects.toThrow(/clock is 6\d s behind the database's.*NTP/);
    await expect(requireClock(fresh, shifted(3_600_000))).rejects.toThrow(/clock is 3\d{3} s ahead of the database's/);
    expect(await clockAhead(fresh, systemClock)).toBe(0);
  });
});

describe("a router that must be the only one", () => {
  /**
   * Starts a router while an earlier one exists. `meanwhile` acts as the earlier one at each check. Returns how long
   * the start took.
   */
  async function aloneAfterMs(earlier: RouterIdentity, meanwhile: (earlier: LiveRouter) => Promise<void>) {
    const fresh = await server.newDatabase();
    await using other = await joinRouters(fresh, systemClock, earlier, { otherRouters() {} });
    await using self = await joinRouters(fresh, systemClock, router(ids[1]!), { otherRouters() {} });
    const clock = new VirtualClock();
    const beganMs = clock.now();
    let isOver = false;
    const required = requireAlone(self, ids[1]!, clock).finally(() => (isOver = true));
    required.catch(() => {});
    for (; !isOver; await new Promise((resolve) => setTimeout(resolve, 5))) if (clock.step()) await meanwhile(other);
    await required;
    return clock.now() - beganMs;
  }

  test("does not start while another router runs, and the error names the remedy", async () => {
    await expect(aloneAfterMs(router(ids[0]!), (other) => other.beat())).rejects.toThrow(
      /^another router uses this database, .*: set limits\.store to .* valkey:\/\/HOST:PORT, or to memory to accept separate limits$/,
    );
  });

  test("starts after another router was killed, once its heartbeat has expired", async () => {
    expect(await aloneAfterMs(router(ids[0]!), async () => {})).toBe(6_000);
  });

  test.each([
    ["a router that stops", async (other: LiveRouter) => await other[Symbol.asyncDispose]()],
    [
      "a router that leaves",
      (other: LiveRouter) => other.announce(() => ({ state: "leaving", runningRequests: 9, nodes: [] })),
    ],
  ])("starts beside %s", async (_what, meanwhile) => {
    expect(await aloneAfterMs(router(ids[0]!), meanwhile)).toBeLessThan(1_000);
  });

  test("starts at once in the directory where it ran before", async () => {
    expect(await aloneAfterMs({ ...router(ids[0]!), directory: `/${ids[1]}` }, async () => {})).toBe(0);
  });
});
