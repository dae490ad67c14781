import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { TransientMap } from "./transient-map.ts";

test("a transient map finds, replaces, lists and removes values as a Map does", () => {
  const map = new TransientMap<string, number>();
  map.set("a", 1);
  map.set("b", 2);
  map.set("a", 3);
  expect([map.size, map.get("a"), map.get("c"), map.has("b"), map.has("c")]).toEqual([2, 3, undefined, true, false]);
  expect([[...map.keys()], [...map.values()]]).toEqual([
    ["a", "b"],
    [3, 2],
  ]);
  expect([map.delete("a"), map.delete("a"), map.get("a"), map.size]).toEqual([true, false, undefined, 1]);
  map.clear();
  expect([map.size, [...map.values()]]).toEqual([0, []]);
});

test("a transient map that loses entries during an iteration continues with the others", () => {
  const map = new TransientMap<number, string>();
  for (const [key, value] of ["a", "b", "c"].entries()) map.set(key, value);
  const seen: string[] = [];
  for (const value of map.values()) {
    seen.push(value);
    map.delete(1);
  }
  expect(seen).toEqual(["a", "c"]);
});

/** Returns the heap's remaining bytes after 10,000 values of 8 KB were added to an old map and removed. */
function bytesLeft(map: { set(key: number, value: object): unknown; delete(key: number): boolean }): number {
  setFlagsFromString("--expose-gc");
  const collectYoung = runInNewContext("() => gc({ type: 'minor' })") as () => void;
  for (let key = 0; key < 100; key++) map.set(key, {});
  for (let time = 0; time < 3; time++) collectYoung();
  const before = process.memoryUsage().heapUsed;
  for (let key = 100; key < 10_100; key++) {
    map.set(key, new Array(1_000).fill(key));
    map.delete(key - 50);
    if (key % 500 === 0) collectYoung();
  }
  collectYoung();
  return process.memoryUsage().heapUsed - before;
}

test("values removed from an old transient map are freed by the next collection of the young generation", () => {
  expect(bytesLeft(new TransientMap())).toBeLessThan(10e6);
});
