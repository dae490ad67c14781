/** Routers that are not configured, but announced by other routers. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { KnownRouters } from "../../src/links/known-routers.ts";
import { at, RouterLinksRig } from "./router-links-rig.ts";
import type { SimulatedLinkRouter } from "./simulated-link-router.ts";

let rig: RouterLinksRig;
let folder: string;
beforeEach(() => {
  rig = new RouterLinksRig();
  rig.random = () => 0; // Dials announced routers at once.
  folder = temporaryDirectory();
});
afterEach(async () => {
  await rig.close();
});

const listed = (...routers: readonly (readonly [id: string, at: SimulatedLinkRouter | string])[]) => ({
  routers: routers.map(([id, where]) => ({ router_id: id, address: typeof where === "string" ? where : at(where) })),
});
const linkedTo = () => rig.channels.map(({ routerId }) => routerId);

test("a router that is announced in a welcome or in a later message is linked [R1]", async () => {
  const second = await rig.openRouter({ router_id: "router-2" });
  const third = await rig.openRouter({ router_id: "router-3" });
  const first = await rig.openRouter({ routers: listed(["router-2", second]) });
  rig.openLinks(at(first));
  await expect.poll(linkedTo).toEqual(["router-1", "router-2"]);
  first.say({ routers_changed: listed(["router-2", second], ["router-3", third]) });
  await expect.poll(linkedTo).toEqual(["router-1", "router-2", "router-3"]);
});

test("a router that is no longer announced keeps its link, and is not dialled again after the link has ended", async () => {
  const second = await rig.openRouter({ router_id: "router-2" });
  const first = await rig.openRouter({ routers: listed(["router-2", second]) });
  const links = rig.openLinks(at(first));
  await expect.poll(linkedTo).toEqual(["router-1", "router-2"]);
  first.say({ routers_changed: listed() });
  await expect.poll(() => rig.known.addresses(() => undefined)).toEqual([]);
  expect(second.links.size).toBe(1);
  second.links.forEach((link) => link.end());
  await expect.poll(() => links.states().map(({ address }) => address)).toEqual([at(first)]);
  expect(linkedTo()).toEqual(["router-1", "router-2"]);
});

test("a router is dialled at only one address, whatever others announce", async () => {
  const first = await rig.openRouter({}, "0.0.0.0");
  const other = at(first, "127.0.0.2");
  first.welcome = { ...first.welcome, routers: listed(["router-1", other], ["router-9", "127.0.0.1:1"]) };
  const links = rig.openLinks(at(first));
  await expect.poll(() => links.states().map(({ address }) => address)).toEqual([at(first), "127.0.0.1:1"]);
  expect(linkedTo()).toEqual(["router-1"]);
  // The configured address fails, and the announced address replaces it.
  first.links.forEach((link) => link.end());
  await expect.poll(() => links.states().map(({ address }) => address)).toContain(other);
});

test("without TLS only addresses of this host are dialled, and invalid addresses are ignored [R1]", async () => {
  const first = await rig.openRouter({
    routers: listed(["a", "10.255.255.1:7443"], ["b", "router.example:7443"], ["c", "nowhere"], ["d", "127.0.0.1:0"]),
  });
  const links = rig.openLinks(at(first));
  await expect.poll(() => rig.known.addresses(() => undefined).length).toBe(2);
  await expect.poll(() => rig.usage).toEqual([["up", "router-1"]]);
  expect(links.states().map(({ address }) => address)).toEqual([at(first)]);
  expect(rig.told.map(([event]) => event)).not.toContain("routerNameUnresolved");
});

test("the last list outlives the agent, so that it finds other routers while the configured router is away [R1]", async () => {
  const file = join(folder, "routers.json");
  const before = new RouterLinksRig();
  before.known = new KnownRouters(file);
  const second = await rig.openRouter({ router_id: "router-2" });
  const first = await before.openRouter({ routers: listed(["router-2", second]) });
  before.openLinks(at(first));
  await expect.poll(() => before.channels.length, { timeout: 5_000 }).toBe(2);
  await before.close();

  rig.known = new KnownRouters(file);
  rig.openLinks(at(first));
  await expect.poll(linkedTo, { timeout: 5_000 }).toEqual(["router-2"]);
  writeFileSync(file, readFileSync(file, "utf8").slice(0, -5));
  expect(new KnownRouters(file).addresses(() => undefined)).toEqual([]);
  expect(new KnownRouters(join(folder, "none")).addresses(() => undefined)).toEqual([]);
});

test("an unchanged list is not written again", () => {
  const known = new KnownRouters(join(folder, "routers.json"));
  const list = [{ routerId: "router-2", address: "10.0.0.2:7443" }];
  expect([known.hear(list), known.hear(list), known.hear([])]).toEqual([true, false, true]);
});
