/**
 * Tests that places follow accounts. No account keeps another out, and under contention all get the same. Each rule is
 * also broken on purpose, and the test must notice it.
 */
import { expect, test } from "vitest";
import type { Slot, SlotEvent } from "@weiche/node-agent/src/slots/slot-state.ts";
import { transition } from "@weiche/node-agent/src/slots/slot.ts";
import { FairSimulation, jainIndex, quantile } from "./fair-simulation.ts";

type Behaviour = typeof transition;

const nightly = process.env["WEICHE_NIGHTLY"] === "1";
const seeds = Array.from({ length: nightly ? 100 : 1 }, (_, index) => index + 1);
const hours = 3_600;
/** The shortest and longest duration of an answer, in seconds. */
const usual = [5, 60] as const;
/** The most concurrent requests of the largest package. */
const parallel = 20;
const answersMax = 8;

/**
 * Returns how long the first request of other accounts waits, in seconds, beside accounts at every limit of their
 * package.
 */
async function comerWaits(
  { places, hogs = 1, hogAnswers = answersMax }: { places: number; hogs?: number; hogAnswers?: number },
  comer: { gapSeconds?: number; answers?: number; atOnce?: number; accounts?: number },
  seed = 1,
  behaviour?: Behaviour,
): Promise<readonly number[]> {
  const simulation = new FairSimulation({ places, seed, transition: behaviour && (() => behaviour) });
  for (let hog = 0; hog < hogs; hog++)
    simulation.keepAsking(parallel, { account: `hog-${hog}`, answers: hogAnswers, seconds: usual });
  await simulation.pass(120);
  const { gapSeconds = 60, answers = 1, atOnce = 1, accounts } = comer;
  const waits = simulation.comers(gapSeconds, { answers, seconds: usual }, { atOnce, accounts });
  // The first newcomer finds an account that was alone, and waits for the first free place.
  await simulation.pass(600);
  const from = waits.length;
  await simulation.pass((nightly ? 10 : 2) * hours);
  return waits.slice(from);
}

test.each([
  ["an account at every limit, with the largest n", { places: 16 }, {}],
  ["an account at every limit, with the largest n", { places: 64 }, {}],
  ["an account at every limit, with n = 1", { places: 16, hogAnswers: 1 }, {}],
  ["three such accounts", { places: 16, hogs: 3 }, { accounts: 5 }],
  ["an account at every limit, with the largest n", { places: 64 }, { atOnce: 5 }],
  ["an account at every limit, with a newcomer every four minutes", { places: 16 }, { gapSeconds: 240 }],
] as const)(
  "beside %s, other accounts get their first place within 2 s at p99: %j %j [B11]",
  async (_what, engine, comer) => {
    for (const seed of seeds) expect(quantile(await comerWaits(engine, comer, seed), 0.99)).toBeLessThanOrEqual(2);
  },
);

test("on an engine of 4 places, the first place comes within the longest answer at p99 [B11]", async () => {
  for (const seed of seeds)
    expect(quantile(await comerWaits({ places: 4 }, {}, seed), 0.99)).toBeLessThanOrEqual(usual[1]);
});

test("a newcomer's request for eight answers is admitted at once on 64 places, and in its turn on 16", async () => {
  for (const seed of seeds) {
    expect(quantile(await comerWaits({ places: 64 }, { answers: 8 }, seed), 0.9)).toBeLessThanOrEqual(2);
    const waits = await comerWaits({ places: 16 }, { answers: 8, gapSeconds: 240 }, seed);
    expect(quantile(waits, 0.5)).toBeLessThanOrEqual(usual[1]);
    expect(quantile(waits, 1)).toBeLessThanOrEqual(3 * usual[1]);
  }
});

test("an account that is alone gets every place, even an hour after a request of another account [B11]", async () => {
  const simulation = new FairSimulation({ places: 16, seed: 1 });
  const taken = () => simulation.world.agent.slots.views()[0]!.running;
  simulation.keepAsking(parallel, { account: "alone", seconds: usual });
  await simulation.pass(60);
  expect(taken()).toBe(16);
  void simulation.ask({ account: "other", seconds: [1, 1] });
  await simulation.pass(300);
  expect(taken(), "two places are kept for the other account").toBe(14);
  await simulation.pass(1.1 * hours);
  expect(taken()).toBe(16);
});

/** Returns the second account's share of all tokens while the first account sends ever more concurrent requests. */
async function shareOfModest(
  many: { answers?: number; seconds?: readonly [number, number] },
  few: { seconds?: readonly [number, number]; afterSeconds?: number },
  seed = 1,
  behaviour?: Behaviour,
): Promise<number> {
  const places = 4;
  const simulation = new FairSimulation({ places, seed, transition: behaviour && (() => behaviour) });
  simulation.keepAsking(20 * places, { account: "many", seconds: usual, ...many });
  await simulation.pass(few.afterSeconds ?? 0);
  simulation.keepAsking(2 * places, { account: "few", seconds: few.seconds ?? usual });
  if (!few.afterSeconds) await simulation.pass(600);
  const used = await simulation.usedWithin(few.afterSeconds ? 900 : 2 * hours);
  const [most, least] = [used.get("many") ?? 0, used.get("few") ?? 0];
  return least / (most + least);
}

