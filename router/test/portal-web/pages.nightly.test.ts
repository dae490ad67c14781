/** Every role × page × theme × language × width. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { faultyPages, pagesOf, startVisited, type Visited } from "./page-visits.ts";

let visited: Visited;
beforeAll(async () => {
  visited = await startVisited();
});
afterAll(() => visited?.[Symbol.asyncDispose]());

describe.each(["owner", "admin", "member"] as const)("%s", (role) => {
  const looks = [1280, 768, 390, 320].flatMap((width) =>
    (["light", "dark"] as const).flatMap((theme) =>
      (["de", "en"] as const).map((language) => ({ width, theme, language })),
    ),
  );
  test.each(looks)("%j", async (look) => {
    const { browser, portal, people } = visited;
    const visit = { cookie: people[role].cookie, ...look };
    expect(await faultyPages(browser, portal, pagesOf(role), visit)).toEqual([]);
  });
});
