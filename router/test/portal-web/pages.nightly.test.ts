/** Every role × page × state × theme × language × width. */
import { describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { entrances, faultyPages, pagesOf, startVisited } from "./page-visits.ts";

const visited = await forThisFile(startVisited());

const looks = [1280, 768, 390, 320].flatMap((width) =>
  (["light", "dark"] as const).flatMap((theme) =>
    (["de", "en"] as const).map((language) => ({ width, theme, language })),
  ),
);

const roles = ["owner", "admin", "member"] as const;

describe.each(roles)("%s", (role) => {
  test.each(looks)("%j", async (look) => {
    const { browser, portal, people } = visited;
    const visit = { cookie: people[role].cookie, ...look };
    expect(await faultyPages(browser, portal, pagesOf(role), visit)).toEqual([]);
  });
});

describe.each(["loading", "failing", "forbidden"] as const)("%s", (trouble) => {
  describe.each(roles)("%s", (role) => {
    test.each(looks)("%j", async (look) => {
      const { browser, portal, people } = visited;
      const visit = { cookie: people[role].cookie, trouble, ...look };
      expect(await faultyPages(browser, portal, pagesOf(role), visit)).toEqual([]);
    });
  });
});

describe.each(roles)("a newcomer, %s", (role) => {
  test.each(looks)("%j", async (look) => {
    const { browser, portal, newcomers } = visited;
    const visit = { cookie: newcomers[role].cookie, ...look };
    expect(await faultyPages(browser, portal, pagesOf(role), visit)).toEqual([]);
  });
});

test.each(looks)("nobody, %j", async (look) => {
  expect(await faultyPages(visited.browser, visited.portal, entrances, look)).toEqual([]);
});
