import { expect, test } from "vitest";
import { every } from "@weiche/shared/time/clock.ts";
import { settle, VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createExportPlaces, paceBytesMin, paceMs, turnMs, waitMsMax } from "./export-places.ts";

function open() {
  const clock = new VirtualClock();
  const enter = createExportPlaces(clock);
  const log: string[] = [];
  const ask = (name: string) => {
    const client = new AbortController();
    const entered = enter(name.slice(0, 1), client.signal);
    entered.then(
      () => log.push(name),
      (error: { kind?: string }) => log.push(`${name} ${error.kind ?? "left"}`),
    );
    return {
      end: async () => {
        (await entered)[Symbol.dispose]();
        await settle();
      },
      leave: async () => {
        client.abort();
        await settle();
      },
    };
  };
  return { clock, log, ask };
}

test("two accounts have one place each, and no account gets more by asking more often", async () => {
  const { log, ask } = open();
  const a = ask("a1");
  const more = [ask("a2"), ask("a3"), ask("a4")];
  await settle();
  expect(log).toEqual(["a1", "a3 overloaded", "a4 overloaded"]);
  ask("b1");
  await settle();
  expect(log.at(-1)).toBe("b1");
  await a.end();
  expect(log.at(-1)).toBe("a2");
  expect(more).toHaveLength(3);
});

test("waiters are served in the order of their arrival, and reconnecting moves a waiter to the end", async () => {
  const { log, ask } = open();
  const a = ask("a1");
  const b = ask("b1");
  ask("c1");
  await a.end();
  const again = ask("a2");
  ask("d1");
  await again.leave();
  ask("a3");
  await b.end();
  expect(log).toEqual(["a1", "b1", "c1", "a2 left", "d1"]);
});

test("a waiter that leaves or waits too long loses its place in the queue", async () => {
  const { clock, log, ask } = open();
  const a = ask("a1");
  ask("b1");
  const c = ask("c1");
  const d = ask("d1");
  await c.leave();
  expect(log.at(-1)).toBe("c1 left");
  await clock.advanceAsync(waitMsMax);
  expect(log.at(-1)).toBe("d1 overloaded");
  ask("e1");
  await a.end();
  expect([log.at(-1), clock.pending]).toEqual(["e1", 0]);
  await d.leave();
});

test("while another account waits, one slow export gives way at a time, and a fast one continues [D10]", async () => {
  const clock = new VirtualClock();
  const enter = createExportPlaces(clock);
  const { signal } = new AbortController();
  const ended: string[] = [];
  const start = async (account: string) => {
    const place = await enter(account, signal);
    place.onGiveWay = () => {
      ended.push(account);
      place[Symbol.dispose]();
    };
    place.offer();
    return place;
  };
  await start("slow");
  const fast = await start("fast");
  const go = async (ms: number) => {
    for (let passedMs = 0; passedMs < ms; passedMs += 500) {
      await clock.advanceAsync(500);
      fast.took(paceBytesMin / 6);
      fast.offer();
    }
  };
  await go(2 * paceMs);
  expect(ended).toEqual([]);
  const entered: string[] = [];
  void start("slow").then(() => entered.push("slow again"));
  await go(paceMs);
  expect(ended, "its own account waits").toEqual([]);
  void start("third").then(() => entered.push("third"));
  await settle();
  expect([ended, entered]).toEqual([["slow"], ["third"]]);
  await go(paceMs + 1_000);
  expect([ended, entered]).toEqual([
    ["slow", "third"],
    ["third", "slow again"],
  ]);
});

test("an account gets a place within its first wait, although two others read just fast enough and ask again [D10]", async () => {
  const clock = new VirtualClock();
  const enter = createExportPlaces(clock);
  const { signal } = new AbortController();
  const cuts: string[] = [];
  /** Reads a little faster than the floor, for ever, and exports again after a cut. */
  const linger = async (account: string): Promise<void> => {
    const place = await enter(account, signal);
    place.offer();
    const read = every(clock, 500, () => {
      place.took(paceBytesMin / 5);
      place.offer();
    });
    place.onGiveWay = () => {
      cuts.push(account);
      read.cancel();
      void linger(account);
      place[Symbol.dispose]();
    };
  };
  for (const account of ["a", "b"]) void linger(account);
  await clock.advanceAsync(5 * turnMs);
  expect(cuts, "nobody else waits").toEqual([]);
  const seen: string[] = [];
  for (let time = 1; time <= 3; time++) {
    void enter("third", signal).then(
      (place) => (seen.push(`served ${time}`), place[Symbol.dispose]()),
      () => seen.push("refused"),
    );
    for (let ms = 0; ms < waitMsMax; ms += 500) await clock.advanceAsync(500);
  }
  expect(seen).toEqual(["served 1", "served 2", "served 3"]);
});
