import { expect, test } from "vitest";
import { settle, VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { fewAtOnce, type Asker } from "./few-at-once.ts";

const known = (network: string): Asker => ({ source: network, isKnown: true });
const stranger = (network: string): Asker => ({ source: network, isKnown: false });

/** Makes work that ends on command, and records the order in which it began or was refused. */
function workplace({ atOnceMax = 1, waitingMax = 8, waitMsMax = 1_000 } = {}) {
  const clock = new VirtualClock();
  const few = fewAtOnce({ atOnceMax, waitingMax, waitMsMax }, clock);
  const begun: string[] = [];
  const refused: string[] = [];
  const ends: (() => void)[] = [];
  return {
    clock,
    begun,
    refused,
    ask: (name: string, asker: Asker, fails = false) => {
      const work = () => {
        begun.push(name);
        return new Promise<void>((resolve, reject) =>
          ends.push(() => (fails ? reject(new Error("failed")) : resolve())),
        );
      };
      few(asker, work).catch((error: Error) => error.message !== "failed" && refused.push(name));
    },
    end: async (times = 1) => {
      for (let n = 0; n < times; n++) {
        ends.shift()?.();
        await settle();
      }
    },
  };
}

test("only a few run at once, even if work fails, and the rest of a network runs in order of arrival", async () => {
  const { ask, end, begun } = workplace({ atOnceMax: 2 });
  for (const name of ["a", "b", "c", "d", "e"]) ask(name, stranger("1"), name < "c");
  expect(begun).toEqual(["a", "b"]);
  await end();
  expect(begun).toEqual(["a", "b", "c"]);
  await end(4);
  expect(begun).toEqual(["a", "b", "c", "d", "e"]);
  ask("f", stranger("1"));
  ask("g", stranger("1"));
  ask("h", stranger("1"));
  expect(begun.slice(5)).toEqual(["f", "g"]);
});

test("networks take turns, however many requests one network sends", async () => {
  const { ask, end, begun } = workplace();
  for (const n of [1, 2, 3, 4, 5, 6]) ask(`a${n}`, stranger("a"));
  ask("b1", stranger("b"));
  ask("b2", stranger("b"));
  ask("c1", stranger("c"));
  await end(9);
  expect(begun).toEqual(["a1", "a2", "b1", "c1", "a3", "b2", "a4", "a5", "a6"]);
});

test("strangers and known people take turns, whatever the number of networks", async () => {
  const { ask, end, begun } = workplace();
  for (const n of [1, 2, 3, 4]) ask(`s${n}`, stranger(`${n}`));
  for (const n of [1, 2, 3, 4]) ask(`k${n}`, known("home"));
  await end(8);
  expect(begun).toEqual(["s1", "k1", "s2", "k2", "s3", "k3", "s4", "k4"]);
});

test("if too many wait, the last request of the busiest network is refused, and strangers take no place of known people", async () => {
  const { ask, end, begun, refused } = workplace({ waitingMax: 4 });
  for (const n of [0, 1, 2, 3, 4, 5]) ask(`a${n}`, stranger("a"));
  await settle();
  expect(refused).toEqual(["a5"]);
  ask("b1", stranger("b"));
  ask("c1", stranger("c"));
  ask("a6", stranger("a"));
  ask("k1", known("home"));
  await settle();
  expect(refused.toSorted()).toEqual(["a3", "a4", "a5", "a6"]);
  await end(6);
  expect(begun).toEqual(["a0", "k1", "a1", "b1", "c1", "a2"]);
});

test("a request that waits too long is refused, and its place and timer are released", async () => {
  const { ask, end, begun, refused, clock } = workplace();
  ask("a", stranger("1"));
  ask("b", stranger("1"));
  clock.advance(500);
  ask("c", stranger("2"));
  await clock.advanceAsync(500);
  expect(refused).toEqual(["b"]);
  await end(2);
  expect([begun, clock.pending]).toEqual([["a", "c"], 0]);
});
