/** Every role × page × theme × language × width. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPortal, type Person, type PortalRig } from "../surface/portal-rig.ts";
import { startBrowser, type Browser } from "./browser.ts";
import { busyNodes } from "./busy-nodes.ts";
import { fillAccount, ShiftedClock } from "./busy-account.ts";
import { faultyPages, managingPages, openPages } from "./page-visits.ts";

let browser: Browser;
let portal: PortalRig;
let people: Record<"owner" | "admin" | "member", Person>;

beforeAll(async () => {
  const clock = new ShiftedClock();
  [browser, portal] = await Promise.all([
    startBrowser(),
    startPortal({ clock, parts: () => ({ nodes: () => busyNodes }) }),
  ]);
  const owner = await fillAccount(portal, clock);
  people = { owner, admin: await portal.newUser(owner, "admin"), member: await portal.newUser(owner, "member") };
});
afterAll(async () => {
  await browser?.close();
  await portal?.[Symbol.asyncDispose]();
});

describe.each(["owner", "admin", "member"] as const)("%s", (role) => {
  const paths = role === "member" ? openPages : [...openPages, ...managingPages];
  const looks = [1280, 768, 390, 320].flatMap((width) =>
    (["light", "dark"] as const).flatMap((theme) =>
      (["de", "en"] as const).map((language) => ({ width, theme, language })),
    ),
  );
  test.each(looks)("%j", async (look) => {
    expect(await faultyPages(browser, portal, paths, { cookie: people[role].cookie, ...look })).toEqual([]);
  });
});
