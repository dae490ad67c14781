import { expect, test } from "vitest";
import { beginAtZero, createMetricRegistry } from "./metric-registry.ts";

test("a counter is created at zero with every label combination, and one that has counted keeps its count", async () => {
  const { counter } = createMetricRegistry();
  const doors = counter("doors_total", "Doors", ["house", "colour"]);
  doors.inc({ house: "a", colour: "red" }, 3);
  beginAtZero(doors, { house: ["a", "b"], colour: new Set(["red", "blue"]) });
  const { values } = await doors.get();
  expect(values.map(({ labels, value }) => `${labels.house} ${labels.colour} ${value}`).toSorted()).toEqual([
    ...["a blue 0", "a red 3", "b blue 0", "b red 0"],
  ]);
});

test("gauges are updated before each scrape", async () => {
  const { gauge, scrape } = createMetricRegistry();
  const level = gauge("level", "Level");
  let now = 1;
  scrape.onScrape(() => level.set(now));
  expect(await scrape.metrics()).toContain("\nlevel 1\n");
  now = 2;
  expect(await scrape.metrics()).toContain("\nlevel 2\n");
});