test.each([
  ["of the same length", {}, {}],
  ["that are longer", { seconds: [20, 60] }, { seconds: [1, 5] }],
  ["that are shorter", { seconds: [1, 5] }, { seconds: [20, 60] }],
  ["for four answers each", { answers: 4 }, {}],
] as const)(
  "each of two accounts gets half, even if one has ten times as many requests %s [B11]",
  async (_what, many, few) => {
    for (const seed of seeds) expect(Math.abs((await shareOfModest(many, few, seed)) - 0.5)).toBeLessThanOrEqual(0.025);
  },
);

test("an account that arrives after an hour gets half from then on, and no compensation for the hour", async () => {
  for (const seed of seeds)
    expect(Math.abs((await shareOfModest({}, { afterSeconds: hours }, seed)) - 0.5)).toBeLessThanOrEqual(0.1);
});

test("64 accounts with different demands get equal shares (Jain's index of at least 0.95), and no place is idle [B11]", async () => {
  for (const seed of seeds) {
    const simulation = new FairSimulation({ places: 16, seed });
    for (let account = 0; account < 64; account++)
      simulation.keepAsking(1 + (account % 5), { account: `a${account}`, seconds: [1, 5 + (account % 7)] });
    await simulation.pass(120);
    expect(jainIndex([...(await simulation.usedWithin(600)).values()])).toBeGreaterThanOrEqual(0.95);
    expect(simulation.world.agent.slots.views()[0]!.running).toBe(16);
  }
});

/** Returns the longest wait in seconds for eight of 16 places, beside many accounts with requests for one place. */
async function longestWaitForMany(seed = 1, behaviour?: Behaviour): Promise<number> {
  const simulation = new FairSimulation({ places: 16, seed, transition: behaviour && (() => behaviour) });
  for (let account = 0; account < 40; account++) simulation.keepAsking(1, { account: `a${account}`, seconds: [1, 10] });
  await simulation.pass(60);
  let longest = 0;
  for (let count = 0; count < 6; count++) {
    const waited = simulation.ask({ account: "large", answers: 8, seconds: [1, 10] });
    void waited.then((seconds) => (longest = Math.max(longest, seconds)));
    await simulation.pass(350);
  }
  return longest;
}

/** The sum of three waits: for the account's turn, for requests that overtake it, and for the longest answer. */
const longestWaitSeconds = 60;

test("a request for many places gets its turn beside many small requests [B11]", async () => {
  for (const seed of seeds) expect(await longestWaitForMany(seed)).toBeLessThanOrEqual(longestWaitSeconds);
});

const onSlots =
  (change: (slot: Slot, event: SlotEvent) => Slot): Behaviour =>
  (slot, event, nowMs) =>
    transition(change(slot, event), event, nowMs);
const onEvents =
  (change: (event: SlotEvent) => SlotEvent): Behaviour =>
  (slot, event, nowMs) =>
    transition(slot, change(event), nowMs);

const enteringAtZero: Behaviour = (slot, event, nowMs) => {
  const [after, effects] = transition(slot, event, nowMs);
  const shares = event.kind === "request" ? after.shares.get(event.model) : undefined;
  if (event.kind !== "request" || !shares) return [after, effects];
  const before = slot.shares.get(event.model)?.accounts.flat();
  const used = before?.find(({ account }) => account === event.account)?.used ?? 0;
  const accounts = shares.accounts.map((bucket) =>
    bucket.map((share) => (share.account === event.account ? { ...share, used } : share)),
  );
  return [{ ...after, shares: new Map(after.shares).set(event.model, { ...shares, accounts }) }, effects];
};
const reservingNothing = onSlots((slot) => ({
  ...slot,
  shares: new Map(
    [...slot.shares].map(([model, shares]) => {
      const accounts = shares.accounts.map((bucket) => bucket.map((share) => ({ ...share, askedMs: -1e9 })));
      return [model, { ...shares, accounts }] as const;
    }),
  ),
}));
const oneForAll = onEvents((event) => (event.kind === "request" ? { ...event, account: "one" as never } : event));
const countingNothing = onEvents((event) => (event.kind === "released" ? { ...event, used: undefined } : event));
const overtakingWithoutEnd = onSlots((slot) => ({ ...slot, overtaken: undefined }));

test.each<[string, () => Promise<boolean>]>([
  [
    "the level at which new accounts start",
    async () => (await shareOfModest({}, { afterSeconds: hours }, 1, enteringAtZero)) <= 0.6,
  ],
  [
    "the reserve",
    async () => quantile(await comerWaits({ places: 16, hogAnswers: 1 }, {}, 1, reservingNothing), 0.99) <= 2,
  ],
  ["the account of a request", async () => (await shareOfModest({}, {}, 1, oneForAll)) >= 0.475],
  [
    "how much requests used",
    async () => (await shareOfModest({ seconds: [20, 60] }, { seconds: [1, 5] }, 1, countingNothing)) >= 0.475,
  ],
  [
    "how often a waiter was overtaken",
    async () => (await longestWaitForMany(1, overtakingWithoutEnd)) <= longestWaitSeconds,
  ],
])("the tests notice a slot that forgets %s [B11]", async (_what, isFair) => {
  expect(await isFair().catch(() => false)).toBe(false);
});
