/** How an agent finds its routers, again and again. */
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { at, RouterLinksRig } from "./router-links-rig.ts";

let rig: RouterLinksRig;
beforeEach(() => {
  rig = new RouterLinksRig();
});
afterEach(() => rig.close());

test("a lost link is restored within 5 s, however often it is lost", async () => {
  let router = await rig.openRouter();
  rig.openLinks(at(router));
  for (let round = 1; round <= 3; round++) {
    await expect.poll(() => rig.channels.length, { timeout: 5_000 }).toBe(round);
    router[Symbol.dispose]();
    await expect.poll(() => rig.usage.filter(([what]) => what === "down").length).toBe(round);
    router = await rig.openRouter({}, "127.0.0.1", router.port);
  }
  await expect.poll(() => rig.channels.length, { timeout: 5_000 }).toBe(4);
  expect(rig.told.filter(([event]) => event === "routerLinkUp")).toHaveLength(4);
});

test("every address behind a name is a separate router, new ones are found, and a failed lookup changes nothing", async () => {
  const first = await rig.openRouter();
  const second = await rig.openRouter({ router_id: "router-2" }, "127.0.0.2", first.port);
  rig.names.set("routers.example", ["127.0.0.1"]);
  const opened = rig.openLinks(at(first, "routers.example"));
  await expect.poll(() => rig.channels.map(({ routerId }) => routerId)).toEqual(["router-1"]);
  rig.names.set("routers.example", ["127.0.0.1", "127.0.0.2"]);
  first[Symbol.dispose](); // An ended link causes a new lookup.
  await expect.poll(() => rig.channels.map(({ routerId }) => routerId)).toContain("router-2");
  rig.names.clear();
  await expect
    .poll(() => rig.told, { timeout: 5_000 })
    .toContainEqual(["routerNameUnresolved", "routers.example", "ENOTFOUND"]);
  const again = await rig.openRouter({ router_id: "router-3" }, "127.0.0.1", first.port);
  await expect.poll(() => rig.channels.map(({ routerId }) => routerId), { timeout: 5_000 }).toContain("router-3");
  expect(again.links.size).toBe(1);
  expect(second.links.size).toBe(1);
  expect(opened.states()).toEqual([
    { address: `routers.example:${first.port} (127.0.0.1)`, state: "linked", dataSessions: 0 },
    { address: `routers.example:${first.port} (127.0.0.2)`, state: "linked", dataSessions: 0 },
  ]);
});

test("a name without an address is soon looked up again", async () => {
  const router = await rig.openRouter();
  const opened = rig.openLinks(at(router, "later.example"));
  await expect.poll(() => rig.told).toEqual([["routerNameUnresolved", "later.example", "ENOTFOUND"]]);
  const reason = "the name later.example does not resolve (ENOTFOUND): check DNS or /etc/hosts";
  const address = `later.example:${router.port}`;
  expect(opened.states()).toEqual([{ address, state: "connecting", dataSessions: 0, reason }]);
  rig.names.set("later.example", ["127.0.0.1"]);
  await expect.poll(() => rig.channels.length, { timeout: 5_000 }).toBe(1);
  expect(opened.states()).toMatchObject([{ address: `${address} (127.0.0.1)`, state: "linked" }]);
});

test("an address where nothing listens is shown with the reason, until a router is linked there", async () => {
  const router = await rig.openRouter();
  router[Symbol.dispose]();
  const opened = rig.openLinks(at(router));
  await expect
    .poll(() => opened.states(), { timeout: 5_000 })
    .toMatchObject([{ state: "connecting", reason: "nothing listens there (ECONNREFUSED)" }]);
  await rig.openRouter({}, "127.0.0.1", router.port);
  await expect.poll(() => opened.states()[0]?.state, { timeout: 5_000 }).toBe("linked");
  expect(opened.states()[0]).not.toHaveProperty("reason");
});

test("a router with two addresses is linked once, and each up event is followed by a down event", async () => {
  const router = await rig.openRouter({}, "0.0.0.0");
  rig.names.set("twice.example", ["127.0.0.1", "127.0.0.2"]);
  rig.openLinks(at(router, "twice.example"));
  await expect
    .poll(() => rig.usage)
    .toEqual([
      ["up", "router-1"],
      ["down", "router-1"],
      ["up", "router-1"],
    ]);
  // The remaining link lasts, and the other address is not dialled meanwhile.
  await expect
    .poll(() => router.heardOf<{ sequence: string }>("load_report").at(-1)!.sequence, { timeout: 10_000 })
    .toBe("6");
  expect(router.heardOf("hello")).toHaveLength(2);
  expect(router.links.size).toBe(1);
  router.links.forEach((link) => link.end());
  await expect.poll(() => rig.usage.length, { timeout: 5_000 }).toBeGreaterThanOrEqual(5);
  await expect.poll(() => router.links.size).toBe(1);
  expect(rig.usage.map(([what]) => what).join(" ")).toMatch(/^up( down up)+$/);
});

test("a missing router is reported once, and dialled repeatedly", async () => {
  const nothing = await rig.openRouter();
  nothing[Symbol.dispose]();
  rig.openLinks(at(nothing));
  await expect.poll(() => rig.told.length).toBeGreaterThan(0);
  const back = await rig.openRouter({}, "127.0.0.1", nothing.port);
  await expect.poll(() => back.links.size, { timeout: 5_000 }).toBe(1);
  await expect
    .poll(() => rig.told.map(([event]) => event))
    .toEqual(["routerLinkFailed", "routerLinkUp", "dataConnectionFailed"]);
});

test("a router that accepts and sends nothing is abandoned after ten seconds", async () => {
  const clock = new VirtualClock();
  rig.clock = clock;
  const silent = createServer(() => {});
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const address = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
  rig.openLinks(address);
  await once(silent, "connection");
  await clock.advanceAsync(9_999);
  expect(rig.told).toEqual([]);
  await clock.advanceAsync(1);
  await expect.poll(() => rig.told).toEqual([["routerLinkFailed", address, "no welcome within 10000 ms"]]);
  await rig.close();
  silent.close();
});
