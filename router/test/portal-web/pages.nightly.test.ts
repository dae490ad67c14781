/** Every role × page × theme × language × width. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { entrances, faultyPages, pagesOf, startVisited, type Visited } from "./page-visits.ts";

let visited: Visited;
beforeAll(async () => {
  visited = await startVisited();
});
afterAll(() => visited?.[Symbol.asyncDispose]());

const looks = [1280, 768, 390, 320].flatMap((width) =>
  (["light", "dark"] as const).flatMap((theme) =>
    (["de", "en"] as const).map((language) => ({ width, theme, language })),
  ),
);

describe.each(["owner", "admin", "member"] as const)("%s", (role) => {
  test.each(looks)("%j", async (look) => {
    const { browser, portal, people } = visited;
    const visit = { cookie: people[role].cookie, ...look };
    expect(await faultyPages(browser, portal, pagesOf(role), visit)).toEqual([]);
  });
});

describe.each(["loading", "failing", "forbidden"] as const)("%s", (trouble) => {
  test.each(looks)("%j", async (look) => {
    const { browser, portal, people } = visited;
    const visit = { cookie: people.owner.cookie, trouble, ...look };
    expect(await faultyPages(browser, portal, pagesOf("owner"), visit)).toEqual([]);
  });
});

test.each(looks)("a newcomer and nobody, %j", async (look) => {
  const { browser, portal, newcomer } = visited;
  expect(await faultyPages(browser, portal, pagesOf("owner"), { cookie: newcomer.cookie, ...look })).toEqual([]);
  expect(await faultyPages(browser, portal, entrances, look)).toEqual([]);
});
